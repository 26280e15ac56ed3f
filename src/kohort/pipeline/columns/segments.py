# SPDX-License-Identifier: Apache-2.0
"""From the bytes of a log, as a segment file or a Fetch response has them, to raw rows.

Nothing that stands in the bytes makes it raise, and nothing is left out in silence: a batch that
cannot be read is one row, whose error tells why. All batches are read together, in numpy; a batch
in which anything is unusual is read again by `kohort.wire.batch`, which decides what it is.
"""

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from kohort.pipeline.columns.batches import BODY_BYTES, bodies_of, headers_of, places_of
from kohort.pipeline.columns.buffers import Ints
from kohort.pipeline.columns.fields import records_of
from kohort.pipeline.columns.out_of_order import out_of_order, out_of_order_batches
from kohort.pipeline.columns.record_positions import (
    ArrowRows,
    BufferRows,
    Headers,
    Rows,
    raw,
    with_offsets,
)
from kohort.pipeline.columns.slow_path import (
    as_batch,
    damage,
    left_over,
    offsets_of_damage,
    unusual_rows,
)


class ParseResult(NamedTuple):
    """What a run of bytes holds.

    `used` bytes were whole batches; what is behind them is cut, is no batch, or did not find room:
    a caller that has used some gives the rest once more. `next_offset` is
    the offset after the last whole batch, and `last` its base offset and crc: its fingerprint.
    """

    pieces: list[Rows]
    used: int
    next_offset: int
    last: tuple[int, int] | None

    @property
    def rows(self) -> pa.RecordBatch:
        """All of it in columns."""
        there = [raw(piece) for piece in self.pieces]
        return pa.concat_batches(there) if there else as_batch([])


def parse(
    data: bytes, partition: int, *, start: int = 0, end: int | None = None, final: bool = False
) -> ParseResult:
    """The records of whole batches from offset `start` to before `end`.

    Bytes at the end that are no whole batch are left over: a caller that has no more of them says
    `final`, and gets them as one row with an error, unless they are zeros. What is more than a GiB,
    or unfolds to more than `UNFOLDED_BYTES`, is left over too.
    """
    places = places_of(data)
    headers = headers_of(data, places)
    bodies = bodies_of(data, places, headers)
    final = final and bodies.batches == len(headers)
    places, headers = places[: bodies.batches + 1], headers[: bodies.batches]
    used = places[-1]
    records, right = records_of(headers, bodies)
    doubted = np.flatnonzero(~right).tolist()
    good = BufferRows(partition, bodies.data, headers, records)
    unusual = {
        index: unusual_rows(data[places[index] : places[index + 1]], partition) for index in doubted
    }
    right[[index for index, rows in unusual.items() if isinstance(rows, list)]] = True
    astray = out_of_order_batches(headers, right)
    right[astray] = False
    pieces: list[Rows] = []
    next_offset = start
    done = 0  # batches before this one
    for index in sorted({*doubted, *astray}):
        pieces.append(_of_batches(good, records.of, done, index))
        next_offset = _after(headers, done, index, next_offset)
        found = out_of_order(headers[index]) if index in astray else unusual[index]
        if isinstance(found, list):
            rows, following = found, _after(headers, index, index + 1, next_offset)
        else:
            bad = data[places[index] : places[index + 1]]
            offset, following = offsets_of_damage(bad, next_offset if index else None)
            later = headers["base_offset"][index + 1 :][right[index + 1 :]]
            if index in astray or (len(later) and following > later[0]):
                offset = following = next_offset
            rows = [damage(partition, offset, bad[:BODY_BYTES], found)]
        pieces.append(ArrowRows(as_batch(rows)))
        next_offset = following
        done = index + 1
    count = len(headers)
    pieces.append(_of_batches(good, records.of, done, count))
    next_offset = _after(headers, done, count, next_offset)
    last = None
    if right.any():
        newest = headers[np.flatnonzero(right)[-1]]
        last = (int(newest["base_offset"]), int(newest["crc"]))
    if final and any(data[used:]):
        pieces.append(ArrowRows(as_batch([left_over(data[used:], partition, next_offset)])))
        used = len(data)
    wanted = [with_offsets(piece, start, end) for piece in pieces if len(piece)]
    return ParseResult(wanted, used, next_offset, last)


def _after(headers: Headers, first: int, stop: int, before: int) -> int:
    """The offset after batches that were found right."""
    if first == stop:
        return before
    return int(headers[stop - 1]["base_offset"]) + int(headers[stop - 1]["last_offset_delta"]) + 1


def _of_batches(rows: BufferRows, of: Ints, first: int, stop: int) -> BufferRows:
    """The rows of right batches from `first` to before `stop`; `of` tells the batch of each row."""
    low, high = np.searchsorted(of, (first, stop))
    return rows if high - low == len(rows) else rows.between(int(low), int(high))
