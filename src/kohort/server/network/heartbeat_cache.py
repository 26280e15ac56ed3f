"""HeartbeatCache that repeat the last one but for the correlation id, answered from memory.

The memory is bounded and stands in front of the normal path. It applies only while the coordinator
holds the very state that it was taken from (`coordinator/consumer/no_op_heartbeats.py`).
"""

from struct import Struct
from typing import NamedTuple

from kohort.coordinator.consumer.no_op_heartbeats import NoOpHeartbeat, no_op_heartbeat_or_none
from kohort.errors import ApiError
from kohort.server.access import READ
from kohort.server.coordinators.coordinator_partitions import Driver
from kohort.server.metrics.meters import RequestMeter
from kohort.server.network.connection import Connection
from kohort.server.node import Node
from kohort.terms import GroupId, Millis
from kohort.wire.codec import encode
from kohort.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

REMEMBERED_MAX = 65_536
REMEMBERED_BYTES_MAX = 1 << 25
LEAST_SWEPT = 16  # so many may be of members that are gone
LONGEST_REMEMBERED = 4096  # bytes; tags that nobody knows make a heartbeat as long as one likes
BODY = 8  # where a request's bytes begin to repeat: behind key, version and correlation id
_HEAD = Struct(">iiB")


class _CachedHeartbeat(NamedTuple):
    version: int
    host: str
    principal: str
    driver: Driver
    no_op: NoOpHeartbeat
    size: int
    body: bytes
    meter: RequestMeter


class HeartbeatCache:
    """The memory of one node. Nobody is asked again who may do what, so all of it is forgotten when
    the rules change.
    """

    def __init__(self, node: Node) -> None:
        self._node = node
        self._known: dict[bytes, _CachedHeartbeat] = {}
        self._bytes = 0  # of the requests that are known
        self._sweep_at = LEAST_SWEPT
        if node.cluster.authorizer is not None:
            node.cluster.authorizer.when_changed(self.forget)

    def forget(self) -> None:
        """Take every heartbeat the normal path again."""
        self._known.clear()
        self._bytes = 0

    def answer(
        self,
        connection: Connection,
        frame: bytes,
        version: int,
        correlation_id: int,
        now: Millis,
    ) -> bool:
        """Answer from memory; False when the frame must take the normal path."""
        known = self._known.get(frame[BODY:])
        if known is None:
            return False
        of_version, host, principal, driver, no_op, size, body, meter = known
        if (
            of_version != version
            or host != connection.host
            or principal != connection.client.principal
            or not driver.active
            or not no_op.renew(driver.machine, now)
        ):
            return False
        meter.count += 1
        connection.put(_HEAD.pack(size, correlation_id, 0) + body)
        return True

    def remember(
        self,
        connection: Connection,
        frame: bytes,
        version: int,
        request: ConsumerGroupHeartbeatRequest,
        meter: RequestMeter,
    ) -> None:
        """Keep the answer for the next heartbeat like this, when it changes nothing."""
        if len(frame) > LONGEST_REMEMBERED:
            return
        try:
            driver = self._node.driver_for(connection.client, READ, GroupId(request.group_id))
        except ApiError:
            return
        no_op = (
            no_op_heartbeat_or_none(driver.machine, request, connection.client)
            if driver.active
            else None
        )
        if no_op is None:
            return
        if len(self._known) >= self._sweep_at:
            self._sweep()
        if len(self._known) >= REMEMBERED_MAX or self._bytes >= REMEMBERED_BYTES_MAX:
            self.forget()
        body = encode(no_op.answer, version)
        key = frame[BODY:]
        if key not in self._known:
            self._bytes += len(key)
        self._known[key] = _CachedHeartbeat(
            version,
            connection.host,
            connection.client.principal,
            driver,
            no_op,
            len(body) + 5,
            body,
            meter,
        )

    def _sweep(self) -> None:
        """Forget heartbeats of what is not as it was: each holds its member, its session and its
        group, which may be gone. After as many new ones as are left it is done again.
        """
        entries = self._known.items()
        gone = [key for key, known in entries if not known.no_op.holds(known.driver.machine)]
        for key in gone:
            del self._known[key]
            self._bytes -= len(key)
        self._sweep_at = max(LEAST_SWEPT, 2 * len(self._known))
