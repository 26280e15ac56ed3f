# SPDX-License-Identifier: Apache-2.0
"""What was refused is as it was, also after a restart, and what was done stays done.

Each thing has one actor who changes it and looks at it, one request after the other: a rule, a
credential, a setting, a topic, a number of partitions.
"""

from typing import ClassVar

from kohort.sim.checkers.checker import Alarm, Checker
from kohort.sim.checkers.commits import DOUBT_US
from kohort.sim.lasting_facts import (
    ChangeDone,
    ChangeLost,
    ChangeRefused,
    StateRead,
)


class RefusalChecker(Checker):
    """A change without an answer may be carried out later, behind others, but only for a while: a
    look after that while tells whether it was.
    """

    name: ClassVar[str] = "refused"
    hears: ClassVar = {
        ChangeDone: "done",
        ChangeRefused: "refused",
        ChangeLost: "lost",
        StateRead: "read",
    }

    def __init__(self, alarm: Alarm) -> None:
        super().__init__(alarm)
        self._now: dict[str, str] = {}  # before the first change anything may be there
        self._lost: dict[str, dict[str, int]] = {}  # thing: value: until when it may be made
        self._refused: dict[str, str] = {}  # the last one

    def done(self, fact: ChangeDone) -> None:
        self._now[fact.thing] = fact.value

    def refused(self, fact: ChangeRefused) -> None:
        self._refused[fact.thing] = fact.value

    def lost(self, fact: ChangeLost) -> None:
        self._lost.setdefault(fact.thing, {})[fact.value] = fact.at + DOUBT_US

    def read(self, fact: StateRead) -> None:
        expected = self._now.setdefault(fact.thing, fact.value)
        lost = self._lost.get(fact.thing, {})
        if fact.value != expected and fact.value not in lost:
            refused = self._refused.get(fact.thing) == fact.value
            self.alarm(
                f"{fact.thing} is {fact.value!r}, {'which was refused, ' if refused else ''}"
                f"expected {expected!r}"
            )
        self._now[fact.thing] = fact.value
        for value in [value for value, until in lost.items() if until < fact.sent]:
            del lost[value]  # it was carried out before this look, or never will be
