# SPDX-License-Identifier: Apache-2.0
"""Faults on demand, as a test writes them: `broker.faults.drop("Heartbeat")`.

`fault_injector.py` is the side of the broker.
"""

from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from itertools import count
from types import TracebackType
from typing import Any, Protocol, Self

from kohort.errors import ErrorCode, KohortError
from kohort.runtime.clocks import monotonic, sleep
from kohort.testing.arguments import check_bool, check_seconds, check_whole
from kohort.testing.fault_injector import Fault, names_a_group, names_a_topic
from kohort.testing.groups import LOOK_S, WAIT_S, WaitTimeoutError
from kohort.wire.apis import APIS

__tracebackhide__ = True
_WHOSE = ("times", "client_id", "group", "topic", "node")
_APIS = {api.name: api for api in APIS.values()}


class Commands(Protocol):
    """Who gives commands to the broker."""

    nodes: int

    @property
    def is_running(self) -> bool: ...
    def command(self, command: str, *arguments: Any, **named: Any) -> Any: ...


class ActiveFault:
    """What holds until `clear`, or the end of the `with` block. `str()` of it says what it is."""

    def __init__(self, what: str, end: Callable[[], None]) -> None:
        self.what = what
        self._end = end
        self._ended = False

    def __repr__(self) -> str:
        return f"<fault {self.what}>"

    def __str__(self) -> str:
        return self.what

    def clear(self) -> None:
        """It holds no longer. Nothing happens when it has ended before, or with its broker."""
        if not self._ended:
            self._ended = True
            self._end()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.clear()


class FaultHandle(ActiveFault):
    """A fault of requests. It ends with its last time, too. Requests that it has dropped before
    stay dropped.
    """

    def __init__(self, broker: Commands, number: int, what: str, end: Callable[[], None]) -> None:
        super().__init__(what, end)
        self.number = number
        self._broker = broker

    def __str__(self) -> str:
        return f"{self.what}, hits: {self.hits}" if self._broker.is_running else self.what

    @property
    def hits(self) -> int:
        """How often it has struck in this life of the broker."""
        found: int = self._broker.command("hits", self.number)
        return found

    def wait(self, hits: int = 1, *, timeout: float = WAIT_S) -> None:
        """Wait until it has struck so often. Raises WaitTimeoutError, and KohortError for no count
        or time.
        """
        check_whole("hits", hits)
        check_seconds("timeout", timeout)
        deadline = monotonic() + timeout
        while (found := self.hits) < hits:
            if monotonic() > deadline:
                text = f"not within {timeout:g} s: {hits} hits of {self.what}, it has {found}"
                raise WaitTimeoutError(text)
            sleep(LOOK_S)


class Faults:
    """What goes wrong for which requests. An API has Kafka's name: `Fetch`, `OffsetCommit`,
    `ConsumerGroupHeartbeat`.

    `times` is for how many requests, one by default, None for all until it is cleared. `client_id`,
    `group` and `topic` say whose: a request counts when it names that group or topic, alone or
    among others. `node` is the index of a node. Each call returns a FaultHandle, and raises
    KohortError for an API that is not served, and for a group or topic where the requests of the
    API name none, as Fetch names no group. Of several faults that match, the oldest strikes.
    """

    def __init__(self, broker: Commands) -> None:
        self._broker = broker
        self._numbers = count(1)
        self._set: list[ActiveFault] = []
        self._full = 0  # how many hold that the disk is full

    def __repr__(self) -> str:
        return f"<faults: {', '.join(fault.what for fault in self._set) or 'none'}>"

    def __iter__(self) -> Iterator[ActiveFault]:
        """Those that were set and not cleared, the oldest first."""
        return iter(tuple(self._set))

    def delay(
        self, api: str, seconds: float, *, times: int | None = 1, **whose: Any
    ) -> FaultHandle:
        """Handle the request so many real seconds later, and after it what is behind it on its
        connection.
        """
        check_seconds("delay", seconds)
        return self._add(
            api, f"delay of {api}", {"kind": "delay", "seconds": seconds}, times=times, **whose
        )

    def drop(self, api: str, *, times: int | None = 1, **whose: Any) -> FaultHandle:
        """Neither handle nor answer the request, nor anything behind it on its connection, until
        the client gives up.
        """
        return self._add(api, f"drop of {api}", {"kind": "drop"}, times=times, **whose)

    def close(
        self, api: str, *, handled: bool = False, times: int | None = 1, **whose: Any
    ) -> FaultHandle:
        """Cut the connection when the request comes; with `handled`, when it has been handled and
        is durable, so that only the answer is lost.
        """
        check_bool("handled", handled)
        kind = "lose" if handled else "close"
        return self._add(api, f"close at {api}", {"kind": kind}, times=times, **whose)

    def error(
        self, api: str, code: str | int | ErrorCode, *, times: int | None = 1, **whose: Any
    ) -> FaultHandle:
        """Answer with an error for everything in the request, and handle nothing of it. The code
        is Kafka's name or number.
        """
        known = _code(code)
        return self._add(
            api, f"{known.name} for {api}", {"kind": "error", "code": known}, times=times, **whose
        )

    def full_disk(self) -> ActiveFault:
        """Nothing can be written until it is cleared. The broker must have a disk."""
        self._broker.command("fill_disk", full=True)
        self._full += 1
        held = ActiveFault("full disk", lambda: self._end_full(held))
        self._set.append(held)
        return held

    def _end_full(self, held: ActiveFault) -> None:
        if held in self._set:
            self._set.remove(held)
            self._full -= 1
            if not self._full and self._broker.is_running:
                self._broker.command("fill_disk", full=False)

    def clear(self) -> None:
        """End all faults."""
        while self._set:
            self._set[-1].clear()

    def forget(self) -> None:
        """The broker has ended, and its faults with it."""
        self._set.clear()
        self._full = 0

    def _add(
        self,
        api: str,
        what: str,
        does: Mapping[str, Any],
        *,
        client_id: str | None = None,
        group: str | None = None,
        topic: str | None = None,
        node: int | None = None,
        times: int | None,
        **unknown: Any,
    ) -> FaultHandle:
        for name in unknown:
            near = get_close_matches(name, _WHOSE, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(_WHOSE)}"
            raise KohortError(f"no argument of this fault is called {name}; {hint}")
        if api not in _APIS:
            near = get_close_matches(str(api), _APIS, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise KohortError(f"no API is called {api}{hint}")
        _check("client_id", client_id, str)
        _check("group", group, str)
        _check("topic", topic, str)
        request = _APIS[api].request
        for name, value, can_match in (
            ("group", group, names_a_group),
            ("topic", topic, names_a_topic),
        ):
            if value is not None and not can_match(request):
                raise KohortError(f"{name} is {value!r}, expected None: {api} names no {name}")
        _check("node", node, int)
        if node is not None and not 0 <= node < self._broker.nodes:
            raise KohortError(f"there is no node {node}, expected 0 to {self._broker.nodes - 1}")
        _check("times", times, int)
        if times is not None and times < 1:
            raise KohortError(f"times is {times}, expected 1 or more, or None for all")
        number = next(self._numbers)
        handle = FaultHandle(self._broker, number, what, lambda: self._end(handle))
        made = Fault(
            api=_APIS[api].key,
            client_id=client_id,
            group=group,
            topic=topic,
            node=node,
            times=times,
            **does,
        )
        self._broker.command("add_fault", number, made)
        self._set.append(handle)
        return handle

    def _end(self, handle: FaultHandle) -> None:
        if handle in self._set:
            self._set.remove(handle)
            if self._broker.is_running:
                self._broker.command("clear_fault", handle.number)


def _check(name: str, value: object, kind: type) -> None:
    """Raises KohortError for a value of another kind: such a fault would never strike."""
    if value is not None and (not isinstance(value, kind) or isinstance(value, bool)):
        expected = {str: "a text", int: "a whole number"}[kind]
        raise KohortError(f"{name} is {value!r}, expected {expected} or None")


def _code(code: str | int | ErrorCode) -> ErrorCode:
    if code in (ErrorCode.NONE, ErrorCode.NONE.name):
        raise KohortError("NONE is no error: the request would be acknowledged and not handled")
    try:
        return ErrorCode[code] if isinstance(code, str) else ErrorCode(code)
    except (KeyError, ValueError):
        near = get_close_matches(str(code), ErrorCode.__members__, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise KohortError(f"no error is called {code}{hint}") from None
