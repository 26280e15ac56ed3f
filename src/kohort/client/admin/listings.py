# SPDX-License-Identifier: Apache-2.0
"""All groups of a cluster (KIP-40, KIP-518, KIP-848), and what is missing among them.

A broker lists the groups that it coordinates. `coordinator_sweeps` sees to it that every
coordinator is asked, or named.
"""

from collections.abc import Collection, Iterable, Sequence
from enum import StrEnum
from typing import TypeVar

from kohort.client.admin.answers import Arrived
from kohort.client.admin.coordinator_sweeps import Part, sweep
from kohort.client.admin.views import OFFSETS_TOPIC, GroupListing, ListedPart, Listings
from kohort.client.network.cluster import Cluster, Node
from kohort.client.network.connection import Need
from kohort.errors import ApiError, api_error
from kohort.terms import CONSUMER_PROTOCOLS, GroupState, GroupType
from kohort.wire.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse

BY_STATE = Need(4, "filtering by state", "KIP-518, Apache Kafka 2.6")
BY_TYPE = Need(5, "filtering by type", "KIP-848, Apache Kafka 3.8")

_STATES = {state.value: state for state in GroupState}
_TYPES = {type_.value: type_ for type_ in GroupType}

Word = TypeVar("Word", bound=StrEnum)


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
    groups = _Groups(cluster, request, need, protocols)
    groups.arrived = arrived
    swept = await sweep(cluster, OFFSETS_TOPIC, groups.ask, deadline)
    listings = Listings(groups.sorted(), swept.errors, swept.unverified)
    if arrived is not None:
        for part, error in listings.missing.items():
            arrived(part, error)
    return listings


class _Groups:
    """What brokers list, and what a caller hears of it as it comes."""

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
        self._found: dict[str, GroupListing] = {}

    def sorted(self) -> tuple[GroupListing, ...]:
        """All that were listed, by id."""
        return tuple(self._found[group_id] for group_id in sorted(self._found))

    async def ask(self, node: Node, parts: Sequence[Part], deadline: float) -> ApiError | None:
        """Have a broker list its groups."""
        connection = await self._cluster.connection(node.address, deadline)
        answer: ListGroupsResponse = await connection.ask(
            self._request, deadline=deadline, need=self._need
        )
        if answer.error_code:
            return api_error(answer.error_code)
        version = connection.version(ListGroupsRequest)
        found = {
            group.group_id: _listing(group, version)
            for group in answer.groups
            if self._protocols is None or group.protocol_type in self._protocols
        }
        news = [found[group_id] for group_id in sorted(found.keys() - self._found.keys())]
        self._found |= found
        if self.arrived is not None:
            if node.id in parts:
                self.arrived(node.id, tuple(news))
            elif news:  # of a coordinator that has moved to a node that has answered already
                self.arrived(parts[0], tuple(news))
        return None


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
