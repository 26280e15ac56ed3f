# SPDX-License-Identifier: Apache-2.0
"""The numbers of a running broker, kept as things happen. `metrics.py` says what they are called.

Whoever serves a request adds to plain integers here, and nothing is walked when they are read.
Another thread reads them at any time.
"""

from collections.abc import Callable, Sequence
from functools import cache
from itertools import chain
from operator import attrgetter
from typing import Any

from kohort.coordinator.counters import GroupCounters
from kohort.runtime.clocks import perf_counter_ns
from kohort.server.metrics.durations import Durations, Turns
from kohort.wire.codegen import Encoder
from kohort.wire.columns import Columns
from kohort.wire.schema import Primitive, fields_of

UNSUPPORTED = -1  # the version of requests whose own is not served
_ERRORS = ("error_code", "partition_error_code")


class RequestMeter:
    """The requests of one API in one version, and the errors in their answers."""

    __slots__ = ("count", "errors")

    def __init__(self) -> None:
        self.count = 0
        self.errors: dict[int, int] = {}  # by code, without 0

    def failed(self, code: int, times: int = 1) -> None:
        self.errors[code] = self.errors.get(code, 0) + times


class Authentications:
    """How many clients of listeners with SASL have proved who they are, and how many have not.
    Names and meanings are upstream's (KIP-368): `successful-authentication-total` and so on.
    """

    __slots__ = ("expired", "failed", "reauthenticated", "reauthentication_failed", "succeeded")

    def __init__(self) -> None:
        self.succeeded = 0
        self.failed = 0
        self.reauthenticated = 0
        self.reauthentication_failed = 0
        self.expired = 0  # connections that were closed because their session had ended


class Traffic:
    """What passes through the sockets of a broker."""

    __slots__ = (
        "authentications",
        "closed",
        "opened",
        "received_bytes",
        "refused",
        "sent_bytes",
    )

    def __init__(self) -> None:
        self.opened = 0  # connections
        self.closed = 0
        self.refused = 0
        self.received_bytes = 0
        self.sent_bytes = 0
        self.authentications = Authentications()


class Loads:
    """How long it took to load shards from their logs."""

    __slots__ = ("_begun", "count", "longest_ns", "total_ns")

    def __init__(self) -> None:
        self.count = 0
        self.total_ns = 0
        self.longest_ns = 0
        self._begun: dict[Any, int] = {}

    def begin(self, measured: Any) -> None:
        """A slice of it is about to be loaded."""
        self._begun.setdefault(measured, perf_counter_ns())

    def end(self, measured: Any, *, loaded: bool) -> None:
        """There is no more of it to load."""
        taken = perf_counter_ns() - self._begun.pop(measured)
        if loaded:
            self.count += 1
            self.total_ns += taken
            self.longest_ns = max(self.longest_ns, taken)


class Meters:
    """What a cluster counts and measures."""

    def __init__(self) -> None:
        self.counters = GroupCounters()
        self.loads = Loads()
        self.requests: dict[tuple[int, int], RequestMeter] = {}  # by key and version
        self.turns = Turns()
        self.parked = Durations()  # from the end of a turn until its log is durable
        self.syncs = Durations()

    def of(self, key: int, version: int) -> RequestMeter:
        """The meter of an API in a version."""
        meter = self.requests.get((key, version))
        if meter is None:
            meter = self.requests[key, version] = RequestMeter()
        return meter


def metered(encode: Encoder, response: Any, meter: RequestMeter) -> Encoder:
    """The encoder of an answer, which also counts the errors that the answer tells of."""
    has_error = error_finder(response)
    if has_error is None:
        return encode

    def count_and_encode(message: Any) -> bytes:
        if has_error(message):
            _count(response, [message], meter)
        return encode(message)

    return count_and_encode


def count_errors(message: Any, meter: RequestMeter) -> None:
    """Count the errors that an answer, or a piece of one, tells of."""
    cls: Any = type(message)
    has_error = error_finder(cls)
    if has_error is not None and has_error(message):
        _count(cls, [message], meter)


@cache
def error_finder(response: Any) -> Callable[[Any], Any] | None:
    """What tells whether an answer has an error code other than 0 anywhere; None for a message
    without error codes. It is compiled, since every answer is asked, however many parts it has.
    """
    lines: list[str] = []
    _add_search(response, "m", 1, lines)
    if not lines:
        return None
    source = "\n".join(["def has_error(m):", *lines, "    return False"])
    names: dict[str, Any] = {"Columns": Columns}
    exec(source, names)  # noqa: S102  (made of the names of fields)
    found: Callable[[Any], Any] = names["has_error"]
    return found


def _add_search(message: type[Any], name: str, depth: int, lines: list[str]) -> None:
    indent = "    " * depth
    lines += [
        f"{indent}if {name}.{field.name}: return True"
        for field in fields_of(message)
        if field.name in _ERRORS
    ]
    for field in fields_of(message):
        if field.array and not isinstance(field.of, Primitive):
            inner: list[str] = []
            part = f"{name}{depth}"
            _add_search(field.of, part, depth + 2, inner)
            if inner:
                held, first = f"{name}.{field.name}", _first_with_errors(field.of)
                # Columns that end before the first error are not looked at: each has its default.
                lines.append(
                    f"{indent}if {held}.__class__ is not Columns or {held}.values[{first}:]:"
                )
                lines.append(f"{indent}    for {part} in {held} or ():")
                lines += inner


def _first_with_errors(message: type[Any]) -> int:
    """The place of the first field that is an error code, or that may hold some."""
    return next(
        place
        for place, field in enumerate(fields_of(message))
        if field.name in _ERRORS or (field.array and not isinstance(field.of, Primitive))
    )


def _count(cls: Any, messages: Sequence[Any], meter: RequestMeter) -> None:
    """Count the errors of messages of one class, a field at a time: an answer may have a hundred
    thousand, and none of them costs a call of Python.
    """
    for field in fields_of(cls):
        if field.name in _ERRORS:
            codes = [*filter(None, map(attrgetter(field.name), messages))]
            for code in set(codes):
                meter.failed(code, codes.count(code))
        elif field.array and not isinstance(field.of, Primitive):
            lists = filter(None, map(attrgetter(field.name), messages))
            within = [*chain.from_iterable(lists)]
            if within:
                _count(field.of, within, meter)
