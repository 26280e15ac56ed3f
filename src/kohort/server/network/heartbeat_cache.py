# SPDX-License-Identifier: Apache-2.0
"""Heartbeats that repeat the last one but for the correlation id, answered from memory.

The memory is bounded and stands in front of the normal path. It applies only while the coordinator
holds the very state that it was taken from (`no_op_heartbeats.py` of either protocol).
"""

from collections.abc import Callable
from struct import Struct
from typing import Any, Protocol

from kohort.coordinator.classic import no_op_heartbeats as classic
from kohort.coordinator.consumer import no_op_heartbeats as consumer
from kohort.coordinator.state import State
from kohort.errors import ApiError
from kohort.machines.bounded_cache import BoundedCache
from kohort.machines.deadlines import Session
from kohort.machines.effects import Client
from kohort.server.access import READ
from kohort.server.coordinators.coordinator_partitions import Driver
from kohort.server.metrics.meters import RequestMeter
from kohort.server.network.connection import Connection
from kohort.server.node import Node
from kohort.terms import GroupId, Millis
from kohort.wire.codec import encode
from kohort.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kohort.wire.messages.heartbeat import HeartbeatRequest

LIMIT_BYTES = 1 << 26  # some 90,000 heartbeats of usual length
ENTRY_BYTES = 600  # of an entry beside the bytes that came and those that are answered
LONGEST_REMEMBERED = 4096  # bytes; tags that nobody knows make a heartbeat as long as one likes
BODY = 8  # where a request's bytes begin to repeat: behind key, version and correlation id
_HEAD = Struct(">ii")
_NO_TAGS = b"\0"  # of the header of a flexible answer


class _NoOpHeartbeat(Protocol):
    """What a heartbeat that changes nothing rests on, in either protocol."""

    session: Session

    def answer(self) -> Any: ...
    def holds(self, state: State) -> bool: ...


_NO_OPS: dict[type[Any], Callable[[State, Any, Client], _NoOpHeartbeat | None]] = {
    ConsumerGroupHeartbeatRequest: consumer.no_op_heartbeat_or_none,
    HeartbeatRequest: classic.no_op_heartbeat_or_none,
}

CACHED_APIS = frozenset(request.api_key for request in _NO_OPS)


class _CachedHeartbeat:
    """An answer, and all that must be as it was for it to be given again.

    It is kept for the client that has sent it, who may READ the group. A heartbeat that names
    topics is never kept, so no right to a topic is passed over (`changes_nothing` in
    `coordinator/consumer/requests.py`).
    """

    __slots__ = (
        "body",
        "client",
        "driver",
        "head",
        "length",
        "meter",
        "no_op",
        "size",
        "used",
    )

    def __init__(
        self,
        client: Client,
        frame: bytes,
        driver: Driver,
        no_op: _NoOpHeartbeat,
        body: bytes,
        meter: RequestMeter,
    ) -> None:
        self.head = frame[:4]  # which API, in which version
        self.client = client
        self.driver = driver
        self.no_op = no_op
        self.body = body
        self.length = len(body) + 4
        self.meter = meter
        self.size = len(frame) + len(body) + ENTRY_BYTES
        self.used = False

    def holds(self) -> bool:
        return self.no_op.holds(self.driver.machine)


class HeartbeatCache:
    """The memory of one listener. Nobody is asked again who may do what, so all of it is forgotten
    when the rules change.
    """

    def __init__(self, node: Node) -> None:
        self._node = node
        self._known: BoundedCache[bytes, _CachedHeartbeat] = BoundedCache(LIMIT_BYTES)
        if node.cluster.authorizer is not None:
            node.cluster.authorizer.when_changed(self.forget)

    def forget(self) -> None:
        """Take every heartbeat the normal path again."""
        self._known.clear()

    def answer(
        self, connection: Connection, frame: bytes, correlation_id: int, now: Millis
    ) -> bool:
        """Answer from memory; False when the frame must take the normal path."""
        known = self._known.get(frame[BODY:])
        if (
            known is None
            or known.client is not connection.client
            or not frame.startswith(known.head)
            or not known.driver.active
        ):
            return False
        state = known.driver.machine
        if not known.no_op.holds(state):
            return False
        state.deadlines.renew(known.no_op.session, now)
        known.used = True
        known.meter.count += 1
        connection.put(_HEAD.pack(known.length, correlation_id) + known.body)
        return True

    def remember(
        self,
        connection: Connection,
        frame: bytes,
        version: int,
        request: Any,
        meter: RequestMeter,
        *,
        flexible: bool,
    ) -> None:
        """Keep the answer for the next heartbeat like this, when it changes nothing. It is
        `flexible` where the header of the answer has tags.
        """
        if len(frame) > LONGEST_REMEMBERED:
            return
        try:
            driver = self._node.driver_for(connection.client, READ, GroupId(request.group_id))
        except ApiError:
            return
        if not driver.active:
            return
        no_op = _NO_OPS[type(request)](driver.machine, request, connection.client)
        if no_op is None:
            return
        body = encode(no_op.answer(), version)
        if flexible:
            body = _NO_TAGS + body
        entry = _CachedHeartbeat(connection.client, frame, driver, no_op, body, meter)
        self._known.put(frame[BODY:], entry)
