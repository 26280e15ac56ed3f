"""The topics of the cluster, kept in one small file that is replaced as a whole.

A change is on the disk before anybody sees it. A topic that is being deleted is remembered until
its logs are gone, so that a crash cannot bring old records back under a new topic of that name.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol
from zlib import crc32

import msgspec

from kohort.coordinator.topics import Topic as TopicImage
from kohort.coordinator.topics import Topics
from kohort.errors import ApiError, Broken, ErrorCode
from kohort.terms import TopicId, uuid_bytes, uuid_text

OFFSETS_TOPIC = "__consumer_offsets"
INTERNAL_TOPICS = frozenset({OFFSETS_TOPIC, "__transaction_state", "__share_group_state"})

_LEGAL_NAME = re.compile(r"[a-zA-Z0-9._-]+")
_LONGEST_NAME = 249
_PRODUCER_ID_BLOCK = 1000


class Topic(msgspec.Struct, frozen=True):
    """One topic. `assignments` has the nodes of each partition where somebody has said them."""

    name: str
    topic_id: TopicId
    partitions: int
    replication_factor: int
    configs: dict[str, str] = msgspec.field(default_factory=dict)
    assignments: dict[int, list[int]] = msgspec.field(default_factory=dict)

    @property
    def is_internal(self) -> bool:
        return self.name in INTERNAL_TOPICS

    def replicas(self, partition: int, nodes: Sequence[int]) -> list[int]:
        """The nodes of a partition, its leader first.

        The nodes of a process share one copy, so this only says whom clients should ask.
        """
        given = self.assignments.get(partition)
        if given and all(node in nodes for node in given):
            return given
        first = (crc32(self.name.encode()) + partition) % len(nodes)
        count = min(self.replication_factor, len(nodes))
        return [nodes[(first + step) % len(nodes)] for step in range(count)]

    def leader(self, partition: int, nodes: Sequence[int]) -> int:
        """The node that serves a partition."""
        if len(nodes) == 1:
            return nodes[0]
        return self.replicas(partition, nodes)[0]


class Store(Protocol):
    """Where the catalog is kept: one text, replaced as a whole and durable when `save` returns."""

    def load(self) -> bytes | None: ...
    def save(self, content: bytes) -> None: ...


class MemoryStore:
    """A store that forgets with the process."""

    def __init__(self) -> None:
        self.content: bytes | None = None

    def load(self) -> bytes | None:
        return self.content

    def save(self, content: bytes) -> None:
        self.content = content


class _Entry(msgspec.Struct, omit_defaults=True):
    """A topic as it stands in the file, where ids are text."""

    name: str
    topic_id: str
    partitions: int
    replication_factor: int
    configs: dict[str, str] = msgspec.field(default_factory=dict)
    assignments: dict[int, list[int]] = msgspec.field(default_factory=dict)


class _Content(msgspec.Struct):
    version: int
    cluster_id: str
    next_producer_id: int = 0
    topics: list[_Entry] = msgspec.field(default_factory=list)
    deleting: list[_Entry] = msgspec.field(default_factory=list)


class Catalog:
    """All topics, by name and by id, and what else must not be forgotten: cluster id, producer ids.

    Topics are in order of creation. Every change raises `version` and gives a new `image`.
    """

    def __init__(self, store: Store, new_cluster_id: Callable[[], str]) -> None:
        self._store = store
        self.by_name: dict[str, Topic] = {}
        self.by_id: dict[TopicId, Topic] = {}
        self._plain_names: dict[str, str] = {}
        self.deleting: list[Topic] = []
        self.version = 0
        self._image: Topics | None = None
        self._next_producer_id = 0
        self._reserved_producer_id = 0
        content = store.load()
        if content is None:
            self.cluster_id = new_cluster_id()
            self._save()
        else:
            self._read(content)

    def image(self) -> Topics:
        """The topics as the coordinator needs them: the same object until something changes."""
        if self._image is None:
            self._image = Topics(
                TopicImage(topic.topic_id, topic.name, topic.partitions)
                for topic in self.by_name.values()
            )
        return self._image

    def create(self, *topics: Topic) -> None:
        """Add topics whose names have been checked with `refuse_name`. Raises StorageError."""
        self._replace({**self.by_name, **{topic.name: topic for topic in topics}})

    def change(self, *topics: Topic) -> None:
        """Replace topics: more partitions, other configs. Raises StorageError."""
        for topic in topics:
            if topic.name not in self.by_name:
                raise Broken(f"topic {topic.name} is changed and does not exist")
        self._replace({**self.by_name, **{topic.name: topic for topic in topics}})

    def delete(self, *topics: Topic) -> None:
        """Take topics away. Call `deleted` when their logs are gone. Raises StorageError."""
        going = {topic.name for topic in topics}
        left = {name: one for name, one in self.by_name.items() if name not in going}
        self._replace(left, [*self.deleting, *topics])

    def deleted(self, *topics: Topic) -> None:
        """Forget topics whose logs are gone."""
        gone = {topic.topic_id for topic in topics}
        self._replace(self.by_name, [one for one in self.deleting if one.topic_id not in gone])

    def new_producer_id(self) -> int:
        """A producer id that was never given before, also before a crash. Raises StorageError.

        Ids are reserved in blocks; the rest of a block is lost when the process ends.
        """
        if self._next_producer_id >= self._reserved_producer_id:
            self._reserved_producer_id = self._next_producer_id + _PRODUCER_ID_BLOCK
            try:
                self._save()
            except BaseException:
                self._reserved_producer_id = self._next_producer_id
                raise
        producer_id = self._next_producer_id
        self._next_producer_id += 1
        return producer_id

    def refuse_name(self, name: str) -> None:
        """Raises ApiError when no topic may be created under this name."""
        check_topic_name(name)
        if name in self.by_name:
            raise ApiError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
        # Metrics turn dots into underscores upstream, so two names must not differ in that alone.
        if "." in name or "_" in name:
            other = self._plain_names.get(_plain(name))
            if other is not None:
                raise ApiError(
                    ErrorCode.INVALID_TOPIC_EXCEPTION,
                    f"Topic '{name}' collides with existing topic: {other}",
                )

    def _replace(self, topics: dict[str, Topic], deleting: list[Topic] | None = None) -> None:
        """Write the next state down, then become it."""
        old = self.by_name, self.deleting
        self.by_name = topics
        self.deleting = self.deleting if deleting is None else deleting
        try:
            self._save()
        except BaseException:
            self.by_name, self.deleting = old
            raise
        self._become(topics)

    def _become(self, topics: Mapping[str, Topic]) -> None:
        self.by_id = {topic.topic_id: topic for topic in topics.values()}
        self._plain_names = {_plain(name): name for name in topics}
        self.version += 1
        self._image = None

    def _save(self) -> None:
        content = _Content(
            version=1,
            cluster_id=self.cluster_id,
            next_producer_id=self._reserved_producer_id,
            topics=[_entry(topic) for topic in self.by_name.values()],
            deleting=[_entry(topic) for topic in self.deleting],
        )
        self._store.save(msgspec.json.format(msgspec.json.encode(content), indent=1))

    def _read(self, data: bytes) -> None:
        try:
            content = msgspec.json.decode(data, type=_Content)
            self.by_name = {one.name: _topic(one) for one in content.topics}
            self.deleting = [_topic(one) for one in content.deleting]
        except ValueError as error:
            raise Broken(f"the catalog of topics cannot be read: {error}") from error
        if content.version != 1:
            raise Broken(f"the catalog of topics has version {content.version}, expected 1")
        self.cluster_id = content.cluster_id
        self._next_producer_id = self._reserved_producer_id = content.next_producer_id
        self._become(self.by_name)


def check_topic_name(name: str) -> None:
    """Raises ApiError for a name that no topic can have."""
    if not name:
        reason = "the empty string is not allowed"
    elif name in (".", ".."):
        reason = f"'{name}' is not allowed"
    elif len(name) > _LONGEST_NAME:
        reason = f"the length of '{name}' is longer than the max allowed length {_LONGEST_NAME}"
    elif not _LEGAL_NAME.fullmatch(name):
        reason = (
            f"'{name}' contains one or more characters other than "
            "ASCII alphanumerics, '.', '_' and '-'"
        )
    else:
        return
    raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {reason}")


def _plain(name: str) -> str:
    return name.replace(".", "_")


def _entry(topic: Topic) -> _Entry:
    return _Entry(
        name=topic.name,
        topic_id=uuid_text(topic.topic_id),
        partitions=topic.partitions,
        replication_factor=topic.replication_factor,
        configs=topic.configs,
        assignments=topic.assignments,
    )


def _topic(entry: _Entry) -> Topic:
    return Topic(
        name=entry.name,
        topic_id=TopicId(uuid_bytes(entry.topic_id)),
        partitions=entry.partitions,
        replication_factor=entry.replication_factor,
        configs=entry.configs,
        assignments=entry.assignments,
    )
