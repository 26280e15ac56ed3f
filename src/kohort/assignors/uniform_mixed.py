# SPDX-License-Identifier: Apache-2.0
"""Uniform where subscriptions differ: level the loads topic by topic, then move single ones.

Members keep what they had, the least loaded subscribers get free partitions, and then single
partitions move until no subscriber of a topic has two fewer than an owner of it. Members with equal
subscriptions are kept together by load, so that filling a topic costs as many steps as there are
members that receive.
"""

from collections.abc import Mapping
from heapq import heapify, heappop, heappush
from itertools import islice

from kohort.assignors.ownership import Claims, joined
from kohort.assignors.subscriptions import Plan, Subscribers, Subscription, topic_order
from kohort.terms import MemberId, TopicId

MAX_PASSES = 16  # as upstream: a long chain of subscriptions may need more, and is left nearly even


class MembersByLoad:
    """The members of one subscription, by load. Dicts stand for ordered sets."""

    __slots__ = ("by_load",)

    def __init__(self) -> None:
        self.by_load: dict[int, dict[MemberId, None]] = {}

    def add(self, member: MemberId, load: int) -> None:
        at_load = self.by_load.get(load)
        if at_load is None:
            self.by_load[load] = {member: None}
        else:
            at_load[member] = None

    def remove(self, member: MemberId, load: int) -> None:
        at_load = self.by_load[load]
        del at_load[member]
        if not at_load:
            del self.by_load[load]

    def take(self, load: int, limit: int) -> list[MemberId]:
        """Take out up to `limit` members of this load, those first that have had it longest."""
        at_load = self.by_load[load]
        if limit >= len(at_load):
            del self.by_load[load]
            return list(at_load)
        taken = list(islice(at_load, limit))
        for member in taken:
            del at_load[member]
        return taken


class TopicReaders:
    """One topic: its size, the subscriptions that read it, and who owns what of it."""

    __slots__ = ("count", "id", "owners", "readers", "subscribers")

    def __init__(self, topic: TopicId, count: int) -> None:
        self.id = topic
        self.count = count
        self.readers: list[int] = []
        self.subscribers = 0
        self.owners: dict[MemberId, tuple[int, ...]] = {}


Free = tuple[TopicReaders, tuple[int, ...]]
"""Partitions of one topic that are free, ascending."""


def deal(chunks: list[Free], wanting: list[tuple[MemberId, int]]) -> None:
    """Give each member as many as it wants, from the head; together they want all of them."""
    at = start = 0
    reading, free = chunks[at]
    for member, want in wanting:
        missing = want
        while missing:
            if start == len(free):
                at += 1
                reading, free = chunks[at]
                start = 0
            part = free[start : start + missing]
            owners = reading.owners
            mine = owners.get(member)
            owners[member] = joined(mine, part) if mine else part
            missing -= len(part)
            start += len(part)


def assign_mixed(
    members: Mapping[MemberId, Subscription],
    subscriptions: list[Subscribers],
    partitions: Mapping[TopicId, int],
) -> Plan:
    """Plan until no subscriber of a topic has two fewer than an owner of it, if passes suffice."""
    return Balancer(members, subscriptions, partitions).plan()


class Balancer:
    """The state of one computation: owners per topic, loads per member, members by load."""

    __slots__ = ("claims", "equals", "loads", "members", "of", "topics")

    def __init__(
        self,
        members: Mapping[MemberId, Subscription],
        subscriptions: list[Subscribers],
        partitions: Mapping[TopicId, int],
    ) -> None:
        self.members = members
        self.topics: dict[TopicId, TopicReaders] = {}
        self.of: dict[MemberId, int] = {}
        for index, subscription in enumerate(subscriptions):
            for topic in subscription.topics:
                reading = self.topics.get(topic)
                if reading is None:
                    reading = self.topics[topic] = TopicReaders(topic, partitions[topic])
                reading.readers.append(index)
                reading.subscribers += len(subscription.members)
            self.of.update(dict.fromkeys(subscription.members, index))
        self.claims = Claims({topic: reading.count for topic, reading in self.topics.items()})
        self.loads: dict[MemberId, int] = dict.fromkeys(members, 0)
        self.keep([frozenset(subscription.topics) for subscription in subscriptions])
        self.equals = [MembersByLoad() for _ in subscriptions]
        for member, load in self.loads.items():
            self.equals[self.of[member]].add(member, load)

    def keep(self, wanted: list[frozenset[TopicId]]) -> None:
        """Every member keeps what it had of the topics that it still reads."""
        for member, subscription in self.members.items():
            load = 0
            if subscription.previous:
                reads = wanted[self.of[member]]
                kept = self.claims.keep(member, subscription.previous, reads)
                for topic, mine in kept.items():
                    self.topics[topic].owners[member] = mine
                    load += len(mine)
            self.loads[member] = load

    def plan(self) -> Plan:
        # The topics with the most work for each reader first: they leave the least choice.
        order = sorted(
            self.topics.values(),
            key=lambda topic: (
                -topic.count / topic.subscribers,
                topic.subscribers,
                topic_order(topic.id),
            ),
        )
        # Those of one rank with the same readers are poured as one, so that members get runs.
        alike: dict[tuple[int, tuple[int, ...]], list[Free]] = {}
        for reading in order:
            free = self.claims.free(reading.id)
            if free:
                key = (reading.count, tuple(reading.readers))
                alike.setdefault(key, []).append((reading, free))
        for chunks in alike.values():
            self.fill(chunks)
        contested = [reading for reading in order if reading.subscribers > 1]
        for _ in range(MAX_PASSES):
            moved = False
            for reading in contested:
                moved = self.relieve(reading) or moved
            if not moved:
                break
        plan: Plan = {member: {} for member in self.members}
        for reading in order:
            for member, mine in reading.owners.items():
                plan[member][reading.id] = mine
        return plan

    def fill(self, chunks: list[Free]) -> None:
        """Pour what is free over the subscribers, lowest loads first, as water finds its level.

        Dealt one at a time, each partition would go to the least loaded subscriber, and among
        equals to the one that was lower at the beginning. This gives the same sizes, but in runs.
        """
        indices = chunks[0][0].readers
        at_load: dict[int, int] = {}
        for index in indices:
            for load, equals in self.equals[index].by_load.items():
                at_load[load] = at_load.get(load, 0) + len(equals)
        lowest = sorted(at_load)
        level = lowest[0]
        raised = 0  # subscribers that have reached `level`
        left = sum(len(free) for _, free in chunks)
        for load in lowest:
            climb = raised * (load - level)
            if climb > left:
                break
            left -= climb
            level = load
            raised += at_load[load]
        each, longer = divmod(left, raised)
        # Only `longer` rise above the level: of those already on it the others are not touched.
        room = raised if each else max(longer, raised - at_load[level])

        # All are taken out before the first is put back, perhaps at a load that is still to come.
        receivers: list[tuple[MemberId, int, int]] = []
        for load in lowest:
            for index in indices:
                if load <= level and len(receivers) < room and load in self.equals[index].by_load:
                    members = self.equals[index].take(load, room - len(receivers))
                    receivers.extend((member, load, index) for member in members)
        wanting: list[tuple[MemberId, int]] = []
        for rank, (member, load, index) in enumerate(receivers):
            after = level + each + (rank < longer)
            self.equals[index].add(member, after)
            self.loads[member] = after
            wanting.append((member, after - load))
        deal(chunks, wanting)

    def relieve(self, reading: TopicReaders) -> bool:
        """Move single partitions from the most to the least loaded until they are level."""
        readers = [self.equals[index] for index in reading.readers]
        least = min(min(reader.by_load) for reader in readers)
        if max(max(reader.by_load) for reader in readers) - least < 2:
            return False
        loads = self.loads
        owners = reading.owners
        if not owners or max(map(loads.__getitem__, owners)) - least < 2:
            return False
        most = [(-loads[member], rank, member) for rank, member in enumerate(owners)]
        heapify(most)
        moved = False
        # Whoever receives is then one above the least, so it need not become a giver in its turn.
        while most:
            load, rank, giver = heappop(most)
            least, index = min(
                (min(self.equals[index].by_load), index) for index in reading.readers
            )
            if -load - least < 2:
                break
            taker = next(iter(self.equals[index].by_load[least]))
            mine = owners[giver]
            owners[taker] = joined(owners.get(taker, ()), mine[-1:])
            self.change(giver, -1)
            self.change(taker, 1)
            moved = True
            if len(mine) > 1:
                owners[giver] = mine[:-1]
                heappush(most, (load + 1, rank, giver))
            else:
                del owners[giver]
        return moved

    def change(self, member: MemberId, by: int) -> None:
        before = self.loads[member]
        self.loads[member] = before + by
        equals = self.equals[self.of[member]]
        equals.remove(member, before)
        equals.add(member, before + by)
