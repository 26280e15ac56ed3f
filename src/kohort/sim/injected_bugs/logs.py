# SPDX-License-Identifier: Apache-2.0
"""Bugs in how records are kept and read."""

from collections.abc import Iterator
from typing import Any

from kohort.server.partitions import batch_validation
from kohort.server.partitions.partition import Partition
from kohort.server.partitions.partition_producers import PartitionProducers
from kohort.sim.injected_bugs.replace_attribute import replace_attribute
from kohort.storage import compaction
from kohort.storage.log import StoredLog
from kohort.storage.segments import SegmentLog
from kohort.terms import Offset
from kohort.wire import batch as batches
from kohort.wire.batch.checking import RecordFaults


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
        replace_attribute(compaction, "_note_latest", note_latest),
        replace_attribute(compaction._Rewrite, "_kept_entries", without),  # noqa: SLF001
    ):
        yield


def unchecked_crc() -> Iterator[None]:
    """No crc is looked at."""
    with replace_attribute(batches, "check", lambda _data, _position, _header: None):
        yield


def forget_producers() -> Iterator[None]:
    """After a start nobody reads from the log which batches the producers have sent."""

    def unread(self: PartitionProducers, log: StoredLog, _most: int) -> bool:
        self.seen = log.end
        return False

    with replace_attribute(PartitionProducers, "read_on", unread):
        yield


def last_offset() -> Iterator[None]:
    """The high watermark is taken for the last offset that may be read; it is the one behind it."""
    read = Partition.read

    def before(self: Partition, offset: int, limit_bytes: int, end: Offset) -> bytes:
        return read(self, offset, limit_bytes, Offset(end - 1))

    with replace_attribute(Partition, "read", before):
        yield


def client_control() -> Iterator[None]:
    """What a batch says that it is, nobody looks at."""
    with replace_attribute(batch_validation, "_check_shape", lambda _header, _where: None):
        yield


def any_count() -> Iterator[None]:
    """Nobody looks whether a batch has as many records as it says."""
    with replace_attribute(batches, "check_contents", lambda *_, **__: RecordFaults([], [])):
        yield


def starts_of_all() -> Iterator[None]:
    """Each start of a log that moves has many more synced, on the loop."""
    move = SegmentLog.move_start

    def many(self: Any, start: Offset) -> None:
        move(self, start)
        for _ in range(160):
            self._files.sync_directory(self.directory)

    with replace_attribute(SegmentLog, "move_start", many):
        yield
