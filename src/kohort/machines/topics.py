# SPDX-License-Identifier: Apache-2.0
"""The topics of the cluster as one shard sees them: an image, replaced whole at each change."""

from collections.abc import Iterable
from dataclasses import dataclass

from kohort.terms import TopicId


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic as the coordinator needs it. A topic made anew under the same name has a new id.
    `racks` are those of the replicas of each partition, or empty where no node has one.
    """

    id: TopicId
    name: str
    partitions: int
    racks: tuple[tuple[str, ...], ...] = ()


class Topics:
    """All topics, by name and by id. An image never changes: `topics_changed` brings the next."""

    def __init__(self, topics: Iterable[Topic] = ()) -> None:
        self.by_name: dict[str, Topic] = {topic.name: topic for topic in topics}
        self.by_id: dict[TopicId, Topic] = {topic.id: topic for topic in self.by_name.values()}
