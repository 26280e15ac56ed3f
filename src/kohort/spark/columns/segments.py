"""From the bytes of a log, as a segment file or a Fetch response has them, to raw rows.

Nothing that stands in the bytes makes it raise, and nothing is left out in silence: a batch that
cannot be read is one row, whose error tells why. All batches are read together, in numpy; a batch
in which anything is unusual is read again by `kohort.wire.batch`, which decides what it is.
"""

from struct import Struct
from typing import Any, NamedTuple

import google_crc32c
import numpy as np
import pyarrow as pa

from kohort.errors import WireError
from kohort.spark.columns.buffers import Bools, Bytes, Ints, structures, varints
from kohort.spark.columns.lengths import SMALLEST, starts_of
from kohort.spark.columns.located import (
    Headers,
    InColumns,
    Located,
    Places,
    Rows,
    raw,
    with_offsets,
)
from kohort.spark.columns.times import microseconds_or_none
from kohort.spark.schemas import RAW
from kohort.spark.schemas.rows import BATCH
from kohort.wire import batch
from kohort.wire.compression import OUTPUT_LIMIT, decompress

SHOWN_BYTES = 1 << 20
"""What is kept of bytes that are no batch at all."""

_PIECE_BYTES = 1 << 30  # of log, and again of what it unfolds to: Arrow counts bytes in 31 bits
_LARGE = 1 << 61  # sums of two smaller numbers fit
_NO_OFFSET = (1 << 63) - 1
_OLD_SIZE = 26  # bytes of the smallest message of magic 0
_LENGTH = Struct(">8xI")
_HEADER = np.dtype(
    [
        ("base_offset", ">i8"),
        ("length", ">i4"),
        ("partition_leader_epoch", ">i4"),
        ("magic", ">i1"),
        ("crc", ">u4"),
        ("attributes", ">i2"),
        ("last_offset_delta", ">i4"),
        ("base_timestamp", ">i8"),
        ("max_timestamp", ">i8"),
        ("producer_id", ">i8"),
        ("producer_epoch", ">i2"),
        ("base_sequence", ">i4"),
        ("count", ">i4"),
    ]
)
_NO_BATCH = (None,) * len(BATCH)
Row = tuple[Any, ...]


class Parsed(NamedTuple):
    """What a run of bytes holds.

    `used` bytes were whole batches; what is behind them is cut, or is no batch. `next_offset` is
    the offset after the last whole batch, and `last` its base offset and crc: its fingerprint.
    """

    pieces: list[Rows]
    used: int
    next_offset: int
    last: tuple[int, int] | None

    @property
    def rows(self) -> pa.RecordBatch:
        """All of it in columns."""
        there = [raw(one) for one in self.pieces]
        return pa.concat_batches(there) if there else _as_batch([])


class _Bodies(NamedTuple):
    """The plain records of batches: between which positions of the bytes they are."""

    data: bytes
    starts: Ints
    ends: Ints
    right: Bools


def parse(
    data: bytes, partition: int, *, start: int = 0, end: int | None = None, final: bool = False
) -> Parsed:
    """The records of whole batches from offset `start` to before `end`.

    Bytes at the end that are no whole batch are left over: a caller that has no more of them says
    `final`, and gets them as one row with an error, unless they are zeros. Of more than a GiB the
    rest is left over too.
    """
    places = _places(data)
    used = places[-1]
    headers = _headers(data, places)
    bodies = _bodies(data, places, headers)
    records, right = _records(headers, bodies)
    doubted = np.flatnonzero(~right).tolist()
    good = Located(partition, bodies.data, headers, records)
    unusual = {one: _unusual(data[places[one] : places[one + 1]], partition) for one in doubted}
    right[[one for one, rows in unusual.items() if isinstance(rows, list)]] = True
    astray = _astray(headers, right)
    right[astray] = False
    pieces: list[Rows] = []
    next_offset = start
    done = 0  # batches before this one
    for one in sorted({*doubted, *astray}):
        pieces.append(_of_batches(good, records.of, done, one))
        next_offset = _after(headers, done, one, next_offset)
        found = _out_of_order(headers[one]) if one in astray else unusual[one]
        if isinstance(found, list):
            rows, following = found, _after(headers, one, one + 1, next_offset)
        else:
            bad = data[places[one] : places[one + 1]]
            offset, following = _offsets_of_damage(bad, next_offset if one else None)
            later = headers["base_offset"][one + 1 :][right[one + 1 :]]
            if one in astray or (len(later) and following > later[0]):
                offset = following = next_offset
            rows = [_damage(partition, offset, bad, found)]
        pieces.append(InColumns(_as_batch(rows)))
        next_offset = following
        done = one + 1
    count = len(headers)
    pieces.append(_of_batches(good, records.of, done, count))
    next_offset = _after(headers, done, count, next_offset)
    last = None
    if right.any():
        newest = headers[np.flatnonzero(right)[-1]]
        last = (int(newest["base_offset"]), int(newest["crc"]))
    if final and any(data[used:]):
        pieces.append(InColumns(_as_batch([_left(data[used:], partition, next_offset)])))
        used = len(data)
    wanted = [with_offsets(one, start, end) for one in pieces if len(one)]
    return Parsed(wanted, used, next_offset, last)


# ---- batches


def _astray(headers: Headers, right: Bools) -> list[int]:
    """Batches whose offsets are out of order, each of them right by itself: those without which the
    others are in order.

    No checksum covers a base offset. A last offset may be wrong as well, under a checksum that was
    made after it: then the batch overlaps those that follow.
    """
    places = np.flatnonzero(right)
    base = headers["base_offset"].astype(np.int64)[places]
    after = base + headers["last_offset_delta"][places] + 1
    if (base[1:] >= after[:-1]).all():
        return []
    kept: list[int] = []
    found: list[int] = []
    for one in range(len(places)):
        if not kept or base[one] >= after[kept[-1]]:
            kept.append(one)
        elif _is_ahead(base, after, kept, one):
            found.append(kept.pop())
            kept.append(one)
        else:
            found.append(one)
    return sorted(places[found].tolist())


def _is_ahead(base: Ints, after: Ints, kept: list[int], one: int) -> bool:
    """Whether it is the batch before this one that is astray."""
    if len(kept) > 1:
        before = after[kept[-2]]
        return bool(base[one] >= before != base[kept[-1]])
    return one + 1 < len(base) and bool(after[one] <= base[one + 1] < after[kept[-1]])


def _out_of_order(header: np.void) -> str:
    base = int(header["base_offset"])
    last = base + int(header["last_offset_delta"])
    return f"batch has offsets {base} to {last}, out of order with the batches around it"


def _places(data: bytes) -> list[int]:
    """Where whole batches begin, and where the last of them ends."""
    places = [0]
    append = places.append
    size = min(len(data), _PIECE_BYTES)
    last = size - batch.HEADER_SIZE
    length_at = _LENGTH.unpack_from
    while True:
        position = places[-1]
        while position <= last:
            length = batch.PREFIX_SIZE + length_at(data, position)[0]
            position += length
            if position > size or length < batch.HEADER_SIZE:
                break
            append(position)
        old_size = _old_size(data, places[-1], size)
        if not old_size:
            return places
        append(places[-1] + old_size)


def _old_size(data: bytes, position: int, size: int) -> int:
    """How long the whole message of magic 0 or 1 is that stands here, which is less than a header
    of today may be; 0 for none.
    """
    if size - position < _OLD_SIZE or data[position + 16] not in {0, 1}:
        return 0
    length = batch.PREFIX_SIZE + int.from_bytes(data[position + 8 : position + 12], signed=True)
    return length if _OLD_SIZE <= length <= size - position else 0


def _headers(data: bytes, places: list[int]) -> Headers:
    """The headers of whole batches. A batch that has no room for one has one without sense."""
    positions = np.array(places[:-1], np.int64)
    if not len(positions):
        return np.empty(0, _HEADER)
    if positions[-1] + batch.HEADER_SIZE > len(data):
        data += bytes(batch.HEADER_SIZE)
    return structures(data, _HEADER, positions)


def _bodies(data: bytes, places: list[int], headers: Headers) -> _Bodies:
    """Where the records of each batch are, unfolded where they were compressed."""
    edges = np.array(places, np.int64)
    starts, ends = edges[:-1] + batch.HEADER_SIZE, edges[1:].copy()
    covered = map(data.__getitem__, map(slice, (edges[:-1] + 21).tolist(), places[1:]))
    crcs = np.fromiter(map(google_crc32c.value, covered), np.int64, len(headers))
    right = (
        (crcs == headers["crc"])
        & (headers["magic"] == 2)
        & (headers["base_offset"] >= 0)
        & (headers["base_offset"] < _LARGE)
        & (headers["last_offset_delta"] >= 0)
        & (headers["count"] >= 0)
        & (headers["base_timestamp"] > -_LARGE)
        & (headers["base_timestamp"] < _LARGE)
    )
    codecs = headers["attributes"] & batch.CODEC_MASK
    unfolded = []
    room = _PIECE_BYTES
    size = len(data)
    for one in np.flatnonzero(right & (codecs != 0) & (headers["count"] > 0)).tolist():
        packed = data[places[one] + batch.HEADER_SIZE : places[one + 1]]
        try:
            body = decompress(int(codecs[one]), packed, min(room, OUTPUT_LIMIT))
        except WireError:
            right[one] = False
            continue
        unfolded.append(body)
        room -= len(body)
        starts[one], ends[one] = size, size + len(body)
        size += len(body)
    empty = right & (codecs != 0) & (headers["count"] == 0)
    ends[empty] = starts[empty]
    return _Bodies(b"".join((data, *unfolded)) if unfolded else data, starts, ends, right)


def _after(headers: Headers, first: int, stop: int, before: int) -> int:
    """The offset after batches that were found right."""
    if first == stop:
        return before
    return int(headers[stop - 1]["base_offset"]) + int(headers[stop - 1]["last_offset_delta"]) + 1


# ---- records


def _records(headers: Headers, bodies: _Bodies) -> tuple[Places, Bools]:
    """The records of the batches in which nothing is unusual, and which batches those are."""
    data, starts, ends, right = bodies
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
        records = Places(*(one[kept] for one in records))
    append_time = (headers["attributes"] & batch.APPEND_TIME) != 0
    base = np.where(append_time, headers["max_timestamp"], headers["base_timestamp"])
    timestamp = base.astype(np.int64)[records.of]
    if append_time.any():
        timestamp += np.where(append_time[records.of], 0, records.timestamp)
    else:
        timestamp += records.timestamp
    offset = records.offset + headers["base_offset"].astype(np.int64)[records.of]
    return records._replace(offset=offset, timestamp=timestamp), right


def _fields(buffer: Bytes, begins: Ints, stops: Ints, of: Ints) -> tuple[Places, Bools, Ints]:
    """The fields of records, those that are fine, and their offset deltas. As `batch.entries` has
    it: headers are not looked at, but their count has a byte of its own.
    """
    size, at = varints(buffer, begins)
    fine = (size >= 0) & (at + size == stops)
    time_delta, at = varints(buffer, at + 1)
    offset_delta, at = varints(buffer, at)
    key_size, key = varints(buffer, at)
    value_size, value = varints(buffer, key + np.maximum(key_size, 0))
    fine &= value + np.maximum(value_size, 0) < stops
    fine &= (key_size >= -1) & (value_size >= -1)
    records = Places(of, offset_delta, time_delta, key, key_size, value, value_size)
    return records, fine, offset_delta


# ---- rows


def _unusual(one: bytes, partition: int) -> list[Row] | str:
    """A batch as rows, or why it is damage: what the fast way does not believe, the broker's own
    reader decides.
    """
    try:
        header = _right_header(one)
        return [
            (
                *(partition, offset, microseconds_or_none(timestamp), key, value),
                *(header.producer_id, header.producer_epoch),
                *(header.is_transactional, header.is_control),
                *(header.partition_leader_epoch, header.base_offset, header.attributes, None),
            )
            for offset, timestamp, key, value in batch.entries(one)
        ]
    except WireError as error:
        return str(error)


def _right_header(one: bytes) -> batch.BatchHeader:
    if len(one) < batch.HEADER_SIZE:
        raise WireError(f"batch has magic {one[16]}, expected 2")
    header = batch.header_at(one)
    batch.check(one, 0, header)
    if header.last_offset >= _NO_OFFSET:
        raise WireError(f"batch ends at offset {header.last_offset}, expected below {_NO_OFFSET}")
    return header


def _offsets_of_damage(one: bytes, expected: int | None) -> tuple[int, int]:
    """The offset at which a damaged batch is one row, and the one after it: its base offset unless
    that goes back, since it may be what is damaged.
    """
    base_offset = int.from_bytes(one[:8], signed=True)
    offset = max(base_offset, 0 if expected is None else expected)
    following = offset + 1
    if len(one) >= batch.HEADER_SIZE and offset == base_offset:
        last_delta = int.from_bytes(one[23:27], signed=True)
        count = int.from_bytes(one[57:61], signed=True)
        if 0 <= count - 1 <= last_delta < len(one):
            following += last_delta
    return offset, following


def _left(left: bytes, partition: int, offset: int) -> Row:
    error = f"{len(left)} bytes at the end of the file are no whole batch"
    if len(left) >= batch.PREFIX_SIZE:
        length = int.from_bytes(left[8:12], signed=True) + batch.PREFIX_SIZE
        error += f": it says that it is {length} bytes long"
    if len(left) > SHOWN_BYTES:
        error += f" (the first {SHOWN_BYTES} are kept)"
    return _damage(partition, offset, left[:SHOWN_BYTES], error)


def _damage(partition: int, offset: int, value: bytes, error: str) -> Row:
    return partition, offset, None, None, value, -1, -1, False, False, *_NO_BATCH, error


def _as_batch(rows: list[Row]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True) if rows else [()] * len(RAW.names)
    return pa.RecordBatch.from_arrays(
        [pa.array(values, kind) for values, kind in zip(columns, RAW.arrow.types, strict=True)],
        schema=RAW.arrow,
    )


def _of_batches(rows: Located, of: Ints, first: int, stop: int) -> Located:
    """The rows of right batches from `first` to before `stop`; `of` tells the batch of each row."""
    low, high = np.searchsorted(of, (first, stop))
    return rows if high - low == len(rows) else rows.between(int(low), int(high))
