"""A producer id is given to one producer, for ever."""

from typing import ClassVar

from kohort.sim.checkers.checker import Alarm, Checker
from kohort.sim.facts import ProducerIdGiven


class ProducerIds(Checker):
    """Two producers of one id would take each other's batches for their own."""

    name: ClassVar[str] = "producer ids"
    hears: ClassVar = {ProducerIdGiven: "given"}

    def __init__(self, alarm: Alarm) -> None:
        super().__init__(alarm)
        self._given: set[int] = set()

    def given(self, fact: ProducerIdGiven) -> None:
        if fact.producer_id in self._given and not fact.asked_for:
            self.alarm(f"{fact.producer_id} is given out twice")
        self._given.add(fact.producer_id)
