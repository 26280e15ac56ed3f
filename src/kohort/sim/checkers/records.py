# SPDX-License-Identifier: Apache-2.0
"""A record that was acknowledged, or read, is found where it was, with the value it had."""

from collections import defaultdict
from typing import ClassVar

from kohort.sim.checkers.checker import Alarm, Checker
from kohort.sim.facts import AllRead, PartitionId, RecordKept, RecordRead, RecordSent


class Records(Checker):
    """No offset is given out twice, nothing is read that nobody has sent, and what an idempotent
    producer has sent is there once at most.
    """

    name: ClassVar[str] = "records"
    hears: ClassVar = {
        RecordSent: "sent",
        RecordKept: "kept",
        RecordRead: "kept",
        AllRead: "all_read",
    }

    def __init__(self, alarm: Alarm) -> None:
        super().__init__(alarm)
        self._sent: dict[PartitionId, set[bytes]] = defaultdict(set)
        self._once: set[bytes] = set()
        self._known: dict[PartitionId, dict[int, bytes]] = defaultdict(dict)

    def sent(self, fact: RecordSent) -> None:
        self._sent[fact.place].add(fact.value)
        if fact.once:
            self._once.add(fact.value)

    def kept(self, fact: RecordKept | RecordRead) -> None:
        """Acknowledged, or read by a consumer: in both cases it must stay."""
        before = self._known[fact.place].setdefault(fact.offset, fact.value)
        if before != fact.value:
            self.alarm(
                f"{_shown(fact.place)} offset {fact.offset} is {fact.value!r}, was {before!r}"
            )
        if fact.value not in self._sent[fact.place]:
            self.alarm(
                f"{_shown(fact.place)} offset {fact.offset} is {fact.value!r}, which nobody sent"
            )

    def all_read(self, fact: AllRead) -> None:
        found = fact.values
        for offset, value in self._known[fact.place].items():
            if found.get(offset) != value:
                self.alarm(
                    f"{_shown(fact.place)} has {found.get(offset)!r} at {offset}, "
                    f"acknowledged was {value!r}"
                )
        seen: dict[bytes, int] = {}
        for offset, value in found.items():
            if value in self._once and seen.setdefault(value, offset) != offset:
                self.alarm(f"{_shown(fact.place)} has {value!r} at {seen[value]} and at {offset}")


def _shown(place: PartitionId) -> str:
    return f"{place[0].hex()[:8]}-{place[1]}"
