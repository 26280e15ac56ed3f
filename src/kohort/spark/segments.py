"""From the bytes of a log, as a segment file or a Fetch response has them, to raw rows.

Nothing that stands in the bytes makes it raise, and nothing is left out in silence: a batch that
cannot be read is one row, whose error tells why.
"""

from typing import NamedTuple

import pyarrow as pa

from kohort.errors import WireError
from kohort.spark.schemas import RAW
from kohort.wire import batch

NEWEST_MS = 253_402_300_799_999
"""The last millisecond of the year 9999: no table can hold a later time."""


class Parsed(NamedTuple):
    """What a run of bytes holds.

    `used` bytes were whole batches; what is behind them is cut, or is no batch. `next_offset` is
    the offset after the last whole batch, and `last` its base offset and crc: its fingerprint.
    """

    rows: pa.RecordBatch
    used: int
    next_offset: int
    last: tuple[int, int] | None


def parse(
    data: bytes, partition: int, *, start: int = 0, end: int | None = None, final: bool = False
) -> Parsed:
    """The records of whole batches from offset `start` to before `end`.

    Bytes at the end that are no whole batch are left over: a caller that has no more of them says
    `final`, and gets them as one row with an error, unless they are zeros.
    """
    rows: list[tuple[object, ...]] = []
    position = 0
    next_offset = start
    last = None
    while len(data) - position >= batch.PREFIX_SIZE:
        base_offset = int.from_bytes(data[position : position + 8], signed=True)
        size = int.from_bytes(data[position + 8 : position + 12], signed=True) + batch.PREFIX_SIZE
        if not batch.HEADER_SIZE <= size <= len(data) - position:
            break
        one = data[position : position + size]
        position += size
        try:
            header = batch.header_at(one)
            batch.check(one, 0, header)
            rows += (
                (
                    partition,
                    offset,
                    microseconds_or_none(timestamp),
                    key,
                    value,
                    header.producer_id,
                    header.producer_epoch,
                    header.is_transactional,
                    header.is_control,
                    None,
                )
                for offset, timestamp, key, value in batch.entries(one)
            )
            next_offset = header.last_offset + 1
            last = (header.base_offset, header.crc)
        except WireError as error:
            rows.append(_damaged(partition, max(base_offset, next_offset), one, str(error)))
            next_offset = max(base_offset, next_offset) + 1
    left = data[position:]
    if final and any(left):
        reason = f"{len(left)} bytes at the end of the file are no whole batch"
        rows.append(_damaged(partition, next_offset, left, reason))
        position = len(data)
    kept = [row for row in rows if start <= row[1] and (end is None or row[1] < end)]  # type: ignore[operator]
    return Parsed(_batch(kept), position, next_offset, last)


def microseconds_or_none(timestamp: int) -> int | None:
    """A time of the log as tables have it; None for what is no time."""
    return timestamp * 1000 if 0 <= timestamp <= NEWEST_MS else None


def _damaged(partition: int, offset: int, value: bytes, error: str) -> tuple[object, ...]:
    return partition, offset, None, None, value, -1, -1, False, False, error


def _batch(rows: list[tuple[object, ...]]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True) if rows else [()] * len(RAW.names)
    return pa.RecordBatch.from_arrays(
        [pa.array(column, kind) for column, kind in zip(columns, RAW.arrow.types, strict=True)],
        schema=RAW.arrow,
    )
