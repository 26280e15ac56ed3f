"""One broker of the cluster, as its clients see it: a node id, an address, and what it answers.

A process may hold several nodes. They share everything but what makes them different to a client:
which partitions and which groups each of them serves.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from kohort.coordinator.effects import Call, Client
from kohort.errors import ErrorCode, WireError
from kohort.runtime.driver import PartitionDriver
from kohort.server.apis.groups import not_coordinator
from kohort.server.connection import Connection
from kohort.server.heartbeats import Heartbeats
from kohort.server.routes import ROUTES, Route
from kohort.terms import GroupId, Millis
from kohort.wire.apis import APIS
from kohort.wire.codec import HOSTILE, decode, decoder, encoder
from kohort.wire.codegen import Decoder, Encoder
from kohort.wire.frames import decode_request_header, peek
from kohort.wire.messages.api_versions import ApiVersion, ApiVersionsResponse
from kohort.wire.schema import Versions, fields_of

if TYPE_CHECKING:
    from kohort.server.cluster import Cluster


API_VERSIONS = 18
HEARTBEAT = 68  # ConsumerGroupHeartbeat
LONGEST_STRING = 32767
PLACED_MAX = 65_536


class _Entry(NamedTuple):
    """Everything about an API in one version that does not change from request to request."""

    request: Any
    decode: Decoder
    encode: Encoder
    flexible: bool
    flexible_answer: bool
    route: Route


def _entry(key: int, version: int, served: Versions | None) -> _Entry | None:
    api = APIS.get(key)
    if api is None or served is None or version not in served:
        return None
    flexible = api.flexible(version)
    request: Any = api.request
    response: Any = api.response
    return _Entry(
        request,
        decoder(request, version),
        encoder(response, version),
        flexible,
        flexible and key != API_VERSIONS,
        ROUTES[api.request],
    )


def served_versions(highest: tuple[str, ...]) -> dict[int, Versions]:
    """The versions of each API that are offered: those of APIS, less what `api.versions.max`
    takes away.
    """
    limits = dict(one.split(":") for one in highest)
    return {
        api.key: Versions(api.versions.first, min(api.versions.last, int(limits.get(api.name, 99))))
        for api in APIS.values()
        if int(limits.get(api.name, 99)) >= api.versions.first
    }


class Node:
    """A broker id with an address. `take` is the way in for every request."""

    def __init__(self, cluster: "Cluster", node_id: int, host: str, port: int) -> None:
        self.cluster = cluster
        self.id = node_id
        self.host = host
        self.port = port
        self.served = served_versions(cluster.config.api_versions_max)
        self._entries: dict[tuple[int, int], _Entry | None] = {}
        self._heartbeats = Heartbeats(self)
        self._drivers: dict[GroupId, PartitionDriver | None] = {}  # a group never moves

    def take(self, connection: Connection, frame: bytes, now: Millis) -> bool:
        """Handle one frame, or say that it must wait its turn. Raises WireError: close the
        connection.
        """
        key, version, correlation_id = peek(frame)
        if (
            key == HEARTBEAT
            and not connection.slots
            and self._heartbeats.answer(connection, frame, version, correlation_id, now)
        ):
            return True
        entry = self._entries.get((key, version))
        if entry is None:
            entry = _entry(key, version, self.served.get(key))
            if entry is not None:
                self._entries[key, version] = entry
        if entry is None:
            self._unknown(connection, frame)
            return True
        if connection.slots and not entry.route.pipelined:
            return False
        start = _body(connection, frame, flexible=entry.flexible)
        try:
            request, end = entry.decode(frame, start)
        except UnicodeDecodeError:
            request, end = decode(entry.request, version, frame, start), len(frame)
        except HOSTILE as error:
            raise WireError(f"not a {entry.request.__name__} v{version}: {error}") from error
        if end > len(frame):
            raise WireError(f"a {entry.request.__name__} v{version} that ends too early")
        if len(frame) > LONGEST_STRING and entry.route.pipelined:
            _refuse_long_strings(request)
        slot = connection.slot(correlation_id, entry.encode, flexible=entry.flexible_answer)
        connection.busy = entry.route.waits
        if key == HEARTBEAT:
            self._heartbeats.remember(connection, frame, version, request)
        try:
            entry.route.handle(self, Call(slot, request, version, connection.client), now)
        except WireError:
            raise
        except Exception as error:  # noqa: BLE001  (whatever it is, it is this client's alone)
            slot.fail(error)
        return True

    def driver_or_none(self, group_id: GroupId) -> PartitionDriver | None:
        """The shard of a group, when this node coordinates it."""
        try:
            return self._drivers[group_id]
        except KeyError:
            leader, driver = self.cluster.coordinator(group_id)
        if len(self._drivers) >= PLACED_MAX:
            self._drivers.clear()
        self._drivers[group_id] = found = driver if leader == self.id else None
        return found

    def driver_of(self, group_id: GroupId) -> PartitionDriver:
        """The shard of a group. Raises ApiError when another node coordinates it."""
        driver = self.driver_or_none(group_id)
        if driver is None:
            raise not_coordinator(group_id)
        return driver

    def drivers(self) -> list[PartitionDriver]:
        """The shards of all groups that this node coordinates."""
        cluster = self.cluster
        offsets = cluster.offsets_topic()
        return [
            driver
            for index, driver in enumerate(cluster.drivers)
            if cluster.leader(offsets, index) == self.id
        ]

    def _unknown(self, connection: Connection, frame: bytes) -> None:
        """Only ApiVersions has an answer for a version that is not there: in version 0's layout."""
        key, version, correlation_id = peek(frame)
        if key != API_VERSIONS:
            raise WireError(f"API {key} is not served in version {version}")
        decode_request_header(frame, flexible=version >= 3)
        served = self.served[key]
        response = ApiVersionsResponse(
            error_code=ErrorCode.UNSUPPORTED_VERSION,
            api_keys=[ApiVersion(api_key=key, min_version=served.first, max_version=served.last)],
        )
        slot = connection.slot(correlation_id, encoder(ApiVersionsResponse, 0), flexible=False)
        slot.answer(response)


def _refuse_long_strings(message: Any) -> None:
    """Names of groups, members and topics go into records, where a length has two bytes."""
    for field in fields_of(type(message)):
        value = getattr(message, field.name)
        for one in value if isinstance(value, list) else (value,):
            if isinstance(one, str) and len(one.encode()) > LONGEST_STRING:
                raise WireError(f"{field.name} is longer than {LONGEST_STRING} bytes")
            if isinstance(one, msgspec.Struct):
                _refuse_long_strings(one)


def _body(connection: Connection, frame: bytes, *, flexible: bool) -> int:
    """Where the body of a request starts. A connection's client id is nearly always the one
    before.
    """
    head = connection.head
    if (
        head
        and frame.startswith(head, 8)
        and len(head) == (3 if flexible else 2) + len(connection.client.id)
    ):
        return 8 + len(head)
    header, start = decode_request_header(frame, flexible=flexible)
    connection.client = Client(header.client_id or "", connection.host)
    connection.head = frame[8:start] if header.client_id and header.client_id.isascii() else b""
    return start
