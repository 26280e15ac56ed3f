"""Bugs in how records are kept and read."""

from collections.abc import Iterator
from typing import Any

from kohort.server.partitions import Partition
from kohort.server.producers import Producers
from kohort.sim.plants.instead import instead
from kohort.storage import compaction
from kohort.terms import Millis, Offset
from kohort.wire import batch as batches


def drop_tombstone() -> Iterator[None]:
    """Cleaning passes over tombstones when it looks for the last value of a key."""

    def note_latest(latest: dict[bytes, int], _survey: Any, data: bytes) -> None:
        for at, header in batches.walk(data):
            if not header.is_control:
                records = batches.entries(data, at)
                latest.update(
                    (key, offset)
                    for offset, _, key, value in records
                    if key is not None and value is not None
                )

    kept = compaction._Rewrite._kept_entries  # noqa: SLF001

    def without(self: Any, data: bytes, header: Any) -> list[tuple[int, bytes | None]]:
        return [(at, value) for at, value in kept(self, data, header) if value is not None]

    with (
        instead(compaction, "_note_latest", note_latest),
        instead(compaction._Rewrite, "_kept_entries", without),  # noqa: SLF001
    ):
        yield


def unchecked_crc() -> Iterator[None]:
    """No crc is looked at."""
    with instead(batches, "check", lambda _data, _position, _header: None):
        yield


def forget_producers() -> Iterator[None]:
    """After a start nobody reads from the log which batches the producers have sent."""

    def unread(self: Partition, _now: Millis) -> Producers:
        if self._producers is None:
            self._producers = Producers()
        return self._producers

    with instead(Partition, "_known_producers", unread):
        yield


def last_offset() -> Iterator[None]:
    """The high watermark is taken for the last offset that may be read; it is the one behind it."""
    read = Partition.read

    def before(self: Partition, offset: int, limit_bytes: int, end: Offset) -> bytes:
        return read(self, offset, limit_bytes, Offset(end - 1))

    with instead(Partition, "read", before):
        yield
