# SPDX-License-Identifier: Apache-2.0
"""Batches that the fast way does not believe: read again by `kohort.wire.batch`, or told as damage.

A batch that cannot be read is one row, whose error says why.
"""

from typing import Any

import pyarrow as pa

from kohort.errors import WireError
from kohort.pipeline.columns.batches import BODY_BYTES
from kohort.pipeline.columns.record_positions import as_headers
from kohort.pipeline.columns.times import microseconds_or_none
from kohort.pipeline.schemas import RAW
from kohort.pipeline.schemas.rows import BATCH
from kohort.wire import batch

SHOWN_BYTES = 1 << 20
"""What is kept of bytes that are no batch at all."""

_NO_OFFSET = (1 << 63) - 1
_NO_BATCH = (None,) * (len(BATCH) + 1)  # nor headers
Row = tuple[Any, ...]


def unusual_rows(data: bytes, partition: int) -> list[Row] | str:
    """A batch as rows, or why it is damage: what the fast way does not believe, the broker's own
    reader decides.
    """
    try:
        header = _right_header(data)
        entries = batch.entries(data, limit=BODY_BYTES)
        headers = _headers_by_offset(data)
        return [
            (
                *(partition, offset, microseconds_or_none(timestamp), key, value),
                *(header.producer_id, header.producer_epoch),
                *(header.is_transactional, header.is_control),
                *(header.partition_leader_epoch, header.base_offset, header.attributes),
                *(headers.get(offset), None),
            )
            for offset, timestamp, key, value in entries
        ]
    except WireError as error:
        return str(error)


def _headers_by_offset(data: bytes) -> dict[int, list[dict[str, Any]] | None]:
    """Those that can be read: without its headers a record is still a record."""
    try:
        return {record.offset: as_headers(record.headers) for record in batch.records(data)}
    except WireError:
        return {}


def _right_header(data: bytes) -> batch.BatchHeader:
    if len(data) < batch.HEADER_SIZE:
        raise WireError(f"batch has magic {data[16]}, expected 2")
    size = len(data) - batch.HEADER_SIZE
    if size > BODY_BYTES:
        raise WireError(f"batch has {size} bytes of records, expected {BODY_BYTES} at most")
    header = batch.header_at(data)
    batch.check(data, 0, header)
    if header.last_offset >= _NO_OFFSET:
        raise WireError(f"batch ends at offset {header.last_offset}, expected below {_NO_OFFSET}")
    return header


def offsets_of_damage(data: bytes, expected: int | None) -> tuple[int, int]:
    """The offset at which a damaged batch is one row, and the one after it: its base offset unless
    that goes back, since it may be what is damaged.
    """
    base_offset = int.from_bytes(data[:8], signed=True)
    offset = max(base_offset, 0 if expected is None else expected)
    following = offset + 1
    if len(data) >= batch.HEADER_SIZE and offset == base_offset:
        last_delta = int.from_bytes(data[23:27], signed=True)
        count = int.from_bytes(data[57:61], signed=True)
        if 0 <= count - 1 <= last_delta < len(data):
            following += last_delta
    return offset, following


def left_over(left: bytes, partition: int, offset: int) -> Row:
    """The row of bytes behind the last whole batch, which no more bytes will complete."""
    error = f"{len(left)} bytes at the end of the file are no whole batch"
    if len(left) >= batch.PREFIX_SIZE:
        length = int.from_bytes(left[8:12], signed=True) + batch.PREFIX_SIZE
        error += f": it says that it is {length} bytes long"
    if len(left) > SHOWN_BYTES:
        error += f" (the first {SHOWN_BYTES} are kept)"
    return damage(partition, offset, left[:SHOWN_BYTES], error)


def damage(partition: int, offset: int, value: bytes, error: str) -> Row:
    """The row of bytes that cannot be read; they are its value."""
    return partition, offset, None, None, value, -1, -1, False, False, *_NO_BATCH, error


def as_batch(rows: list[Row]) -> pa.RecordBatch:
    """Rows in the columns of RAW."""
    columns = zip(*rows, strict=True) if rows else [()] * len(RAW.names)
    return pa.RecordBatch.from_arrays(
        [pa.array(values, kind) for values, kind in zip(columns, RAW.arrow.types, strict=True)],
        schema=RAW.arrow,
    )
