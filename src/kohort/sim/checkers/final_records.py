# SPDX-License-Identifier: Apache-2.0
"""What readers can get of the partitions of programs, once all is over: for checkers that compare
it with what programs were told.
"""

from collections.abc import Iterator

from kohort.sim.checkers.checker import Alarm, Checker
from kohort.sim.facts import AllCommittedRead, AllRead, BitFlipped, TopicsAtEnd
from kohort.sim.programs.facts import Part

HEARS = {
    AllRead: "all_read",
    AllCommittedRead: "all_committed",
    TopicsAtEnd: "topics",
    BitFlipped: "flipped",
}


class FinalRecords(Checker):
    """A part of a file in which a bit was flipped is as good as not read: `None`."""

    def __init__(self, alarm: Alarm) -> None:
        super().__init__(alarm)
        self.flipped_folders: set[str] = set()
        self._names: dict[str, tuple[bytes, int]] = {}
        self._all: dict[tuple[bytes, int], dict[int, bytes]] = {}
        self._committed: dict[tuple[bytes, int], dict[int, bytes]] = {}

    def all_read(self, fact: AllRead) -> None:
        self._all[fact.place] = fact.values

    def all_committed(self, fact: AllCommittedRead) -> None:
        if fact.stopped >= fact.end:
            self._committed[fact.place] = fact.values

    def topics(self, fact: TopicsAtEnd) -> None:
        self._names = fact.topics

    def flipped(self, fact: BitFlipped) -> None:
        self.flipped_folders.add(fact.folder)

    @property
    def coordinators_damaged(self) -> bool:
        """Whether a bit was flipped in what groups or transactions are made of."""
        return any(folder.startswith("__") for folder in self.flipped_folders)

    def records(self, part: Part, *, committed: bool) -> dict[int, bytes] | None:
        """By offset what there is, for those who read committed records and for others."""
        topic, index = part
        if topic not in self._names or f"{topic}-{index}" in self.flipped_folders:
            return None
        read = self._committed if committed else self._all
        return read.get((self._names[topic][0], index))

    def parts(self, topic: str) -> Iterator[Part]:
        """Those that the topic has."""
        if topic in self._names:
            yield from ((topic, index) for index in range(self._names[topic][1]))
