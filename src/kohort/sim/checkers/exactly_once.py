# SPDX-License-Identifier: Apache-2.0
"""Exactly once: an application that reads, writes and commits in one transaction has written each
record once that its group has passed, and none beyond.
"""

from typing import ClassVar

from kohort.sim.checkers.checker import Alarm
from kohort.sim.checkers.final_records import HEARS, FinalRecords
from kohort.sim.programs.facts import CopyGroup, GroupOffset, Part


class ExactlyOnceChecker(FinalRecords):
    name: ClassVar[str] = "copied"
    hears: ClassVar = {**HEARS, CopyGroup: "copies", GroupOffset: "group_at"}

    def __init__(self, alarm: Alarm) -> None:
        super().__init__(alarm)
        self._groups: dict[str, CopyGroup] = {}
        self._at: dict[tuple[str, Part], int] = {}

    def copies(self, fact: CopyGroup) -> None:
        self._groups[fact.group] = fact

    def group_at(self, fact: GroupOffset) -> None:
        self._at[fact.group, fact.part] = fact.offset

    def at_the_end(self) -> None:
        for group in self._groups.values():
            if not self.coordinators_damaged:
                self._look(group)

    def _look(self, group: CopyGroup) -> None:
        copies: dict[str, Part] = {}
        for part in self.parts(group.target):
            there = self.records(part, committed=True)
            if there is None:
                return
            for value in there.values():
                name = value.decode()
                if name in copies:
                    self.alarm(f"{group.group} has copied {name} twice")
                copies[name] = part
        for part in self.parts(group.source):
            there = self.records(part, committed=True)
            at = self._at.get((group.group, part))
            if there is None or at is None:
                continue
            for offset in there:
                name = f"{part[0]}:{part[1]}:{offset}"
                if offset < at and name not in copies:
                    self.alarm(f"{group.group} is at {at} and has not copied {name}")
                if offset >= at and name in copies:
                    self.alarm(f"{group.group} is at {at} and has copied {name}")
            if there and at <= max(there):
                self.alarm(
                    f"all is calm, and {group.group} is at {at} of {part[0]}-{part[1]}, which ends"
                    f" with {max(there)}"
                )
