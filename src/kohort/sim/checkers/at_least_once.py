# SPDX-License-Identifier: Apache-2.0
"""At least once: what a group has committed was processed, and in the end all is.

A commit says that everything before it is done with. So there is no record before a group's
committed offset that no application of the group has finished. When all has been calm for long,
each partition has come to its end.
"""

from collections import defaultdict
from typing import ClassVar

from kohort.sim.checkers.checker import Alarm
from kohort.sim.checkers.final_records import HEARS, FinalRecords
from kohort.sim.programs.facts import (
    FinalPositions,
    GroupOffset,
    Part,
    PartitionsAssigned,
    RecordProcessed,
)


class AtLeastOnceChecker(FinalRecords):
    name: ClassVar[str] = "processed"
    hears: ClassVar = {
        **HEARS,
        PartitionsAssigned: "assigned",
        RecordProcessed: "finished",
        GroupOffset: "group_at",
        FinalPositions: "at_rest",
    }

    def __init__(self, alarm: Alarm) -> None:
        super().__init__(alarm)
        self._committed_only: dict[str, bool] = {}  # by group
        self._finished: dict[tuple[str, Part], set[int]] = defaultdict(set)
        self._at: dict[tuple[str, Part], int] = {}
        self._positions: dict[tuple[str, Part], int] = {}
        self._reads: dict[str, dict[str, None]] = defaultdict(dict)  # topics by group

    def assigned(self, fact: PartitionsAssigned) -> None:
        self._committed_only[fact.group] = fact.committed_only

    def finished(self, fact: RecordProcessed) -> None:
        self._finished[fact.group, fact.part].add(fact.offset)

    def group_at(self, fact: GroupOffset) -> None:
        self._at[fact.group, fact.part] = fact.offset

    def at_rest(self, fact: FinalPositions) -> None:
        if not fact.inside and not self.coordinators_damaged:
            self.alarm(f"all is calm, and {fact.client} is no member of {fact.group}")
        self._reads[fact.group].update(dict.fromkeys(fact.topics))
        for part, position in fact.positions.items():
            before = self._positions.get((fact.group, part), -1)
            self._positions[fact.group, part] = max(before, position)

    def at_the_end(self) -> None:
        for (group, part), offset in self._at.items():
            there = self._there(group, part)
            done = self._finished[group, part]
            lost = [at for at in there if at < offset and at not in done]
            if lost:
                self.alarm(
                    f"{group} has committed {offset} of {part[0]}-{part[1]}, and nobody has"
                    f" processed {len(lost)} records before it, from {lost[0]} on"
                )
        for group, topics in self._reads.items():
            for topic in topics:
                for part in self.parts(topic):
                    self._look_at_rest(group, part)

    def _there(self, group: str, part: Part) -> dict[int, bytes]:
        committed = self._committed_only.get(group)
        found = None if committed is None else self.records(part, committed=committed)
        return {} if found is None or self.coordinators_damaged else found

    def _look_at_rest(self, group: str, part: Part) -> None:
        last = max(self._there(group, part), default=-1)
        position = self._positions.get((group, part))
        if last >= 0 and (position is None or position <= last):
            self.alarm(
                f"all is calm, and {group} is at {position} of {part[0]}-{part[1]}, which ends"
                f" with {last}"
            )
