# SPDX-License-Identifier: Apache-2.0
"""The way in for every request of one node: which API it is, what it says, and where it goes.

On a listener with SASL, clients get here once they are known (`server/sasl/authentication.py`).
"""

from collections.abc import Callable
from functools import partial
from struct import error as StructError  # noqa: N812  (a class)
from typing import Any, Protocol

from msgspec import Struct

from kohort.config.listeners import Listener
from kohort.errors import ApiError, ErrorCode, WireError
from kohort.machines.effects import Call, Client
from kohort.server.metrics.meters import UNSUPPORTED, Meters, RequestMeter, metered
from kohort.server.network.connection import Connection, Slot
from kohort.server.network.heartbeat_cache import CACHED_APIS, HeartbeatCache
from kohort.server.network.request_limits import (
    DECODED_AT_MOST,
    LONGEST_STRING,
    ElementLimit,
    check_elements,
    empty_long_texts,
    too_long,
)
from kohort.server.network.routes import ROUTES, Route
from kohort.server.node import Node
from kohort.terms import Millis
from kohort.wire.apis import APIS
from kohort.wire.codec import HOSTILE, decode, decoder, encoder
from kohort.wire.codegen import Decoder, Encoder
from kohort.wire.frames import FIXED_HEADER, decode_request_header, peek
from kohort.wire.messages.api_versions import ApiVersion, ApiVersionsResponse
from kohort.wire.schema import Versions

API_VERSIONS = 18
LONGEST_KEPT_HEAD = 1024  # of a connection, in bytes: a client id, and nearly never tags

HandleCall = Callable[[Call[Any], Millis], None]
"""Handles a request as if nothing had been in its way."""


class Gate(Protocol):
    """Is asked about each request before it is handled: a test may want it to fail."""

    def take(self, node: Node, connection: Connection, call: Call[Any], go: HandleCall) -> None:
        """Call `go` with the call, now or later, or answer or fail the call's token, or leave it.
        Raises what `go` raises.
        """


class _Entry(Struct, frozen=True):
    """Everything about an API in one version that does not change from request to request."""

    request: Any
    decode: Decoder
    encode: Encoder
    flexible: bool
    flexible_answer: bool
    limit: ElementLimit
    most: int  # elements that are decoded
    route: Route
    meter: RequestMeter


def _entry(
    key: int, version: int, served: Versions | None, limit: ElementLimit, meters: Meters
) -> _Entry | None:
    api = APIS.get(key)
    if api is None or served is None or version not in served:
        return None
    flexible = api.flexible(version)
    request: Any = api.request
    response: Any = api.response
    meter = meters.of(key, version)
    route = ROUTES[api.request]
    limit = limit if route.in_parts else limit.in_one_piece()
    most = DECODED_AT_MOST * limit.most
    return _Entry(
        request,
        decoder(request, version, most),
        metered(encoder(response, version), response, meter),
        flexible,
        flexible and key != API_VERSIONS,
        limit,
        most,
        route,
        meter,
    )


class RequestDispatcher:
    """Takes the frames of every connection of a node."""

    def __init__(self, node: Node, listener: Listener | None = None) -> None:
        """Without a `listener` it is one of plain text."""
        self.node = node
        self.listener = listener
        self.gate: Gate | None = None
        self._entries: dict[tuple[int, int], _Entry | None] = {}
        self._heartbeat_cache = HeartbeatCache(node)
        self._limit = ElementLimit(node.cluster.config.request_max_elements)

    def take(self, connection: Connection, frame: bytes, now: Millis) -> bool:
        """Handle one frame; False when it must wait. Raises WireError: close the connection."""
        try:
            key, version, correlation_id = FIXED_HEADER.unpack_from(frame)
        except StructError:
            peek(frame)  # says what is wrong
            raise
        if (
            key in CACHED_APIS
            and self.gate is None
            and not connection.slots
            and self._heartbeat_cache.answer(connection, frame, correlation_id, now)
        ):
            return True
        entry = self._entries.get((key, version)) or self._new_entry(key, version)
        if entry is None:
            self._unknown(connection, frame)
            return True
        route = entry.route
        if connection.slots and not route.pipelined:
            return False
        size = len(frame)
        request, refusal = _read(connection, frame, size, entry, version)
        if size > entry.limit.most and refusal is None:  # an element takes a byte at least
            refusal = check_elements(request, entry.limit)
        entry.meter.count += 1
        slot = Slot(connection, correlation_id, entry.encode, entry.flexible_answer)
        connection.slots.append(slot)
        if refusal is not None:
            slot.answer(request.refused(refusal))
            return True
        connection.busy = route.waits
        if key in CACHED_APIS:
            self._heartbeat_cache.remember(
                connection,
                frame,
                version,
                request,
                entry.meter,
                flexible=entry.flexible_answer,
            )
        call = Call(slot, request, version, connection.client)
        try:
            handle = route.handle
            if self.gate is None:
                handle(self.node, call, now)
            else:
                self.gate.take(self.node, connection, call, partial(handle, self.node))
        except WireError:
            raise
        except Exception as error:  # noqa: BLE001  (whatever it is, it is this client's alone)
            slot.fail(error)
        return True

    def lose(self, connection: Connection, error: WireError) -> None:
        """What follows on the connection cannot be read: it ends."""
        connection.error = error

    def _new_entry(self, key: int, version: int) -> _Entry | None:
        served = self.node.served.get(key)
        entry = _entry(key, version, served, self._limit, self.node.cluster.meters)
        if entry is not None:
            self._entries[key, version] = entry
        return entry

    def _unknown(self, connection: Connection, frame: bytes) -> None:
        """Answer a version that is not served. Only ApiVersions can, in the layout of version 0."""
        key, version, correlation_id = peek(frame)
        if key != API_VERSIONS:
            raise WireError(f"API {key} is not served in version {version}")
        decode_request_header(frame, flexible=version >= 3)
        served = self.node.served[key]
        response = ApiVersionsResponse(
            error_code=ErrorCode.UNSUPPORTED_VERSION,
            api_keys=[ApiVersion(api_key=key, min_version=served.first, max_version=served.last)],
        )
        meter = self.node.cluster.meters.of(key, UNSUPPORTED)
        meter.count += 1
        meter.failed(ErrorCode.UNSUPPORTED_VERSION)
        slot = Slot(connection, correlation_id, encoder(ApiVersionsResponse, 0), flexible=False)
        connection.slots.append(slot)
        slot.answer(response)


def _read(
    connection: Connection, frame: bytes, size: int, entry: _Entry, version: int
) -> tuple[Any, ApiError | None]:
    """The request, and the reason to refuse it, where its texts are longer than a record allows.
    Raises WireError for bytes that are no such request.
    """
    start = _body(connection, frame, flexible=entry.flexible)
    refusal = ""
    decode_whole = entry.decode
    try:
        request, end = decode_whole(frame, start)
    except UnicodeDecodeError as error:
        request, end = decode(entry.request, version, frame, start, entry.most), size
        refusal = f"a text of the request is not UTF-8: {error.reason} at {error.start}"
    except HOSTILE as error:
        raise WireError(f"not a {entry.request.__name__} v{version}: {error}") from error
    if end > size:
        raise WireError(f"a {entry.request.__name__} v{version} that ends too early")
    if not entry.route.keeps_texts:
        return request, None
    if refusal or size > LONGEST_STRING:
        refusal = empty_long_texts(request) or refusal
    if len(connection.client.id) > LONGEST_STRING // 4:
        refusal = refusal or too_long("the client id", connection.client.id)
    return request, ApiError(ErrorCode.INVALID_REQUEST, refusal) if refusal else None


def _body(connection: Connection, frame: bytes, *, flexible: bool) -> int:
    """Where the body of a request starts. The client id is nearly always the last one's."""
    if flexible is connection.head_flexible and frame.startswith(connection.head, 8):
        return connection.body
    header, start = decode_request_header(frame, flexible=flexible)
    client_id, client = header.client_id or "", connection.client
    if client_id != client.id:  # else the object stays: calls of one client keep their order
        connection.client = Client(client_id, client.host, client.principal)
    if start <= LONGEST_KEPT_HEAD:
        connection.head, connection.head_flexible = frame[8:start], flexible
        connection.body = start
    else:
        connection.head_flexible = None
    return start
