# SPDX-License-Identifier: Apache-2.0
"""A topic that is deleted stays deleted, and one that was made stays until somebody deletes it."""

from typing import ClassVar

from kohort.sim.checkers.checker import Alarm, Checker
from kohort.sim.facts import (
    RecordKept,
    RecordRead,
    TopicDeleted,
    TopicDoubtful,
    TopicMade,
    TopicsSeen,
)


class Deletion(Checker):
    """Judged by answers to questions that were sent after the change was acknowledged."""

    name: ClassVar[str] = "deletion"
    hears: ClassVar = {
        TopicMade: "made",
        TopicDoubtful: "doubtful",
        TopicDeleted: "deleted",
        TopicsSeen: "seen",
        RecordKept: "used",
        RecordRead: "used",
    }

    def __init__(self, alarm: Alarm) -> None:
        super().__init__(alarm)
        self._made: dict[bytes, TopicMade] = {}
        self._doubtful: set[bytes] = set()
        self._deleted: dict[bytes, int] = {}

    def made(self, fact: TopicMade) -> None:
        if fact.topic_id not in self._doubtful:  # the answer may be slower than somebody else
            self._made[fact.topic_id] = fact

    def doubtful(self, fact: TopicDoubtful) -> None:
        self._doubtful.add(fact.topic_id)
        self._made.pop(fact.topic_id, None)

    def deleted(self, fact: TopicDeleted) -> None:
        self._deleted.setdefault(fact.topic_id, fact.at)

    def seen(self, fact: TopicsSeen) -> None:
        for topic_id, name in fact.topics.items():
            if self._deleted.get(topic_id, fact.sent) < fact.sent:
                self.alarm(f"{name} ({topic_id.hex()[:8]}) is back")
        for topic_id, made in self._made.items():
            if made.at < fact.sent and topic_id not in fact.topics:
                self.alarm(f"{made.name} ({topic_id.hex()[:8]}) is gone, and nobody deleted it")

    def used(self, fact: RecordKept | RecordRead) -> None:
        topic_id = fact.place[0]
        if self._deleted.get(topic_id, fact.sent) < fact.sent:
            self.alarm(f"{topic_id.hex()[:8]} is deleted, and still has offset {fact.offset}")
