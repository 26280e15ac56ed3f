# SPDX-License-Identifier: Apache-2.0
"""What a client knows of the topics: from Metadata, asked now and then."""

from typing import NamedTuple

from kohort.sim.actors.actor import Actor
from kohort.sim.facts import PartitionId, TopicsSeen
from kohort.sim.programs.topics import TOPICS as PROGRAM_TOPICS
from kohort.wire.messages.metadata import MetadataRequest

OURS = ("home", "apples", "pears", "plums")


class TopicInfo(NamedTuple):
    """A topic, and by partition the node that leads it."""

    name: str
    topic_id: bytes
    leaders: tuple[int, ...]
    ours: bool  # any client may write to it: not the broker's own, and not of somebody hostile

    @property
    def audited(self) -> bool:
        """Whether somebody looks at all of it in the end."""
        return self.ours or self.name in PROGRAM_TOPICS

    def places(self) -> list[PartitionId]:
        return [(self.topic_id, index) for index in range(len(self.leaders))]


class PartitionCursor:
    """Looks at one partition after the other, whichever there are just then."""

    def __init__(self, actor: Actor) -> None:
        self._actor = actor
        self._known: dict[str, TopicInfo] = {}

    async def next_or_none(self) -> tuple[PartitionId, int] | None:
        """A partition and the node that leads it. None while there is none."""
        random = self._actor.random
        if not self._known or random.random() < 0.1:
            self._known = await topics_of(self._actor) or {}
        ours = [topic for topic in self._known.values() if topic.ours and topic.leaders]
        if not ours:
            return None
        topic = random.choice(ours)
        index = random.randrange(len(topic.leaders))
        return (topic.topic_id, index), topic.leaders[index]


async def topics_of(actor: Actor) -> dict[str, TopicInfo] | None:
    """All topics by name, or None when nobody answers."""
    sent = actor.stage.loop.now
    answer = await actor.ask(MetadataRequest(topics=None, allow_auto_topic_creation=False), 12)
    if answer is None:
        return None
    found = {
        topic.name: TopicInfo(
            topic.name,
            topic.topic_id,
            tuple(
                part.leader_id
                for part in sorted(topic.partitions, key=lambda part: part.partition_index)
            ),
            topic.name in OURS,
        )
        for topic in answer.topics
        if not topic.error_code
    }
    actor.tell(TopicsSeen({topic.topic_id: name for name, topic in found.items()}, sent))
    return found
