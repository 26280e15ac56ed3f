# SPDX-License-Identifier: Apache-2.0
"""Once everything has come to rest all is served again, but for what a flipped bit has damaged."""

from typing import ClassVar

from kohort.sim.checkers.checker import Alarm, Checker
from kohort.sim.facts import BitFlipped, StillUnavailable


class AvailabilityChecker(Checker):
    """Damage takes out the partition it is in, and nothing else."""

    name: ClassVar[str] = "served"
    hears: ClassVar = {BitFlipped: "flipped", StillUnavailable: "not_served"}

    def __init__(self, alarm: Alarm) -> None:
        super().__init__(alarm)
        self._damaged: set[str] = set()

    def flipped(self, fact: BitFlipped) -> None:
        self._damaged.add(fact.folder)

    def not_served(self, fact: StillUnavailable) -> None:
        if fact.folder not in self._damaged:
            self.alarm(f"{fact.folder} answers {fact.code} though nothing fails any more")
