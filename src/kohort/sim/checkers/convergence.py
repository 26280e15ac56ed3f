# SPDX-License-Identifier: Apache-2.0
"""When faults stop every group comes to rest: each partition has an owner, and all agree."""

from collections import defaultdict
from typing import ClassVar

from kohort.java import coordinator_partition
from kohort.sim.checkers.checker import Alarm, Checker
from kohort.sim.facts import BitFlipped, MemberAtEnd, PartitionId, TopicsAtEnd

GROUPS_TOPIC = "__consumer_offsets"


class Convergence(Checker):
    """Judged once, by what the members themselves have. Where the log of a shard is damaged nothing
    is expected of its groups: they are refused.
    """

    name: ClassVar[str] = "convergence"
    hears: ClassVar = {MemberAtEnd: "member", TopicsAtEnd: "topics", BitFlipped: "flipped"}

    def __init__(self, alarm: Alarm) -> None:
        super().__init__(alarm)
        self._groups: dict[str, list[MemberAtEnd]] = defaultdict(list)
        self._topics: dict[str, tuple[bytes, int]] = {}
        self._damaged: set[str] = set()

    def member(self, fact: MemberAtEnd) -> None:
        self._groups[fact.group].append(fact)

    def topics(self, fact: TopicsAtEnd) -> None:
        self._topics = fact.topics

    def flipped(self, fact: BitFlipped) -> None:
        self._damaged.add(fact.folder)

    def at_the_end(self) -> None:
        shards = self._topics.get(GROUPS_TOPIC, (b"", 0))[1]
        for group, members in self._groups.items():
            shard = coordinator_partition(group, shards) if shards else 0
            if f"{GROUPS_TOPIC}-{shard}" not in self._damaged:
                self._judge(group, members)

    def _judge(self, group: str, members: list[MemberAtEnd]) -> None:
        epochs = {member.member: member.epoch for member in members}
        if len(set(epochs.values())) > 1:
            self.alarm(f"the members of {group} are at {epochs}")
        owners: dict[PartitionId, str] = {}
        for holder in members:
            for place in sorted(holder.owned):
                other = owners.setdefault(place, holder.member)
                if other != holder.member:
                    self.alarm(f"{place} of {group} has {other} and {holder.member}")
        wanted = {
            (self._topics[name][0], index): name
            for member in members
            for name in member.topics
            if name in self._topics
            for index in range(self._topics[name][1])
        }
        for place, name in wanted.items():
            if place not in owners:
                self.alarm(f"{name}-{place[1]} of {group} has no owner")
        for place, member in owners.items():
            if place not in wanted:
                self.alarm(f"{member} of {group} owns {place}, which nobody reads")
