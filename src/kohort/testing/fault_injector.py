# SPDX-License-Identifier: Apache-2.0
"""Faults inside the broker: the gate that the dispatcher asks about each request once there is a
fault.

A fault matches a request by its API, and by client id, group, topic and node where these are given.
The first fault that matches decides. Requests of `kohort.testing` itself always pass.
"""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Literal

from kohort.errors import ApiError, ErrorCode, WireError
from kohort.machines.effects import Call
from kohort.server.network.connection import Connection
from kohort.server.network.dispatcher import HandleCall
from kohort.server.node import Node
from kohort.terms import NO_TOPIC_ID, Millis, TopicId
from kohort.wire.messages.fetch import FetchRequest
from kohort.wire.messages.find_coordinator import FindCoordinatorRequest
from kohort.wire.messages.produce import ProduceRequest
from kohort.wire.schema import Primitive, fields_of

OWN_CLIENT_ID = "kohort.testing"
_GROUPS = frozenset({"group_id", "group_ids", "groups_names", "groups"})
_TOPICS = frozenset(
    {"topic", "name", "topic_name", "topic_names", "topic_id", "subscribed_topic_names"}
)
_OF_GROUPS = 0  # the type of FindCoordinator's keys

Kind = Literal["delay", "drop", "close", "lose", "error"]


@dataclass(frozen=True)
class Fault:
    """What happens to which requests. `times` is how often, None for always.

    `delay` handles the request `seconds` later, and `drop` never handles nor answers it. What is
    behind it on its connection waits unhandled meanwhile: a broker handles the requests of a
    connection in their order. `close` cuts the connection instead, and `lose`
    cuts it when the request has been handled. `error` answers with `code`, and handles nothing.
    """

    kind: Kind
    api: int
    times: int | None
    seconds: float = 0.0
    code: ErrorCode = ErrorCode.UNKNOWN_SERVER_ERROR
    client_id: str | None = None
    group: str | None = None
    topic: str | None = None
    node: int | None = None

    def matches(self, node: Node, call: Call[Any]) -> bool:
        """Whether it is about this request to this node."""
        request = call.request
        return (
            request.api_key == self.api
            and call.client.id != OWN_CLIENT_ID
            and self.client_id in (None, call.client.id)
            and self.node in (None, node.id)
            and (self.group is None or self.group in set(_groups(request)))
            and (self.topic is None or self.topic in set(_topics(node, request)))
        )


class _DroppedAnswer:
    """A token whose answer is lost on its way: the connection ends in its place."""

    def __init__(self, token: Any) -> None:
        self._token = token

    @property
    def gone(self) -> bool:
        """Somebody waits until the connection ends."""
        return False

    def hold_back(self) -> None:
        """What is behind it is not handled either."""
        self._token.hold_back()

    def answer(self, _response: Any) -> None:
        self._token.fail(WireError("a fault loses the answer"))

    def skip(self) -> None:
        """A Produce that wants no answer."""
        self.answer(None)

    def fail(self, error: Exception) -> None:
        self._token.fail(error)


class FaultInjector:
    """The faults of one broker, by the number that each was given, and how often each has struck.

    `again` is called when a request that was delayed has been handled.
    """

    def __init__(self, now: Callable[[], Millis], again: Callable[[], object]) -> None:
        self.faults: dict[int, Fault] = {}
        self.hits: dict[int, int] = {}
        self._now = now
        self._again = again

    def add(self, number: int, fault: Fault) -> None:
        self.faults[number] = fault
        self.hits.setdefault(number, 0)

    def take(self, node: Node, connection: Connection, call: Call[Any], go: HandleCall) -> None:
        fault = self._strike(node, call)
        if fault is None:
            go(call, self._now())
            return
        match fault.kind:
            case "delay":
                waits, connection.busy = connection.busy, True
                late = partial(self._late, connection, call, go, waits=waits)
                asyncio.get_running_loop().call_later(fault.seconds, late)
            case "drop":
                connection.busy = True  # for ever: its place in the line is never free again
            case "close":
                name = type(call.request).__name__
                call.token.fail(WireError(f"a fault closes the connection at {name}"))
            case "lose":
                go(
                    Call(_DroppedAnswer(call.token), call.request, call.version, call.client),
                    self._now(),
                )
            case "error":
                _refuse(call, fault.code)

    def _strike(self, node: Node, call: Call[Any]) -> Fault | None:
        """The fault that is about this request; it is counted."""
        for number, fault in self.faults.items():
            left = fault.times is None or self.hits[number] < fault.times
            if left and fault.matches(node, call):
                self.hits[number] += 1
                return fault
        return None

    def _late(
        self, connection: Connection, call: Call[Any], go: HandleCall, *, waits: bool
    ) -> None:
        """Handle it at last. What was held back behind it is handled once its answer has left."""
        if connection.closed:
            return
        connection.busy = waits
        try:
            go(call, self._now())
        except Exception as error:  # noqa: BLE001  (whatever it is, it is this client's alone)
            call.token.fail(error)
        self._again()


def _refuse(call: Call[Any], code: ErrorCode) -> None:
    if isinstance(call.request, ProduceRequest) and call.request.acks == 0:
        call.token.skip()
        raise WireError("a Produce with acks=0 was refused; closing is the only way to say so")
    error = ApiError(code, "a fault of the test")
    call.token.answer(call.request.refused(error))


def names_a_group(request: Any) -> bool:
    """Whether requests of this class name groups."""
    return request is FindCoordinatorRequest or bool(_paths(request, _GROUPS))


def names_a_topic(request: Any) -> bool:
    """Whether requests of this class name topics."""
    return bool(_paths(request, _TOPICS))


def _groups(request: Any) -> Iterator[str]:
    """The groups that a request names."""
    if isinstance(request, FindCoordinatorRequest):
        if request.key_type == _OF_GROUPS:
            yield request.key
            yield from request.coordinator_keys
        return
    kind: Any = type(request)
    for path in _paths(kind, _GROUPS):
        yield from _values(request, path)


def _topics(node: Node, request: Any) -> Iterator[str]:
    """The topics that a request names, by name or id, or the fetch session of which it is."""
    catalog = node.cluster.catalog
    ids: list[TopicId] = []
    kind: Any = type(request)
    for path in _paths(kind, _TOPICS):
        for value in _values(request, path):
            if isinstance(value, bytes):
                ids.append(TopicId(value))
            else:
                yield value
    if isinstance(request, FetchRequest):
        session = node.cluster.fetch_sessions.known(request.session_id)
        for name, topic_id in () if session is None else session.partitions:
            yield name
            ids.append(topic_id)
    for topic_id in ids:
        if topic_id != NO_TOPIC_ID and topic_id in catalog.by_id:
            yield catalog.by_id[topic_id].name


@cache
def _paths(message: Any, names: frozenset[str]) -> tuple[tuple[str, ...], ...]:
    """The way to each field of these names, at any depth. What is called `name` counts where it is
    that of a topic: configs, protocols and users have names, too.
    """
    found: list[tuple[str, ...]] = []
    for field in fields_of(message):
        if not isinstance(field.of, Primitive):
            below = _paths(field.of, names)
            found += (
                (field.name, *path) for path in below if path != ("name",) or "topic" in field.name
            )
        elif field.name in names:
            found.append((field.name,))
    return tuple(found)


def _values(message: Any, path: tuple[str, ...]) -> Iterator[Any]:
    """What stands at the end of the path, lists element by element, but for null."""
    value = getattr(message, path[0])
    for item in value if isinstance(value, list) else (value,):
        if item is not None:
            yield from _values(item, path[1:]) if path[1:] else (item,)
