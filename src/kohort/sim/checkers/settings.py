# SPDX-License-Identifier: Apache-2.0
"""What is set for a group counts from the answer on, also after a crash (KIP-848)."""

from collections import defaultdict
from typing import ClassVar

from kohort.sim.checkers.checker import Alarm, Checker
from kohort.sim.checkers.commits import DOUBT_US
from kohort.sim.facts import SettingLost, SettingRead, SettingSent


class Settings(Checker):
    """The values of a group only grow. One without an answer may come to count later, as a commit
    may, and then stays until another one is set.
    """

    name: ClassVar[str] = "settings"
    hears: ClassVar = {SettingSent: "sent", SettingLost: "lost", SettingRead: "read"}

    def __init__(self, alarm: Alarm) -> None:
        super().__init__(alarm)
        self._sent: dict[str, set[int]] = defaultdict(set)
        self._lost: dict[str, dict[int, int]] = defaultdict(dict)  # value: until
        self._late: dict[str, int] = {}

    def sent(self, fact: SettingSent) -> None:
        self._sent[fact.group].add(fact.value)

    def lost(self, fact: SettingLost) -> None:
        self._lost[fact.group][fact.value] = fact.at + DOUBT_US

    def read(self, fact: SettingRead) -> None:
        group, value = fact.group, fact.value
        if value < fact.floor:
            in_time = self._lost[group].get(value, -1) >= fact.sent
            if not in_time and self._late.get(group) != value:
                self.alarm(f"{group} has {value}, acknowledged was {fact.floor}")
            self._late[group] = value
        else:
            self._late.pop(group, None)
        if fact.floor and value not in self._sent[group]:
            self.alarm(f"{group} has {value}, which nobody has set")
