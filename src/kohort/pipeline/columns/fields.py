# SPDX-License-Identifier: Apache-2.0
"""The records of batches in which nothing is unusual: where their fields stand in the bytes."""

import numpy as np

from kohort.pipeline.columns.batches import Bodies
from kohort.pipeline.columns.buffers import Bools, Bytes, Ints, varints
from kohort.pipeline.columns.lengths import SMALLEST, starts_of
from kohort.pipeline.columns.record_positions import Headers, RecordPositions
from kohort.wire import batch


def records_of(headers: Headers, bodies: Bodies) -> tuple[RecordPositions, Bools]:
    """The records of the batches in which nothing is unusual, and which batches those are."""
    data, starts, ends, right, _batches = bodies
    counts = headers["count"].astype(np.int64)
    right &= counts <= (ends - starts) // SMALLEST
    counts[~right] = 0
    begins, walked = starts_of(data, starts, counts)
    right &= walked == ends
    of = np.repeat(np.arange(len(headers)), counts)
    stops = np.empty(len(begins), np.int64)
    stops[:-1] = begins[1:]
    last = np.cumsum(counts)[counts > 0] - 1
    stops[last] = ends[counts > 0]
    records, fine, deltas = _fields(np.frombuffer(data, np.uint8), begins, stops, of)
    rising = np.ones(len(deltas), np.bool_)
    rising[1:] = (deltas[1:] > deltas[:-1]) | (of[1:] != of[:-1])
    fine &= rising & (deltas >= 0) & (deltas <= headers["last_offset_delta"].astype(np.int64)[of])
    if not fine.all():
        right[of[~fine]] = False
    if not right.all():
        kept = right[of]
        records = RecordPositions(*(record[kept] for record in records))
    append_time = (headers["attributes"] & batch.APPEND_TIME) != 0
    base = np.where(append_time, headers["max_timestamp"], headers["base_timestamp"])
    timestamp = base.astype(np.int64)[records.of]
    if append_time.any():
        timestamp += np.where(append_time[records.of], 0, records.timestamp)
    else:
        timestamp += records.timestamp
    offset = records.offset + headers["base_offset"].astype(np.int64)[records.of]
    return records._replace(offset=offset, timestamp=timestamp), right


def _fields(
    buffer: Bytes, begins: Ints, stops: Ints, of: Ints
) -> tuple[RecordPositions, Bools, Ints]:
    """The fields of records, those that are fine, and their offset deltas. As `batch.entries` has
    it: headers are not looked at, but their count has a byte of its own.
    """
    size, at = varints(buffer, begins)
    fine = (size >= 0) & (at + size == stops)
    time_delta, at = varints(buffer, at + 1)
    offset_delta, at = varints(buffer, at)
    key_size, key = varints(buffer, at)
    value_size, value = varints(buffer, key + np.maximum(key_size, 0))
    header = value + np.maximum(value_size, 0)
    fine &= header < stops
    fine &= (key_size >= -1) & (value_size >= -1)
    records = RecordPositions(
        of, offset_delta, time_delta, key, key_size, value, value_size, header, stops - header
    )
    return records, fine, offset_delta
