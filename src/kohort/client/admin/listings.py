"""All groups of a cluster (KIP-40, KIP-518, KIP-848), and what is missing among them.

A broker lists the groups that it coordinates, so groups whose coordinator is nobody are in no
answer. The partitions of __consumer_offsets say which coordinators there must be: each is asked
through its leader, and one that has no leader, or has moved behind our back, is named.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Self, TypeAlias, TypeVar

from kohort.client.admin.answers import Arrived
from kohort.client.admin.request_rounds import settle
from kohort.client.admin.views import OFFSETS_TOPIC, GroupListing, ListedPart, Listings
from kohort.client.network.cluster import Cluster, Node, nodes_of, unanswered
from kohort.client.network.connection import Need
from kohort.errors import ApiError, ErrorCode, UnsupportedVersionError, api_error
from kohort.terms import CONSUMER_PROTOCOLS, GroupState, GroupType, TopicPartition
from kohort.wire.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from kohort.wire.messages.metadata import MetadataResponse

BY_STATE = Need(4, "filtering by state", "KIP-518, Apache Kafka 2.6")
BY_TYPE = Need(5, "filtering by type", "KIP-848, Apache Kafka 3.8")

_ROUNDS = 5  # how often coordinators may move between a question and the look behind it
_STATES = {state.value: state for state in GroupState}
_TYPES = {type_.value: type_ for type_ in GroupType}

Word = TypeVar("Word", bound=StrEnum)
Part: TypeAlias = int | TopicPartition
"""A node by its id, or a coordinator by its partition of __consumer_offsets."""


@dataclass(frozen=True)
class _Coordinators:
    """The brokers, and who coordinates the groups of each partition of __consumer_offsets: None for
    nobody, be it without a leader or with one that cannot read it.
    `unverified` says why the partitions are not known.
    """

    nodes: Mapping[int, Node]
    leaders: Mapping[TopicPartition, int | None]
    unverified: ApiError | None

    @classmethod
    def of(cls, metadata: MetadataResponse) -> Self:
        nodes = nodes_of(metadata)
        topic = next((topic for topic in metadata.topics if topic.name == OFFSETS_TOPIC), None)
        if topic is None:
            return cls(nodes, {}, _unverified(unanswered("topic", OFFSETS_TOPIC)))
        if topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:  # no group has ever been
            return cls(nodes, {}, None)
        if topic.error_code:
            return cls(nodes, {}, _unverified(api_error(topic.error_code)))
        leaders = {
            TopicPartition(OFFSETS_TOPIC, partition.partition_index): (
                partition.leader_id
                if partition.leader_id in nodes
                and partition.leader_id not in partition.offline_replicas
                else None
            )
            for partition in topic.partitions
        }
        return cls(nodes, dict(sorted(leaders.items())), None)

    def place(self, part: Part) -> Node | ApiError:
        """Whom to ask for a part."""
        node_id = part if isinstance(part, int) else self.leaders.get(part)
        if node_id is not None and node_id in self.nodes:
            return self.nodes[node_id]
        if isinstance(part, int):
            return ApiError(ErrorCode.BROKER_NOT_AVAILABLE, f"node {part} is no broker any more")
        text = f"nobody coordinates partition {part.partition} of {OFFSETS_TOPIC}"
        return ApiError(ErrorCode.LEADER_NOT_AVAILABLE, text)


def _unverified(error: ApiError) -> ApiError:
    return ApiError(
        error.code,
        f"whether all coordinators have answered is not known: {OFFSETS_TOPIC} cannot be looked at "
        f"({error.message or error.code.name})",
    )


async def list_groups(
    cluster: Cluster,
    *,
    states: Iterable[str] | None,
    types: Iterable[str] | None,
    protocols: Collection[str] | None = None,
    deadline: float,
    arrived: Arrived[ListedPart, tuple[GroupListing, ...]] | None = None,
) -> Listings:
    """See `AdminClient.list_groups`."""
    wanted_states = _words(GroupState, "state", states)
    wanted_types = _words(GroupType, "type", types)
    need = BY_TYPE if wanted_types else BY_STATE if wanted_states else None
    request = ListGroupsRequest(states_filter=wanted_states, types_filter=wanted_types)
    sweep = _Sweep(cluster, request, need, protocols)
    sweep.arrived = arrived
    await sweep.run(deadline)
    listings = sweep.listings()
    if arrived is not None:
        for part, error in listings.missing.items():
            arrived(part, error)
    return listings


class _Sweep:
    """One request to each broker, which covers the coordinators that it has; and to those again
    that others have taken over meanwhile.
    """

    def __init__(
        self,
        cluster: Cluster,
        request: ListGroupsRequest,
        need: Need | None,
        protocols: Collection[str] | None,
    ) -> None:
        self.arrived: Arrived[ListedPart, tuple[GroupListing, ...]] | None = None
        self._cluster = cluster
        self._request = request
        self._need = need
        self._protocols = protocols
        self._known = _Coordinators({}, {}, None)
        self._is_fresh = False  # nobody has used what is known yet
        self._outcomes: dict[Part, int | ApiError] = {}  # the node that has listed its groups
        self._groups: dict[str, GroupListing] = {}

    async def run(self, deadline: float) -> None:
        await self._look(deadline)
        parts: list[Part] = [*self._known.nodes, *self._known.leaders]
        for _ in range(_ROUNDS):
            self._outcomes |= await settle(
                self._cluster, parts, self._locate, self._ask, deadline=deadline
            )
            try:
                await self._look(deadline)
            except ApiError as error:
                self._known = replace(self._known, unverified=_unverified(error))
                return
            parts = [*self._moved()]
            if not parts:
                return
        for part in parts:
            text = f"{part} has moved from node to node while groups were listed"
            self._outcomes[part] = ApiError(ErrorCode.NOT_COORDINATOR, text)

    def listings(self) -> Listings:
        """What was found. Raises where no node has answered."""
        nodes = {part: outcome for part, outcome in self._outcomes.items() if isinstance(part, int)}
        errors: dict[Part, ApiError] = {
            node: outcome for node, outcome in nodes.items() if isinstance(outcome, ApiError)
        }
        if len(errors) == len(nodes):
            first = next(iter(errors.values()))
            if first.code is ErrorCode.UNSUPPORTED_VERSION:
                raise UnsupportedVersionError(first.message)
            raise first
        for part, outcome in self._outcomes.items():
            if isinstance(part, int) or not isinstance(outcome, ApiError):
                continue
            if outcome.code is ErrorCode.LEADER_NOT_AVAILABLE:
                errors[part] = ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, outcome.message)
            elif self._known.leaders.get(part) not in errors:  # else its node is named already
                errors[part] = outcome
        groups = tuple(self._groups[group_id] for group_id in sorted(self._groups))
        return Listings(groups, errors, self._known.unverified)

    async def _look(self, deadline: float) -> None:
        metadata = await self._cluster.brokers_and([OFFSETS_TOPIC], deadline)
        self._known = _Coordinators.of(metadata)
        self._is_fresh = True

    def _moved(self) -> Iterable[Part]:
        """The coordinators that are at another node than the one that has answered for them, and
        those that have appeared.
        """
        for part, leader in self._known.leaders.items():
            outcome = self._outcomes.get(part)
            if outcome is None or (isinstance(outcome, int) and leader not in (None, outcome)):
                yield part

    async def _locate(self, parts: Sequence[Part], deadline: float) -> dict[Part, Node | ApiError]:
        if not self._is_fresh:
            await self._look(deadline)
        self._is_fresh = False
        return {part: self._known.place(part) for part in parts}

    async def _ask(
        self, node: Node, parts: Sequence[Part], deadline: float
    ) -> dict[Part, int | ApiError]:
        connection = await self._cluster.connection(node.address, deadline)
        answer: ListGroupsResponse = await connection.ask(
            self._request, deadline=deadline, need=self._need
        )
        if answer.error_code:
            return dict.fromkeys(parts, api_error(answer.error_code))
        version = connection.version(ListGroupsRequest)
        found = {
            group.group_id: _listing(group, version)
            for group in answer.groups
            if self._protocols is None or group.protocol_type in self._protocols
        }
        news = [found[group_id] for group_id in sorted(found.keys() - self._groups.keys())]
        self._groups |= found
        if self.arrived is not None:
            if node.id in parts:
                self.arrived(node.id, tuple(news))
            elif news:  # of a coordinator that has moved to a node that has answered already
                self.arrived(parts[0], tuple(news))
        return dict.fromkeys(parts, node.id)


def _words(enum: type[Word], thing: str, given: Iterable[str] | None) -> list[str]:
    """A filter in the protocol's own spelling. None filters nothing; an empty one is a mistake."""
    if given is None:
        return []
    names = [given] if isinstance(given, str) else list(given)
    valid = {value.value.lower(): value.value for value in enum}
    if not names:
        raise ValueError(f"no {thing} is given to filter by, expected None for all or {thing}s")
    for name in names:
        if name.strip().lower() not in valid:
            raise ValueError(
                f"{name!r} is not a group {thing}, expected one of {', '.join(valid.values())}"
            )
    return list(dict.fromkeys(valid[name.strip().lower()] for name in names))


def protocol_types(
    protocols: Collection[str] | None, *, consumers_only: bool
) -> Collection[str] | None:
    """The filter by protocol type; None for all. Raises ValueError for one that makes no sense."""
    if protocols is None:
        return CONSUMER_PROTOCOLS if consumers_only else None
    if consumers_only:
        raise ValueError(
            f"protocols is {list(protocols)!r} beside consumers_only, expected one of them"
        )
    if not protocols:
        raise ValueError("no protocol is given to filter by, expected None for all or protocols")
    return protocols


def _listing(group: ListedGroup, version: int) -> GroupListing:
    return GroupListing(
        group.group_id,
        group.protocol_type,
        state_of(group.group_state) if version >= BY_STATE.version else None,
        type_of(group.group_type) if version >= BY_TYPE.version else None,
    )


def state_of(text: str) -> GroupState | str:
    """A state by its name; the text itself where it is unknown, as in a newer broker."""
    return _STATES.get(text, text)


def type_of(text: str) -> GroupType | str:
    """A type by its name; the text itself where it is unknown."""
    return _TYPES.get(text, text)
