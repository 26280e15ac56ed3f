"""The topics of the cluster as one shard sees them: an image, replaced as a whole when something
changes.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from kohort.terms import TopicId


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic as the coordinator needs it. A topic created anew under the same name has another
    id.
    """

    id: TopicId
    name: str
    partitions: int


class Topics:
    """All topics, by name and by id. Never changed: `Shard.topics_changed` brings the next one."""

    def __init__(self, topics: Iterable[Topic] = ()) -> None:
        self.by_name: dict[str, Topic] = {topic.name: topic for topic in topics}
        self.by_id: dict[TopicId, Topic] = {topic.id: topic for topic in self.by_name.values()}
