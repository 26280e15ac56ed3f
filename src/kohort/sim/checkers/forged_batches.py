# SPDX-License-Identifier: Apache-2.0
"""A batch that is no honest one is refused, and no log ends behind what was written to it."""

from typing import ClassVar

from kohort.sim.checkers.checker import Checker
from kohort.sim.lasting_facts import (
    EndSeen,
    ForgedAnswered,
)


class ForgedBatchChecker(Checker):
    name: ClassVar[str] = "forged"
    hears: ClassVar = {ForgedAnswered: "answered", EndSeen: "end"}

    def answered(self, fact: ForgedAnswered) -> None:
        if not fact.records and not fact.code:
            self.alarm(f"a batch of the kind {fact.kind!r} is taken")

    def end(self, fact: EndSeen) -> None:
        if fact.end > fact.at_most:
            self.alarm(
                f"{fact.place[0].hex()[:8]}-{fact.place[1]} ends at {fact.end}, and at most"
                f" {fact.at_most} records may count"
            )
