# SPDX-License-Identifier: Apache-2.0
"""What the admin client returns about brokers and topics: frozen views, as in `views`."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Self, cast

from kohort.client.admin.views import Coverage
from kohort.errors import ApiError, ErrorCode
from kohort.security.acls import AclOperation
from kohort.terms import uuid_text


@dataclass(frozen=True, slots=True)
class NodeDescription:
    """A broker of the cluster, and the address it names. `rack` is None when it has none.

    One that `is_fenced` has no part in the cluster now (KIP-1073): it is only there if such are
    asked for.
    """

    node_id: int
    host: str
    port: int
    rack: str | None
    is_fenced: bool = False


class Nodes(tuple[NodeDescription, ...], Coverage):  # noqa: SLOT001  (a tuple cannot have any)
    """The brokers of a cluster, sorted by id, and what is said of the cluster.

    `away` are the ids of those that are not there, as far as topics name them as replicas; a broker
    without any replica is not missed. `cluster_id` is None below Metadata v2. `controller_id` is
    the broker that takes changes, None where there is none. `authorized_operations` are what this
    client may do with the cluster (KIP-430), None unless they are asked for.
    """

    away: tuple[int, ...]
    cluster_id: str | None
    controller_id: int | None
    authorized_operations: frozenset[AclOperation] | None

    def __new__(
        cls,
        nodes: Iterable[NodeDescription] = (),
        *,
        away: tuple[int, ...] = (),
        cluster_id: str | None = None,
        controller_id: int | None = None,
        authorized_operations: frozenset[AclOperation] | None = None,
    ) -> Self:
        made = super().__new__(cls, nodes)
        made.away = away
        made.cluster_id = cluster_id
        made.controller_id = controller_id
        made.authorized_operations = authorized_operations
        return made

    @property
    def missing(self) -> dict[int, ApiError]:
        """The brokers that are away, by id."""
        return {
            node: ApiError(
                ErrorCode.BROKER_NOT_AVAILABLE,
                f"node {node} has replicas and is not among the brokers",
            )
            for node in self.away
        }


@dataclass(frozen=True, slots=True)
class FoundOffset:
    """The answer of ListOffsets. `timestamp_ms` is None for the earliest and latest offset.

    `offset` is None when every record is older than the time asked for.
    """

    offset: int | None
    timestamp_ms: int | None
    leader_epoch: int | None


class _WithTopicId:
    """Shows the id of a topic as Kafka's tools write it."""

    __slots__ = ()

    def __repr__(self) -> str:
        shown = []
        for field in fields(cast("Any", self)):  # its subclasses are dataclasses
            value = getattr(self, field.name)
            is_id = field.name == "topic_id" and value is not None
            shown.append(f"{field.name}={uuid_text(value) if is_id else repr(value)}")
        return f"{type(self).__name__}({', '.join(shown)})"


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to create. -1 leaves the number to the broker's default (KIP-464)."""

    name: str
    partitions: int = -1
    replication_factor: int = -1
    configs: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True, repr=False)
class CreatedTopic(_WithTopicId):
    """What was created. The id is None below CreateTopics v7, the numbers None below v5."""

    name: str
    topic_id: bytes | None
    partitions: int | None
    replication_factor: int | None


@dataclass(frozen=True, slots=True, repr=False)
class TopicListing(_WithTopicId):
    """A topic's name, its id (None below Metadata v10), and how many partitions it has.

    `partitions` is None where the broker does not tell them; `error` says why.
    """

    name: str
    topic_id: bytes | None
    internal: bool
    partitions: int | None
    error: ApiError | None = None


class TopicListings(tuple[TopicListing, ...], Coverage):  # noqa: SLOT001  (as Nodes)
    """All topics, sorted by name."""

    @property
    def missing(self) -> dict[str, ApiError]:
        """The topics that could not be looked at, by name."""
        return {topic.name: topic.error for topic in self if topic.error is not None}


@dataclass(frozen=True, slots=True)
class PartitionDescription:
    """Where a partition is. `leader` is None while it has none; `error` says what is wrong."""

    partition: int
    leader: int | None
    leader_epoch: int | None
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]
    offline: tuple[int, ...]
    error: ApiError | None


@dataclass(frozen=True, slots=True, repr=False)
class TopicDescription(_WithTopicId, Coverage):
    """A topic and its partitions, sorted by index."""

    name: str
    topic_id: bytes | None
    internal: bool
    partitions: tuple[PartitionDescription, ...]

    @property
    def missing(self) -> dict[int, ApiError]:
        """The partitions with an error, by index."""
        return {each.partition: each.error for each in self.partitions if each.error is not None}
