# SPDX-License-Identifier: Apache-2.0
"""A producer id is given to one producer, for ever."""

from typing import ClassVar

from kohort.sim.checkers.checker import Alarm, Checker
from kohort.sim.facts import ProducerIdGiven


class ProducerIds(Checker):
    """Two producers of one id would take each other's batches for their own."""

    name: ClassVar[str] = "producer ids"
    hears: ClassVar = {ProducerIdGiven: "issued"}

    def __init__(self, alarm: Alarm) -> None:
        super().__init__(alarm)
        self._fresh: set[int] = set()
        self._owners: dict[int, str] = {}

    def issued(self, fact: ProducerIdGiven) -> None:
        """Two clients of one transactional id have one producer id, and the answer with its first
        epoch may be the later one to arrive.
        """
        owner = self._owners.setdefault(fact.producer_id, fact.to)
        if not fact.asked_for:
            if owner != fact.to or fact.producer_id in self._fresh:
                self.alarm(f"{fact.producer_id} is given out twice")
            self._fresh.add(fact.producer_id)
