# SPDX-License-Identifier: Apache-2.0
"""Any sequence of joins, heartbeats, lost answers, silences, changed topics and crashes
keeps what KIP-848 promises.
"""

from typing import Any

import hypothesis.strategies as st
from hypothesis import HealthCheck, note, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.coordinator.consumers import Partitions, beat, given
from tests.coordinator.desk import Desk, replay, set_topic, topic_id

from kohort import expressions
from kohort.coordinator.consumer.group import ConsumerGroup
from kohort.coordinator.consumer.member import AWAY
from kohort.coordinator.shard import Shard
from kohort.errors import ErrorCode
from kohort.machines.topics import Topic, Topics
from kohort.records.codec import Record, decode, encode
from kohort.sim.checkers.replay import consumer
from kohort.terms import GroupState

NAMES = ["t", "u", "v"]
MEMBERS = ["a", "b", "c", "d"]
STATIC = ["c", "d"]
SESSION_S = 45
REJOIN = (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_ID_NOT_FOUND)

subscriptions = st.sampled_from(
    [
        (["t"], ""),
        (["t"], ""),
        (["t", "u"], ""),
        (["u", "v"], ""),
        ([], ""),
        ([], "[uv]"),
        ([], "."),
        (["t"], "v"),
        ([], "none.*"),
    ]
)
members = st.sampled_from(MEMBERS)
static_members = st.sampled_from(STATIC)


class Client:
    """A client by the book: it owns what it was given until it has let go of it, which takes time,
    and after an answer that never came it tells everything about itself.
    """

    def __init__(self, desk: Desk, member_id: str, instance_id: str | None = None) -> None:
        self.desk, self.id, self.instance_id = desk, member_id, instance_id
        self.alive = False
        self.epoch = 0
        self.owned: Partitions = {}
        self.given: Partitions = {}
        self.wants: tuple[list[str], str] = [], ""
        self.assignor: str | None = None
        self.tells_all = False

    def start(self, wants: tuple[list[str], str], assignor: str | None) -> None:
        self.alive = True
        self.start_over()
        self.wants, self.assignor = wants, assignor

    def stop(self) -> None:
        self.alive = False
        self.start_over()

    def start_over(self) -> None:
        self.epoch, self.owned, self.given = 0, {}, {}

    def subscribe(self, wants: tuple[list[str], str]) -> None:
        self.wants, self.tells_all = wants, True

    def beat(self, *, lost: bool = False, silent: bool = False) -> None:
        """One heartbeat. `lost`: its answer never comes; `silent`: it does not say what it owns."""
        fields: dict[str, Any] = {"instance_id": self.instance_id}
        if self.epoch == 0 or self.tells_all:
            names, regex = self.wants
            fields |= {"names": names, "subscribed_topic_regex": regex}
            fields["rebalance_timeout_ms"] = 10_000
            fields["server_assignor"] = self.assignor
        owned = None if silent and not self.tells_all else self.owned
        if self.epoch == 0:
            owned = {}
        answer = beat(self.desk, self.id, self.epoch, owned=owned, **fields)
        if lost:
            self.tells_all = True
            return
        self.tells_all = False
        if answer.error_code == ErrorCode.FENCED_INSTANCE_ID:
            assert self.instance_id is not None
            self.stop()
            return
        if answer.error_code == ErrorCode.UNRELEASED_INSTANCE_ID:
            assert self.instance_id is not None
            assert self.epoch == 0
            return
        if answer.error_code:
            assert answer.error_code in REJOIN, answer
            self.start_over()
            return
        self.epoch = answer.member_epoch
        assignment = given(answer)
        if assignment is not None:
            self.given = assignment
            if all(set(ones) <= set(assignment.get(name, ())) for name, ones in self.owned.items()):
                self.owned = assignment  # there is nothing to let go of

    def let_go(self) -> None:
        """The application has finished with what it was told to give up."""
        self.owned = self.given


def compacted(log: list[Record], upto: int, *, tombstones: bool) -> list[Record]:
    """The last record of each key in the first part of a log, and all of the rest."""
    last = {encode(record)[0]: number for number, record in enumerate(log[:upto])}
    kept = [
        record
        for number, record in enumerate(log[:upto])
        if last[encode(record)[0]] == number and (tombstones or record.value is not None)
    ]
    return kept + log[upto:]


def digest(shard: Shard) -> dict[str, Any]:
    """All durable state, derived state included."""
    return {group.id: consumer(group) for group in shard.groups if isinstance(group, ConsumerGroup)}


class GroupMachine(RuleBasedStateMachine):
    """One group, four clients, two of them static, three topics."""

    @initialize(interval_ms=st.sampled_from([0, 0, 5000]), assignors=st.booleans())
    def begin(self, interval_ms: int, assignors: bool) -> None:  # noqa: FBT001
        self.topics = {name: Topic(topic_id(name), name, 3) for name in NAMES[:2]}
        self.desk = Desk(
            known=Topics(self.topics.values()),
            group_consumer_assignment_interval_ms=interval_ms,
            group_consumer_assignors="range,uniform" if assignors else "uniform,range",
        )
        self.clients = {
            name: Client(self.desk, name, f"i-{name}" if name in STATIC else None)
            for name in MEMBERS
        }
        self.zombies: list[Client] = []
        self.made = 0
        self.epochs: dict[str, int] = {}
        self.group_epochs = (1, 1)

    @property
    def group(self) -> ConsumerGroup | None:
        return self.desk.shard.groups.consumer("g")

    # -- what may happen

    @rule(name=members, wants=subscriptions, assignor=st.sampled_from([None, "range", "uniform"]))
    def join(self, name: str, wants: tuple[list[str], str], assignor: str | None) -> None:
        self.clients[name].start(wants, assignor)
        self.clients[name].beat()

    @rule(name=members, lost=st.booleans(), silent=st.booleans())
    def heartbeat(self, name: str, lost: bool, silent: bool) -> None:  # noqa: FBT001
        if self.clients[name].alive:
            self.clients[name].beat(lost=lost, silent=silent)

    @rule(name=members)
    def let_go(self, name: str) -> None:
        self.clients[name].let_go()

    @rule()
    def everybody_heartbeats(self) -> None:
        for client in self.clients.values():
            if client.alive:
                client.let_go()
                client.beat()

    @rule(name=members, wants=subscriptions)
    def resubscribe(self, name: str, wants: tuple[list[str], str]) -> None:
        client = self.clients[name]
        if client.alive and client.epoch:
            client.subscribe(wants)
            client.beat()

    @rule(name=members)
    def leave(self, name: str) -> None:
        client = self.clients[name]
        beat(self.desk, client.id, -1, instance_id=client.instance_id)
        client.stop()

    @rule(name=static_members)
    def leave_for_a_while(self, name: str) -> None:
        client = self.clients[name]
        before = self.group
        epoch = before.group_epoch if before else 0
        beat(self.desk, client.id, -2, instance_id=client.instance_id)
        client.stop()
        assert (self.group.group_epoch if self.group else 0) == epoch

    @rule(name=static_members, wants=subscriptions)
    def come_back(self, name: str, wants: tuple[list[str], str]) -> None:
        """The next client with the instance id. The one before it may not know that it is dead."""
        former = self.clients[name]
        self.made += 1
        self.clients[name] = client = Client(self.desk, f"{name}{self.made}", former.instance_id)
        client.start(wants, None)
        client.beat()
        self.zombies = [*self.zombies, former][-3:]

    @rule(lost=st.booleans())
    def zombies_heartbeat(self, lost: bool) -> None:  # noqa: FBT001
        for zombie in self.zombies:
            if zombie.alive:
                zombie.beat(lost=lost)

    @rule(name=static_members, other=members)
    def take_an_instance_id(self, name: str, other: str) -> None:
        """Somebody who is in the group already takes the instance id of another."""
        client = self.clients[other]
        if client.alive and other != name:
            client.instance_id = f"i-{name}"
            client.start_over()
            client.beat()

    @rule(name=members)
    def die(self, name: str) -> None:
        self.clients[name].stop()

    @rule(seconds=st.integers(1, 60))
    def wait(self, seconds: int) -> None:
        self.desk.wait(seconds * 1000)

    @rule(name=st.sampled_from(NAMES), partitions=st.integers(0, 6), renewed=st.booleans())
    def change_topic(self, name: str, partitions: int, renewed: bool) -> None:  # noqa: FBT001
        """A topic is made, grows, is deleted, or is deleted and made anew under another id."""
        new_id = topic_id(f"{name}{self.made + 1}")
        self.made += set_topic(self.topics, name, partitions, new_id, renewed=renewed)
        self.desk.topics_changed(Topics(self.topics.values()))

    @rule(held=st.booleans())
    def hold_errands(self, held: bool) -> None:  # noqa: FBT001
        """What is done beside the shard takes as long as it likes."""
        self.desk.errands_held = held
        self.desk.wait(0)

    @rule()
    def crash_and_reload(self) -> None:
        self.desk.restart()

    @precondition(lambda self: self.desk.log)
    @rule(data=st.data(), tombstones=st.booleans())
    def compact_and_reload(self, data: st.DataObject, tombstones: bool) -> None:  # noqa: FBT001
        upto = data.draw(st.integers(0, len(self.desk.log)))
        before = digest(self.desk.shard)
        self.desk.log = compacted(self.desk.log, upto, tombstones=tombstones)
        self.desk.restart()
        assert digest(self.desk.shard) == before

    @rule()
    def settle(self) -> None:
        """K848-085: Once faults stop, the group converges, and then nothing is written any more."""
        self.desk.errands_held = False
        self.zombies = []
        self.desk.wait((SESSION_S + 1) * 1000)
        for name, client in self.clients.items():  # two may have claimed one instance id
            instance_id = f"i-{name}" if name in STATIC else None
            if client.instance_id != instance_id:
                client.stop()
                client.instance_id = instance_id
        for _ in range(10):
            self.everybody_heartbeats()
            self.desk.wait(5000)
        group = self.group
        if group is None:
            return
        note(str(digest(self.desk.shard)))
        alive = {name: client for name, client in self.clients.items() if client.alive}
        assert set(group.members) == {client.id for client in alive.values()}
        assert group.state is (GroupState.STABLE if alive else GroupState.EMPTY)
        wanted = {
            (topic.id, partition)
            for name, topic in self.topics.items()
            for partition in range(topic.partitions)
            if group.subscribes_to(name)
        }
        for expression in group.expressions:
            found = {name for name in self.topics if expressions.matches(expression, name)}
            assert found == self.topics.keys() & set(group.resolved[expression])
        held = {(topic, one) for topic, holders in group.held.items() for one in holders}
        assert held == wanted
        written = len(self.desk.log)
        for client in alive.values():
            client.beat()
            assert client.epoch == group.target_epoch
            mine = {topic_id(topic): ones for topic, ones in client.owned.items()}
            has = {topic: list(ones) for topic, ones in group.members[client.id].assigned.items()}
            assert mine == has
        assert len(self.desk.log) == written

    # -- what always holds

    @invariant()
    def one_owner_per_partition(self) -> None:
        """Of those whose epoch would still be accepted, no two believe that they own the same.

        Holds K848-040, K848-085.
        """
        group = self.group
        believed: dict[tuple[str, int], str] = {}
        for client in (*self.clients.values(), *self.zombies):
            member = group.members.get(client.id) if group else None
            if not client.alive or member is None or client.epoch == 0:
                continue
            if client.epoch != member.epoch and not client.tells_all:
                continue
            for topic, partitions in client.owned.items():
                for partition in partitions:
                    other = believed.setdefault((topic, partition), client.id)
                    assert other == client.id, f"{topic}-{partition}: {other} and {client.id}"

    @invariant()
    def one_member_per_instance_id(self) -> None:
        """K848-106."""
        group = self.group
        if group is not None:
            members = group.members.values()
            instances = {one.instance_id: one.id for one in members if one.instance_id is not None}
            assert group.instances == instances
            assert len(instances) == sum(one.instance_id is not None for one in members)

    @invariant()
    def replay_gives_the_same_state(self) -> None:
        shard = Shard(self.desk.config, lambda: bytes(16), self.desk.known)
        shard.assignors = self.desk.shard.assignors
        replay(shard, *(decode(*encode(record)) for record in self.desk.log))
        assert digest(shard) == digest(self.desk.shard)

    @invariant()
    def epochs_never_go_back(self) -> None:
        """K848-022."""
        group = self.group
        if group is None:
            return
        now = (group.group_epoch, group.target_epoch)
        assert now >= self.group_epochs
        assert now[1] >= self.group_epochs[1]
        assert now[1] <= now[0]
        self.group_epochs = now
        self.epochs = {name: one for name, one in self.epochs.items() if name in group.members}
        for member in group.members.values():
            if member.epoch == AWAY:
                continue
            assert self.epochs.get(member.id, 0) <= member.epoch <= group.target_epoch
            self.epochs[member.id] = member.epoch


GroupMachine.TestCase.settings = settings(
    max_examples=60,
    stateful_step_count=40,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
TestGroups = GroupMachine.TestCase
