# SPDX-License-Identifier: Apache-2.0
"""What a producer tells is true: what is delivered is there, once and in order, and what certainly
failed is not. A transaction counts as its producer was told.
"""

from collections import defaultdict
from typing import ClassVar

from kohort.sim.checkers.checker import Alarm
from kohort.sim.checkers.final_records import HEARS, FinalRecords
from kohort.sim.programs.facts import (
    DeliveryRefused,
    DeliveryUnresolved,
    Part,
    RecordDelivered,
    SendCalled,
    TransactionConcluded,
)


class Deliveries(FinalRecords):
    name: ClassVar[str] = "delivered"
    hears: ClassVar = {
        **HEARS,
        SendCalled: "sent",
        RecordDelivered: "delivered",
        DeliveryRefused: "not_delivered",
        DeliveryUnresolved: "undelivered",
        TransactionConcluded: "concluded",
    }

    def __init__(self, alarm: Alarm) -> None:
        super().__init__(alarm)
        self._sent: dict[str, dict[bytes, None]] = defaultdict(dict)  # by topic
        self._delivered: dict[bytes, tuple[Part, int]] = {}
        self._order: dict[tuple[str, Part], list[tuple[int, int]]] = defaultdict(list)
        self._failed: set[bytes] = set()
        self._concluded: dict[bytes, bool] = {}

    def sent(self, fact: SendCalled) -> None:
        self._sent[fact.topic][fact.value] = None

    def delivered(self, fact: RecordDelivered) -> None:
        self._delivered[fact.value] = fact.part, fact.offset
        if fact.offset >= 0:
            self._order[fact.client, fact.part].append((fact.number, fact.offset))

    def not_delivered(self, fact: DeliveryRefused) -> None:
        if not fact.maybe:
            self._failed.add(fact.value)

    def undelivered(self, fact: DeliveryUnresolved) -> None:
        self.alarm(f"{fact.client} has closed its producer, and hears nothing of {fact.value!r}")

    def concluded(self, fact: TransactionConcluded) -> None:
        if fact.committed is not None:
            self._concluded.update(dict.fromkeys(fact.values, fact.committed))

    def at_the_end(self) -> None:
        for topic, values in self._sent.items():
            parts = list(self.parts(topic))
            if all(self.records(part, committed=False) is not None for part in parts):
                self._look_at_topic(parts, values)
        for (client, part), sent in self._order.items():
            in_order = [offset for _, offset in sorted(sent)]
            if in_order != sorted(in_order):
                self.alarm(
                    f"{client} has sent to {_shown(part)}, and {in_order} is the order there"
                )

    def _look_at_topic(self, parts: list[Part], values: dict[bytes, None]) -> None:
        found: dict[bytes, tuple[Part, int]] = {}
        visible: set[bytes] = set()
        for part in parts:
            for offset, value in (self.records(part, committed=False) or {}).items():
                if value in values and value in found:
                    self.alarm(f"{value!r} is at {found[value]} and at {(part, offset)}")
                found[value] = part, offset
            visible.update((self.records(part, committed=True) or {}).values())
        for value in values:
            said = self._delivered.get(value)
            if said is not None and not _is_at(said, found.get(value)):
                self.alarm(f"{value!r} is delivered to {said}, and is at {found.get(value)}")
            if value in self._failed and value in found:
                self.alarm(f"{value!r} is certainly not written, and is at {found[value]}")
            committed = self._concluded.get(value)
            if committed is not None and committed != (value in visible):
                told = "committed" if committed else "aborted"
                self.alarm(f"the transaction of {value!r} is {told}, and readers see otherwise")


def _is_at(said: tuple[Part, int], found: tuple[Part, int] | None) -> bool:
    if found is None:
        return False
    return said == found or (said[1] < 0 and said[0] == found[0])


def _shown(part: Part) -> str:
    return f"{part[0]}-{part[1]}"
