# SPDX-License-Identifier: Apache-2.0
"""The smallest machine that a driver can drive: it adds up what it is told, by name."""

from collections.abc import Container, Iterable, Iterator
from typing import Any, NamedTuple

from kohort.errors import ApiError, ErrorCode, WireError
from kohort.machines.effects import (
    TAKE_AGAIN,
    BackgroundTask,
    Call,
    Client,
    Effects,
    GroupEvent,
    Marker,
    Producer,
    Reply,
)
from kohort.machines.topics import Topics
from kohort.terms import GroupId, Millis, Offset


class Add(NamedTuple):
    """A record: so much more for a name."""

    name: str
    by: int


class Ask:
    """A request: records to write, and what else the step is to be."""

    def __init__(self, *adds: Add, **more: Any) -> None:
        self.adds = list(adds)
        self.more = more

    def refused(self, error: ApiError) -> Any:
        return error.code.name


class Token:
    """Who asked."""

    def __init__(self) -> None:
        self.answer: Any = None


class Counter:
    """`counts` is what records say, `places` the arguments that replay was given."""

    running_tasks: Container[tuple[Any, ...]] = ()

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.places: list[tuple[Add, Offset, Producer | None]] = []
        self.ended: list[tuple[Producer, bool]] = []
        self.parked: list[Call[Ask]] = []
        self.due: list[Effects | Exception] = []
        self.put_offs: list[Millis] = []
        self.chores: list[Effects | Exception] = []
        self.outcomes: list[tuple[Any, Any]] = []
        self.started = 0
        self.jumped_ms = 0

    def call(self, call: Call[Ask], _now: Millis) -> Effects:
        request = call.request
        more = dict(request.more)
        if "fails" in more:
            raise more["fails"]
        if more.pop("parks", False):
            self.parked.append(call)
            return Effects()
        replies = [Reply(call.token, dict(self.counts))]
        if more.pop("releases", False):
            replies += [Reply(one.token, "released") for one in self.parked]
            self.parked.clear()
        first = more.pop("first", None)
        if first is not None and first.name not in self.counts:
            return Effects([first], continuation=TAKE_AGAIN)
        return Effects(list(request.adds), replies, **more)

    def reads(self, call: Call[Ask]) -> bool:
        return not call.request.adds

    def tick(self, _now: Millis) -> Iterator[Effects]:
        while self.due:
            yield _given(self.due.pop(0))

    def put_off(self, now: Millis) -> None:
        self.put_offs.append(now)

    def wake_at(self) -> Millis | None:
        return Millis(0) if self.due else None

    def clock_jumped(self, by_ms: int) -> None:
        self.jumped_ms += by_ms

    def topics_changed(self, _topics: Topics, _now: Millis) -> Iterator[Effects]:
        while self.chores:
            yield _given(self.chores.pop(0))

    def finished(self, task: BackgroundTask, outcome: Any, _now: Millis) -> Effects:
        self.outcomes.append((task.about, outcome))
        return _given(task.about) if isinstance(task.about, Exception) else Effects()

    def start(self, _now: Millis) -> Iterator[Effects]:
        self.started += 1
        yield from ()

    def replay(self, record: Add, offset: Offset, producer: Producer | None) -> None:
        self.places.append((record, offset, producer))
        if producer is None:
            self.counts[record.name] = self.counts.get(record.name, 0) + record.by

    def replay_marker(self, producer: Producer, *, commit: bool) -> None:
        self.ended.append((producer, commit))

    def headers(self, step: Effects) -> dict[int, list[tuple[str, bytes | None]]]:
        events = zip(range(len(step.records)), step.events, strict=False)
        return {place: [("why", event.text.encode())] for place, event in events}

    def encode(self, record: Add) -> tuple[bytes, bytes | None]:
        if not record.name.isascii():
            raise WireError(f"{record.name!r} has no place in a record")
        return record.name.encode(), str(record.by).encode()

    def decode(self, key: bytes, value: bytes | None) -> Add:
        return Add(key.decode(), int(value or b"0"))

    def log_lines(self, calls: Iterable[Call[Any]], steps: Iterable[Effects]) -> Iterator[str]:
        yield f"{len(list(calls))} calls"
        for step in steps:
            yield from (event.text for event in step.events)


def _given(one: Effects | Exception) -> Effects:
    if isinstance(one, Exception):
        raise one
    return one


def call(request: Ask) -> Call[Ask]:
    return Call(Token(), request, 0, Client("app", "/127.0.0.1"))


__all__ = ["Add", "Ask", "Counter", "ErrorCode", "GroupEvent", "GroupId", "Marker", "call"]
