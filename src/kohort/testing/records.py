# SPDX-License-Identifier: Apache-2.0
"""Records as Python objects: what a test produces, and what it reads back."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kohort.client.fetcher.record import AnyRecord
from kohort.errors import KohortError
from kohort.wire.batch.reading import Record as WireRecord

__tracebackhide__ = True
Content = str | bytes | bytearray | memoryview | None | dict[str, Any] | list[Any] | int | float
"""A text goes as UTF-8, None as null, and what is neither text nor bytes as JSON."""


Headers = Iterable[tuple[str, Content]] | Mapping[str, Content]


@dataclass(frozen=True, slots=True)
class Record:
    """One record of a topic, and where it stands."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()

    @property
    def text(self) -> str:
        """The value as text. Raises UnicodeDecodeError where it is none."""
        return (self.value or b"").decode()

    @property
    def json(self) -> Any:
        """The value as JSON says. Raises ValueError where it is none."""
        return json.loads(self.value or b"null")


def content(value: Content) -> bytes | None:
    """The bytes that stand for a key, a value or a header of a test."""
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    return value.encode() if isinstance(value, str) else json.dumps(value).encode()


def headers_of(given: Headers) -> list[tuple[str, bytes | None]]:
    """Headers as they go on the wire, from pairs or a mapping."""
    some: Any = given.items() if isinstance(given, Mapping) else given
    if isinstance(some, str | bytes) or not isinstance(some, Iterable):
        raise KohortError(f"headers is {given!r}, expected pairs or a mapping")
    found = []
    for pair in some:
        if not isinstance(pair, tuple | list) or len(pair) != 2 or not isinstance(pair[0], str):
            raise KohortError(f"headers has {pair!r}, expected a pair of a text and a value")
        found.append((pair[0], content(pair[1])))
    return found


def shortened(records: Sequence[Record]) -> str:
    """How many records there are, and the last few of them, for an error."""
    last = [
        f"{record.topic}-{record.partition} at {record.offset}: {record.value!r:.80}"
        for record in records
    ]
    return f"{len(records)} records{'; the last ones: ' if last else ''}{', '.join(last[-3:])}"


def from_consumer(record: AnyRecord) -> Record:
    """A record that was read, as a test sees it."""
    return Record(
        record.topic,
        record.partition,
        record.offset,
        record.timestamp_ms,
        record.key,
        record.value,
        record.headers,
    )


def from_wire(topic: str, partition: int, record: WireRecord) -> Record:
    """A record as a test sees it."""
    return Record(
        topic,
        partition,
        record.offset,
        record.timestamp,
        record.key,
        record.value,
        tuple(record.headers),
    )
