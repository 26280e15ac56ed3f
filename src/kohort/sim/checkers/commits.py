# SPDX-License-Identifier: Apache-2.0
"""What a group has committed and been told so is there, or something newer, or an error is said."""

from collections import defaultdict
from typing import ClassVar

from kohort.sim.checkers.checker import Alarm, Checker
from kohort.sim.facts import CommitLost, CommitRead, CommitsDeleted, CommitSent

DOUBT_US = 90_000_000  # longer than anything can be on its way


class Commits(Checker):
    """A commit is never older, not after a crash either; and nobody reads what nobody sent.

    A commit without an answer may be carried out behind later ones, but only for a while: a later
    look that finds it is excused as long as `DOUBT_US`, and as long as it is what was found then.
    """

    name: ClassVar[str] = "commits"
    hears: ClassVar = {
        CommitSent: "sent",
        CommitLost: "lost",
        CommitsDeleted: "deleted",
        CommitRead: "read",
    }

    def __init__(self, alarm: Alarm) -> None:
        super().__init__(alarm)
        self._sent: dict[tuple[str, int], set[int]] = defaultdict(set)
        self._lost: dict[tuple[str, int], dict[int, int]] = defaultdict(dict)  # offset: until
        self._late: dict[tuple[str, int], int] = {}  # carried out behind a later one: is there now

    def sent(self, fact: CommitSent) -> None:
        self._sent[fact.group, fact.partition].add(fact.offset)

    def lost(self, fact: CommitLost) -> None:
        self._lost[fact.group, fact.partition][fact.offset] = fact.at + DOUBT_US

    def deleted(self, fact: CommitsDeleted) -> None:
        place = fact.group, fact.partition
        self._sent[place] = set(self._lost[place])
        self._late.pop(place, None)

    def read(self, fact: CommitRead) -> None:
        key = fact.group, fact.partition
        place = f"{fact.group} partition {fact.partition}"
        if fact.offset < fact.floor:
            in_time = self._lost[key].get(fact.offset, -1) >= fact.sent
            if not in_time and self._late.get(key) != fact.offset:
                self.alarm(f"{place} is at {fact.offset}, acknowledged was {fact.floor}")
            self._late[key] = fact.offset
        else:
            self._late.pop(key, None)
        if fact.offset >= 0 and fact.offset not in self._sent[key]:
            self.alarm(f"{place} is at {fact.offset}, which nobody has committed")
