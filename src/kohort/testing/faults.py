"""Faults on demand, as a test writes them: `broker.faults.drop("Heartbeat")`.

`gate.py` is the side of the broker.
"""

import time
from difflib import get_close_matches
from itertools import count
from types import TracebackType
from typing import Any, Protocol, Self

from kohort.errors import ErrorCode, KohortError
from kohort.testing.gate import Fault
from kohort.testing.groups import LOOK_S, WAIT_S, WaitTimeoutError
from kohort.wire.apis import APIS

_KEYS = {api.name: api.key for api in APIS.values()}


class Commands(Protocol):
    """Who gives commands to the broker."""

    def command(self, command: str, *arguments: Any, **named: Any) -> Any: ...


class FaultHandle:
    """A fault that is in force until `clear`, the end of its `with` block, or its last time."""

    def __init__(self, broker: Commands, number: int, what: str) -> None:
        self.number = number
        self.what = what
        self._broker = broker

    def __repr__(self) -> str:
        return f"<fault {self.what}>"

    @property
    def hits(self) -> int:
        """How often it has struck."""
        found: int = self._broker.command("hits", self.number)
        return found

    def wait(self, hits: int = 1, *, timeout: float = WAIT_S) -> None:
        """Wait until it has struck so often. Raises WaitTimeoutError."""
        deadline = time.monotonic() + timeout
        while (found := self.hits) < hits:
            if time.monotonic() > deadline:
                text = f"not within {timeout:g} s: {hits} hits of {self.what}, it has {found}"
                raise WaitTimeoutError(text)
            time.sleep(LOOK_S)

    def clear(self) -> None:
        """Let requests pass again. Those that it has dropped stay dropped."""
        self._broker.command("clear_fault", self.number)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.clear()


class FullDisk:
    """The disk is full until `clear`, or the end of the `with` block."""

    def __init__(self, broker: Commands) -> None:
        self._broker = broker

    def clear(self) -> None:
        """There is room again."""
        self._broker.command("fill_disk", full=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.clear()


class Faults:
    """What goes wrong for which requests. An API has Kafka's name: `Fetch`, `OffsetCommit`,
    `ConsumerGroupHeartbeat`.

    `times` is for how many requests, one by default, None for all until it is cleared. `client_id`,
    `group` and `topic` say whose: a request counts when it names that group or topic, alone or
    among others. `node` is the index of a node. Each call returns a FaultHandle, and raises
    KohortError for an API that is not served. Of several faults that match, the oldest strikes.
    """

    def __init__(self, broker: Commands) -> None:
        self._broker = broker
        self._numbers = count(1)
        self._set: list[FaultHandle] = []

    def delay(
        self, api: str, seconds: float, *, times: int | None = 1, **whose: Any
    ) -> FaultHandle:
        """Handle the request so many real seconds later, and after it what is behind it on its
        connection.
        """
        return self._add(
            api, f"delay of {api}", kind="delay", seconds=seconds, times=times, **whose
        )

    def drop(self, api: str, *, times: int | None = 1, **whose: Any) -> FaultHandle:
        """Neither handle nor answer the request, nor anything behind it on its connection, until
        the client gives up.
        """
        return self._add(api, f"drop of {api}", kind="drop", times=times, **whose)

    def close(
        self, api: str, *, handled: bool = False, times: int | None = 1, **whose: Any
    ) -> FaultHandle:
        """Cut the connection when the request comes; with `handled`, when it has been handled and
        is durable, so that only the answer is lost.
        """
        kind = "lose" if handled else "close"
        return self._add(api, f"close at {api}", kind=kind, times=times, **whose)

    def error(
        self, api: str, code: str | int | ErrorCode, *, times: int | None = 1, **whose: Any
    ) -> FaultHandle:
        """Answer with an error for everything in the request, and handle nothing of it. The code
        is Kafka's name or number.
        """
        known = _code(code)
        return self._add(
            api, f"{known.name} for {api}", kind="error", code=known, times=times, **whose
        )

    def full_disk(self) -> FullDisk:
        """Nothing can be written until it is cleared. The broker must have a disk."""
        self._broker.command("fill_disk", full=True)
        return FullDisk(self._broker)

    def clear(self) -> None:
        """End all faults of requests."""
        while self._set:
            self._set.pop().clear()

    def forget(self) -> None:
        """The broker has ended, and its faults with it."""
        self._set.clear()

    def _add(
        self,
        api: str,
        what: str,
        *,
        client_id: str | None = None,
        group: str | None = None,
        topic: str | None = None,
        node: int | None = None,
        **fault: Any,
    ) -> FaultHandle:
        if api not in _KEYS:
            near = get_close_matches(api, _KEYS, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise KohortError(f"no API is called {api}{hint}")
        handle = FaultHandle(self._broker, next(self._numbers), what)
        made = Fault(
            api=_KEYS[api], client_id=client_id, group=group, topic=topic, node=node, **fault
        )
        self._broker.command("add_fault", handle.number, made)
        self._set.append(handle)
        return handle


def _code(code: str | int | ErrorCode) -> ErrorCode:
    try:
        return ErrorCode[code] if isinstance(code, str) else ErrorCode(code)
    except (KeyError, ValueError):
        near = get_close_matches(str(code), ErrorCode.__members__, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise KohortError(f"no error is called {code}{hint}") from None
