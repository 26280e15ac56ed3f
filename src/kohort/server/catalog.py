# SPDX-License-Identifier: Apache-2.0
"""The topics of the cluster, with the settings, rules and credentials that were set while it ran,
in one small file that is always replaced as a whole.

A change is on the disk before it can be seen. A topic that is being deleted is remembered until its
logs are gone, so that a crash cannot bring old records back under a new topic of that name.

The file has a checksum, and a copy beside it. A catalog that is lost without being noticed would
give producer ids out again and take all settings away.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import NamedTuple, Protocol
from zlib import crc32

import msgspec

from kohort.errors import ApiError, Broken, ErrorCode, StorageError
from kohort.machines.topics import Topic as TopicImage
from kohort.machines.topics import Topics
from kohort.runtime.observers import Observer
from kohort.server.scram import ScramCredential
from kohort.storage.directory import KAFKA_METADATA
from kohort.terms import TopicId, topic_name_fault, uuid_bytes, uuid_text

OFFSETS_TOPIC = "__consumer_offsets"
TRANSACTIONS_TOPIC = "__transaction_state"
INTERNAL_TOPICS = frozenset({OFFSETS_TOPIC, TRANSACTIONS_TOPIC, "__share_group_state"})

PARTITIONS_MAX = 10_000  # of one topic; upstream takes as many in one request
_PRODUCER_ID_BLOCK = 1000
# Raised with every field that is added: a broker that does not know it must not take the file for
# damaged, nor write it again without it. 3: settings of brokers, rules, credentials. 4: the secret
# of which salts of unknown users are made up.
_VERSION = 4
_WITH_CHECKSUM = 2
_WITHOUT_CHECKSUM = 1  # of an older broker, or written by hand
# How far above what was given an id of a log may be and still move those that are given next. What
# is further away was invented by a client, and counting does not get there in the life of a broker.
_PRODUCER_IDS_NEAR = 1 << 40
_PRODUCER_ID_FAR = 1 << 55  # from here on to twice of it: where ids begin that must meet no other


class Topic(msgspec.Struct, frozen=True):
    """One topic. `assignments` has the nodes of each partition, where a client has named them."""

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

        The nodes of a process share one copy, so this only says which nodes clients should ask.
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


class Acl(msgspec.Struct, frozen=True, order=True):
    """A rule: who may, or may not, do what from where with which things. Numbers are upstream's."""

    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission_type: int


class NewerCatalogError(StorageError):
    """A catalog that a later Kohort has written: it is left as it is, and no older copy is used."""


class Copy(NamedTuple):
    """One of the texts that a store has kept, or why it cannot be read."""

    name: str
    content: bytes | StorageError


class Store(Protocol):
    """Where the catalog is kept: one text, replaced as a whole and durable when `save` returns."""

    def load(self) -> list[Copy]:
        """What was saved last, then an older one; those that are there."""

    def settle(self) -> None:
        """Make durable what `load` has found. Raises StorageError."""

    def save(self, content: bytes) -> None:
        """Raises UnsettledError where this may or may not be what `load` finds, and another
        StorageError where what was saved before still stands.
        """

    def set_aside(self, copy: Copy) -> None:
        """Keep one that is damaged for whoever wants to look at it. Raises StorageError."""


class MemoryStore:
    """A store that forgets with the process."""

    def __init__(self) -> None:
        self.content: bytes | None = None

    def load(self) -> list[Copy]:
        return [] if self.content is None else [Copy("memory", self.content)]

    def settle(self) -> None:
        """Nothing is."""

    def save(self, content: bytes) -> None:
        self.content = content

    def set_aside(self, copy: Copy) -> None:
        """There is only one."""


class _Entry(msgspec.Struct, omit_defaults=True):
    """A topic as it stands in the file, where ids are text."""

    name: str
    topic_id: str
    partitions: int
    replication_factor: int
    configs: dict[str, str] = msgspec.field(default_factory=dict)
    assignments: dict[int, list[int]] = msgspec.field(default_factory=dict)


class _Content(msgspec.Struct, omit_defaults=True):
    version: int
    cluster_id: str
    checksum: str = ""  # of everything else
    next_producer_id: int = 0
    topics: list[_Entry] = msgspec.field(default_factory=list)
    deleting: list[_Entry] = msgspec.field(default_factory=list)
    broker_configs: dict[str, dict[str, str]] = msgspec.field(default_factory=dict)
    acls: list[Acl] = msgspec.field(default_factory=list)
    scram_credentials: list[ScramCredential] = msgspec.field(default_factory=list)
    decoy_secret: bytes = b""


class _VersionedFile(msgspec.Struct):
    """What every version of the file has."""

    version: int


class Draft:
    """The topics as they will be: a copy, for judging and making changes. So are the settings of
    brokers, by id and "" for all of them, the rules, and the credentials by user and mechanism.

    `Catalog.save` writes it down, and `Catalog.become` then makes it count.
    """

    def __init__(
        self,
        topics: Mapping[str, Topic],
        deleting: Sequence[Topic],
        reserved_producer_id: int,
        broker_configs: Mapping[str, dict[str, str]] = MappingProxyType({}),
        acls: Sequence[Acl] = (),
        credentials: Mapping[tuple[str, int], ScramCredential] = MappingProxyType({}),
        decoy_secret: bytes = b"",
    ) -> None:
        self.by_name = dict(topics)
        self.by_id = {topic.topic_id: topic for topic in topics.values()}
        self.deleting = list(deleting)
        self.reserved_producer_id = reserved_producer_id
        self.broker_configs = dict(broker_configs)
        self.acls = tuple(acls)
        self.credentials = dict(credentials)
        self.decoy_secret = decoy_secret
        self.changed = False
        self.partitions = sum(topic.partitions for topic in self.by_name.values())
        self._plain_names = {_plain(name): name for name in topics}

    def scratch(self) -> "Draft":
        """Another draft of the same topics, to try changes in."""
        return Draft(
            self.by_name,
            self.deleting,
            self.reserved_producer_id,
            self.broker_configs,
            self.acls,
            self.credentials,
            self.decoy_secret,
        )

    def configure_broker(self, name: str, texts: dict[str, str]) -> None:
        """Set all that is set for a broker, or for all of them (the empty name)."""
        self.broker_configs.pop(name, None)
        if texts:
            self.broker_configs[name] = texts
        self.changed = True

    def set_acls(self, acls: Sequence[Acl]) -> None:
        """Replace the rules."""
        self.acls = tuple(acls)
        self.changed = True

    def set_credentials(
        self,
        credentials: Mapping[tuple[str, int], ScramCredential],
        new_secret: Callable[[], bytes],
    ) -> None:
        """Replace the credentials of all users. With the first of them a secret is made, which is
        kept for good: of it, salts of users are made up that are not there.
        """
        self.credentials = dict(sorted(credentials.items()))
        self.decoy_secret = self.decoy_secret or new_secret()
        self.changed = True

    def put(self, topic: Topic) -> None:
        """Add a topic whose name has been checked with `refuse_name`, or replace one: more
        partitions, other configs.
        """
        known = self.by_name.get(topic.name)
        if known is not None and known.topic_id != topic.topic_id:
            raise Broken(f"topic {topic.name} is made while there is one of that name")
        self.partitions += topic.partitions - (0 if known is None else known.partitions)
        self.by_name[topic.name] = topic
        self.by_id[topic.topic_id] = topic
        self._plain_names[_plain(topic.name)] = topic.name
        self.changed = True

    def delete(self, *topics: Topic) -> None:
        """Take topics away. Call `deleted` when their logs are gone."""
        for topic in topics:
            del self.by_name[topic.name]
            del self.by_id[topic.topic_id]
            self._plain_names.pop(_plain(topic.name), None)
            self.partitions -= topic.partitions
        self.deleting += topics
        self.changed = True

    def deleted(self, *topics: Topic) -> None:
        """Forget topics whose logs are gone."""
        gone = {topic.topic_id for topic in topics}
        self.deleting = [topic for topic in self.deleting if topic.topic_id not in gone]
        self.changed = True

    def reserve_producer_ids(self) -> None:
        """Allow another block of producer ids."""
        self.reserved_producer_id += _PRODUCER_ID_BLOCK
        self.changed = True

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


class Catalog:
    """All topics, by name and by id, with the cluster id and the producer ids that are used up.

    Topics are in order of creation. Every change gives a new `image`. A change is made in a
    `draft`, written by `save`, which may run on another thread, and counts from `become` on.
    """

    def __init__(self, store: Store, new_cluster_id: Callable[[], str], observe: Observer) -> None:
        """Raises Broken when a catalog is there and no copy of it can be read, StorageError when it
        cannot be made durable or is of a later version.
        """
        self._store = store
        self.by_name: dict[str, Topic] = {}
        self.by_id: dict[TopicId, Topic] = {}
        self.deleting: list[Topic] = []
        self.broker_configs: dict[str, dict[str, str]] = {}
        self.acls: tuple[Acl, ...] = ()
        self.credentials: dict[tuple[str, int], ScramCredential] = {}
        self.decoy_secret = b""  # until there is a first credential
        self.known_image: Topics | None = None
        self._next_producer_id = 0
        self._reserved_producer_id = 0
        self._count_producer_ids_from(0)
        copies = store.load()
        self.is_new = not copies  # nothing was saved before
        if self.is_new:
            self.cluster_id = new_cluster_id()
            self.save(self.draft())
        else:
            self._read_first_whole(copies, observe)

    def image(self, racks: Callable[[Topic], tuple[tuple[str, ...], ...]]) -> Topics:
        """The topics as the coordinator needs them: the same object until something changes.
        `racks` tells those of the replicas of each partition, and always the same.
        """
        if self.known_image is None:
            self.known_image = Topics(
                TopicImage(topic.topic_id, topic.name, topic.partitions, racks(topic))
                for topic in self.by_name.values()
            )
        return self.known_image

    def draft(self) -> Draft:
        """A copy of what counts now, for making changes. There must be one at a time."""
        reserved = max(self._reserved_producer_id, self._next_producer_id)
        return Draft(
            self.by_name,
            self.deleting,
            reserved,
            self.broker_configs,
            self.acls,
            self.credentials,
            self.decoy_secret,
        )

    def save(self, draft: Draft) -> None:
        """Make a draft durable. Raises UnsettledError where it may be so, and another StorageError
        where the old state still stands.
        """
        content = _Content(
            version=_VERSION,
            cluster_id=self.cluster_id,
            next_producer_id=draft.reserved_producer_id,
            topics=[_entry(topic) for topic in draft.by_name.values()],
            deleting=[_entry(topic) for topic in draft.deleting],
            broker_configs=draft.broker_configs,
            acls=list(draft.acls),
            scram_credentials=list(draft.credentials.values()),
            decoy_secret=draft.decoy_secret,
        )
        content.checksum = _checksum(content)
        self._store.save(msgspec.json.format(msgspec.json.encode(content), indent=1))

    def become(self, draft: Draft, *, settled: bool = True) -> None:
        """Let a draft that is written count. No producer id is given of one that is not durable:
        `settled` says that it is.
        """
        self.by_name = draft.by_name
        self.by_id = draft.by_id
        self.deleting = draft.deleting
        self.broker_configs = draft.broker_configs
        self.acls = draft.acls
        self.credentials = draft.credentials
        self.decoy_secret = draft.decoy_secret
        if settled:
            self._reserved_producer_id = draft.reserved_producer_id
        self.known_image = None

    def create(self, *topics: Topic) -> None:
        """Add topics at once, before anybody is served. Raises StorageError."""
        draft = self.draft()
        for topic in topics:
            draft.put(topic)
        self.save(draft)
        self.become(draft)

    @property
    def has_producer_ids(self) -> bool:
        """Whether `next_producer_id` gives one."""
        return self._next_producer_id < self._reserved_producer_id

    def next_producer_id(self) -> int | None:
        """A producer id that was never given out before, not even before a crash. None when the
        reserved ones are used up; then call `Draft.reserve_producer_ids`.

        Ids are reserved in blocks; the rest of a block is lost when the process ends.
        """
        if self._next_producer_id >= self._reserved_producer_id:
            return None
        producer_id = self._next_producer_id
        self._next_producer_id += 1
        return producer_id

    def note_producer_id(self, producer_id: int) -> None:
        """A log holds this id: those that are given from now on are above it. Whoever got it a
        second time would see new records thrown away as written before.
        """
        if producer_id < self.producer_ids_below:
            self._next_producer_id = max(self._next_producer_id, producer_id + 1)

    def begin_producer_ids_far_off(self, random: bytes) -> None:
        """Logs hold ids that cannot be told from inventions, and what was given is not known: go on
        at a place that nobody has foreseen. It is durable with the next save.
        """
        first = _PRODUCER_ID_FAR + int.from_bytes(random) % _PRODUCER_ID_FAR
        self._next_producer_id = max(self._next_producer_id, first)
        self._count_producer_ids_from(self._next_producer_id)

    def _count_producer_ids_from(self, given: int) -> None:
        self.producer_ids_below = given + _PRODUCER_IDS_NEAR

    def _read_first_whole(self, copies: list[Copy], observe: Observer) -> None:
        reasons = []
        for copy in copies:
            try:
                self._read(copy)
            except NewerCatalogError:
                raise
            except (Broken, StorageError) as error:
                reasons.append(str(error))
            else:
                break
        else:
            raise Broken(f"the catalog of topics is damaged: {'; '.join(reasons)}")
        if not reasons:
            # Its name may be younger than what the disk has kept: nobody may be told of topics that
            # a loss of power takes back.
            self._store.settle()
            if len(copies) < 2 or copies[1].content != copy.content:
                with suppress(StorageError):  # the disk is full, and the broker starts all the same
                    self.save(self.draft())
            return
        observe.warning(
            f"{'; '.join(reasons)}; {copy.name} is used instead: "
            "what was changed about topics just before the damage may be missing"
        )
        self._store.set_aside(copies[0])
        # It may be of before the last block.
        self.note_producer_id(self._reserved_producer_id + _PRODUCER_ID_BLOCK)
        draft = self.draft()
        self.save(draft)
        self.become(draft)

    def _read(self, copy: Copy) -> None:
        content, topics, deleting = _decoded(copy)
        self.cluster_id = content.cluster_id
        self._next_producer_id = content.next_producer_id
        reserved = content.next_producer_id
        self._count_producer_ids_from(reserved)
        credentials = {(known.user, known.mechanism): known for known in content.scram_credentials}
        self.become(
            Draft(
                topics,
                deleting,
                reserved,
                content.broker_configs,
                content.acls,
                credentials,
                content.decoy_secret,
            )
        )


def saved_topics(copies: Sequence[Copy]) -> dict[str, TopicId]:
    """The topics of the first copy that can be read; none where nothing was saved. Raises Broken
    when no copy can be read.
    """
    reasons = []
    for copy in copies:
        try:
            _, topics, _ = _decoded(copy)
        except NewerCatalogError as error:
            raise Broken(str(error)) from error
        except (Broken, StorageError) as error:
            reasons.append(str(error))
        else:
            return {name: topic.topic_id for name, topic in topics.items()}
    if reasons:
        raise Broken("; ".join(reasons))
    return {}


def _decoded(copy: Copy) -> tuple[_Content, dict[str, Topic], list[Topic]]:
    """A copy with its topics, and those that are being deleted. Raises Broken or StorageError."""
    if isinstance(copy.content, StorageError):
        raise copy.content
    try:
        version = msgspec.json.decode(copy.content, type=_VersionedFile).version
        if version > _VERSION and not _is_of_version(_VERSION, copy.content):
            raise NewerCatalogError(
                f"{copy.name} has version {version}, expected {_VERSION} at most: a newer Kohort "
                "has written it, and only that one can go on with it"
            )
        content = msgspec.json.decode(copy.content, type=_Content)
        topics = {topic.name: _topic(topic) for topic in content.topics}
        deleting = [_topic(topic) for topic in content.deleting]
    except ValueError as error:
        raise Broken(f"{copy.name} cannot be read: {error}") from error
    if not _WITHOUT_CHECKSUM <= version <= _VERSION:
        raise Broken(f"{copy.name} has version {version}, expected {_VERSION}")
    expected = _checksum(content)
    if version >= _WITH_CHECKSUM and content.checksum != expected:
        raise Broken(f"{copy.name} has checksum {content.checksum}, its content {expected}")
    return content, topics, deleting


def _is_of_version(version: int, text: bytes) -> bool:
    """Whether a text has been of a version: what it says itself may be a flipped bit."""
    try:
        content = msgspec.json.decode(text, type=_Content)
    except ValueError:
        return False
    return content.checksum == _checksum(msgspec.structs.replace(content, version=version))


def check_topic_name(name: str) -> None:
    """Raises ApiError for a name that no topic can have."""
    reason = topic_name_fault(name)
    if reason is None and name == KAFKA_METADATA:
        reason = f"'{name}' is the log of a Kafka controller"
    if reason is not None:
        raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {reason}")


def _checksum(content: _Content) -> str:
    """CRC-32 of everything that means something, 8 digits: how the text is laid out does not."""
    return f"{crc32(msgspec.json.encode(msgspec.structs.replace(content, checksum=''))):08x}"


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
