"""What a group has committed and been told so is there, or something newer, or an error is said."""

from collections import defaultdict
from typing import ClassVar

from kohort.sim.checkers.checker import Alarm, Checker
from kohort.sim.facts import CommitLost, CommitRead, CommitsDeleted, CommitSent


class Commits(Checker):
    """A commit is never older, not after a crash either; and nobody reads what nobody sent."""

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
        self._lost: dict[tuple[str, int], set[int]] = defaultdict(set)

    def sent(self, fact: CommitSent) -> None:
        self._sent[fact.group, fact.partition].add(fact.offset)

    def lost(self, fact: CommitLost) -> None:
        self._lost[fact.group, fact.partition].add(fact.offset)

    def deleted(self, fact: CommitsDeleted) -> None:
        place = fact.group, fact.partition
        self._sent[place] = set(self._lost[place])

    def read(self, fact: CommitRead) -> None:
        place = f"{fact.group} partition {fact.partition}"
        if fact.offset < fact.floor and fact.offset not in self._lost[fact.group, fact.partition]:
            self.alarm(f"{place} is at {fact.offset}, acknowledged was {fact.floor}")
        elif fact.offset >= 0 and fact.offset not in self._sent[fact.group, fact.partition]:
            self.alarm(f"{place} is at {fact.offset}, which nobody has committed")
