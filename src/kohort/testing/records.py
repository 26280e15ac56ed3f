"""Records as Python objects: what a test produces, and what it reads back."""

import json
from dataclasses import dataclass
from typing import Any

from kohort.wire.batch.reading import Record as WireRecord

Content = str | bytes | None | dict[str, Any] | list[Any] | int | float
"""A text goes as UTF-8, None as null, and what is neither text nor bytes as JSON."""


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
    """The bytes that stand for a key or a value of a test."""
    if value is None or isinstance(value, bytes):
        return value
    return value.encode() if isinstance(value, str) else json.dumps(value).encode()


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
