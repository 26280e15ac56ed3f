"""What the admin client returns: frozen views, one for both group protocols, and `Outcomes`.

Names are upstream's. What a broker did not say (it is too old, or its protocol has no such thing)
is None, never an invented value.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, Generic, Literal, Self, TypeAlias, TypeVar, cast

from kohort.errors import ApiError, ErrorCode
from kohort.security.acls import AclOperation
from kohort.terms import GroupState, GroupType, TopicPartition, uuid_text

Key = TypeVar("Key")
Value = TypeVar("Value")


# The names of GroupState and GroupType, as upstream spells them, beside the enums themselves.
StateName: TypeAlias = (
    GroupState
    | Literal[
        "PreparingRebalance",
        "CompletingRebalance",
        "Stable",
        "Dead",
        "Empty",
        "Assigning",
        "Reconciling",
        "NotReady",
    ]
)
TypeName: TypeAlias = GroupType | Literal["classic", "consumer", "share", "streams"]

OFFSETS_TOPIC = "__consumer_offsets"

# Topic name -> its partitions, sorted.
Assignment = Mapping[str, tuple[int, ...]]


class Coverage:
    """A result that knows what it should have covered."""

    __slots__ = ()

    @property
    def missing(self) -> Mapping[Any, ApiError]:
        """What should be here and is not, each with the reason."""
        raise NotImplementedError

    @property
    def complete(self) -> bool:
        """Whether nothing is missing."""
        return not self.missing


class Outcomes(Coverage, Generic[Key, Value]):
    """The outcome for each thing that was asked for, in that order: a value, or an ApiError.

    A failure hides no other outcome, and cannot be overlooked: `outcomes[key]` gives the value or
    raises the error of that key (KeyError for one that was not asked). `items()` gives values and
    errors without raising, `succeeded` and `failed` one kind each, and `all()` everything, or
    raises the first error.
    """

    __slots__ = ("_outcomes",)

    def __init__(self, outcomes: Mapping[Key, Value | ApiError]) -> None:
        self._outcomes = dict(outcomes)

    def __getitem__(self, key: Key) -> Value:
        outcome = self._outcomes[key]
        if isinstance(outcome, ApiError):
            raise outcome
        return outcome

    def __iter__(self) -> Iterator[Key]:
        return iter(self._outcomes)

    def __len__(self) -> int:
        return len(self._outcomes)

    def __contains__(self, key: object) -> bool:
        return key in self._outcomes

    def __repr__(self) -> str:
        return f"Outcomes({self._outcomes!r})"

    def items(self) -> Iterator[tuple[Key, Value | ApiError]]:
        """Each key with its value or its error."""
        return iter(self._outcomes.items())

    @property
    def succeeded(self) -> dict[Key, Value]:
        """The values of those that succeeded."""
        return {
            key: value for key, value in self._outcomes.items() if not isinstance(value, ApiError)
        }

    @property
    def failed(self) -> dict[Key, ApiError]:
        """The errors of those that failed."""
        return {key: error for key, error in self._outcomes.items() if isinstance(error, ApiError)}

    @property
    def missing(self) -> dict[Any, ApiError]:
        """`failed`, and what failed inside of values: such as the offset of one partition of a
        group, under (group id, partition).
        """
        return {
            (key, inner) if value is not error else key: error
            for key, value in self._outcomes.items()
            for inner, error in _errors_in(value).items()
        }

    def all(self) -> dict[Key, Value]:
        """Everything, if nothing failed. Raises the first error otherwise."""
        for error in self.failed.values():
            raise error
        return self.succeeded


def _errors_in(value: object) -> Mapping[Any, ApiError]:
    """What is missing in an outcome: the whole of it, or parts."""
    if isinstance(value, ApiError):
        return {None: value}
    if isinstance(value, Coverage):
        return value.missing
    if isinstance(value, Mapping):
        return {key: each for key, each in value.items() if isinstance(each, ApiError)}
    return {}


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
class GroupListing:
    """A group as listed by ListGroups (KIP-40, KIP-518, KIP-848).

    `state` and `type` are None when the broker is too old to tell (ListGroups below v4, below v5),
    and the broker's own text when this package does not know it.
    """

    group_id: str
    protocol_type: str
    state: GroupState | str | None
    type: GroupType | str | None


ListedPart: TypeAlias = int | TopicPartition | str
"""A part of a listing: a broker by its id, a coordinator by its partition of __consumer_offsets, or
this topic by its name, for all coordinators."""


@dataclass(frozen=True, slots=True)
class Listings(Coverage):
    """All groups, sorted by id, and what is missing among them, with the reason.

    `errors` has the id of each broker that could not be asked, and the partition of
    __consumer_offsets of each coordinator that could not, such as one that nobody is at the moment:
    their groups are missing from `groups`. `unverified` says why it is not known whether all
    coordinators have answered; None where that is known. `missing` has both.
    """

    groups: tuple[GroupListing, ...]
    errors: Mapping[int | TopicPartition, ApiError]
    unverified: ApiError | None = None

    @property
    def missing(self) -> dict[ListedPart, ApiError]:
        """`errors`, and `unverified` under the name of the topic that it is about."""
        found: dict[ListedPart, ApiError] = dict(self.errors.items())
        if self.unverified is not None:
            found[OFFSETS_TOPIC] = self.unverified
        return found

    def __iter__(self) -> Iterator[GroupListing]:
        return iter(self.groups)

    def __len__(self) -> int:
        return len(self.groups)


@dataclass(frozen=True, slots=True)
class ClientAssignor:
    """An assignor that a member offers (KIP-848), and the versions of metadata that it reads."""

    name: str
    minimum_version: int
    maximum_version: int
    reason: int
    metadata_version: int
    metadata: bytes


@dataclass(frozen=True, slots=True)
class Attachment:
    """What a client-side assignor has added to the partitions of a member. `assignor` has written
    the metadata; where there are none, it has failed.
    """

    error: int
    metadata_version: int
    metadata: bytes
    assignor: str = ""


@dataclass(frozen=True, slots=True)
class ClientSide:
    """Who computes the assignments of a group whose members offer assignors.

    `selected` names the assignor of the next one, and `computing_member` computes it now. The last
    one came about for `last_reason` with `last_error`. `why` says why the broker has computed it,
    or is going to; "" where members do.
    """

    selected: str
    computing_member: str | None
    last_reason: int
    last_error: int
    why: str


@dataclass(frozen=True, slots=True)
class MemberDescription:
    """A member of a group, of either protocol.

    `assignment` is what it has. `target_assignment` is what it should have (KIP-848); None for a
    classic group, where the two do not differ. `assignment` is None where its bytes belong to
    another protocol or are damaged: then `assignment_bytes` has them unchanged. What client-side
    assignors have added is None where the broker has computed.
    """

    member_id: str
    client_id: str
    client_host: str
    instance_id: str | None = None
    rack_id: str | None = None
    type: GroupType | None = None  # a group of KIP-848 may hold classic members (KIP-1099)
    member_epoch: int | None = None
    subscribed_topics: tuple[str, ...] | None = None
    subscribed_regex: str | None = None
    assignment: Assignment | None = None
    target_assignment: Assignment | None = None
    subscription_bytes: bytes = b""
    assignment_bytes: bytes = b""
    client_assignors: tuple[ClientAssignor, ...] = ()  # the first preferred
    attachment: Attachment | None = None
    target_attachment: Attachment | None = None


@dataclass(frozen=True, slots=True)
class GroupDescription:
    """A group and its members, of either protocol.

    `assignor` is the chosen protocol of a classic group, "" while it rebalances, and the
    assignor of a KIP-848 group. The epochs are None for a classic group, and `client_side` for any
    group whose members offer no assignors. `authorized_operations` are what this client may do with
    the group (KIP-430); None where that was not asked for.
    """

    group_id: str
    type: GroupType
    state: GroupState | str
    protocol_type: str
    assignor: str
    coordinator_id: int
    coordinator_host: str
    coordinator_port: int
    group_epoch: int | None
    assignment_epoch: int | None
    members: tuple[MemberDescription, ...]
    client_side: ClientSide | None = None
    authorized_operations: frozenset[AclOperation] | None = None

    @property
    def is_consumer(self) -> bool:
        """Whether members exchange consumers' payloads, so that partitions can be shown."""
        return self.protocol_type == "consumer"


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    """How far a group has read a partition: the offset of the next record it wants.

    `leader_epoch` is None when none was committed, or the broker is too old (OffsetFetch below v5).
    """

    offset: int
    leader_epoch: int | None = None
    metadata: str = ""


# Per partition: the offset, None where nothing is committed, or the error of this partition alone.
GroupOffsets = Mapping[TopicPartition, CommittedOffset | ApiError | None]


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


@dataclass(frozen=True, slots=True)
class GroupConfig:
    """A setting of a group. `own` says that it was set for this group; else the broker's holds."""

    value: str | None
    own: bool
