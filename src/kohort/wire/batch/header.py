# SPDX-License-Identifier: Apache-2.0
"""The 61 bytes in front of a batch's records, and what can be done without looking at the records.

The base offset and the leader epoch come before the part that the crc covers. So a log writes both
into the bytes it was given and never computes a checksum.
"""

import struct
from collections.abc import Iterator
from struct import Struct

import google_crc32c
import msgspec

from kohort.errors import WireError

HEADER_SIZE = 61
PREFIX_SIZE = 12  # base offset and length: what the length field does not count
_HEADER = Struct(">qiibIhiqqqhii")
_OFFSET = Struct(">q")
_EPOCH = Struct(">i")
CONTROL_KEY = Struct(">hh")  # of the one record in a control batch
CONTROL_VALUE = Struct(">hi")

CODEC_MASK = 0x07
APPEND_TIME = 0x08
TRANSACTIONAL = 0x10
CONTROL = 0x20
DELETE_HORIZON = 0x40


class BatchHeader(msgspec.Struct, gc=False):
    """The 61 bytes in front of a batch's records. `length` is of the whole batch."""

    base_offset: int
    length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    count: int

    @property
    def last_offset(self) -> int:
        """The last offset of the batch, even where compaction has removed that record."""
        return self.base_offset + self.last_offset_delta

    @property
    def last_sequence(self) -> int:
        """The sequence of the last record, or -1; sequences wrap after 2^31 - 1."""
        if self.base_sequence < 0:
            return -1
        return (self.base_sequence + self.last_offset_delta) & 0x7FFFFFFF

    @property
    def compression(self) -> int:
        return self.attributes & CODEC_MASK

    @property
    def is_append_time(self) -> bool:
        """All records carry max_timestamp: the broker's clock, not the producer's."""
        return bool(self.attributes & APPEND_TIME)

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL)

    @property
    def delete_horizon(self) -> int | None:
        """When cleaning may drop this batch's tombstones; the first cleaning sets it (KIP-534)."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON else None


def peek(data: bytes, position: int = 0) -> BatchHeader:
    """The header alone: the records behind it need not be there. Raises WireError."""
    try:
        header = BatchHeader(*_HEADER.unpack_from(data, position))
    except struct.error:
        raise WireError(
            f"batch at {position} is cut: {len(data) - position} bytes, expected {HEADER_SIZE} up"
        ) from None
    if header.magic != 2:
        raise WireError(f"batch at {position} has magic {header.magic}, expected 2")
    header.length += PREFIX_SIZE
    if header.length < HEADER_SIZE:
        raise WireError(f"batch at {position} is {header.length} bytes, expected {HEADER_SIZE} up")
    if header.base_offset < 0 or header.last_offset_delta < 0 or header.count < 0:
        raise WireError(
            f"batch at {position} has base offset {header.base_offset}, last offset delta "
            f"{header.last_offset_delta} and {header.count} records, expected none below 0"
        )
    return header


def header_at(data: bytes, position: int = 0) -> BatchHeader:
    """The header of a whole batch. Raises WireError where it is cut or not of magic 2."""
    header = peek(data, position)
    if header.length > len(data) - position:
        raise WireError(
            f"batch at {position} is cut: {header.length} bytes, {len(data) - position} are there"
        )
    return header


def check(data: bytes, position: int, header: BatchHeader) -> None:
    """Raises WireError unless the crc matches the bytes. `header` is that of `header_at`."""
    crc = google_crc32c.value(bytes(data[position + 21 : position + header.length]))
    if crc != header.crc:
        raise WireError(
            f"batch at {position} (base offset {header.base_offset}) has crc {crc:08x}, "
            f"its header says {header.crc:08x}"
        )


def walk(data: bytes) -> Iterator[tuple[int, BatchHeader]]:
    """Position and header of each batch of a contiguous run. Raises WireError at a cut one."""
    position = 0
    size = len(data)
    while position < size:
        header = header_at(data, position)
        yield position, header
        position += header.length


def stamp(batch: bytes, base_offset: int, leader_epoch: int) -> bytes:
    """The batch with its place in a log written into it; its crc stays valid."""
    return b"".join(
        (
            _OFFSET.pack(base_offset),
            batch[8:12],
            _EPOCH.pack(leader_epoch),
            batch[16:],
        )
    )
