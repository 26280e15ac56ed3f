# SPDX-License-Identifier: Apache-2.0
"""Committed offsets, many at once: nearly all of a group log is nothing else.

What is plain is read here, from keys of type 0 and 1 whose every field is inside its own record.
Everything else is left to `records`, and a property test holds the two equal.
"""

from collections.abc import Callable, Collection
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kohort.pipeline.columns.buffers import (
    Bools,
    Bytes,
    Ints,
    big_endian,
    column,
    slices,
    structures,
    unsigned_varints,
)
from kohort.pipeline.columns.record_positions import Ranges
from kohort.pipeline.columns.times import timestamps
from kohort.pipeline.schemas import KINDS, TOMBSTONE
from kohort.pipeline.schemas.table import TIME

NEWEST = 4  # version of the value
_METADATA_BYTES = 2  # of the length of metadata: 16 KiB, where a broker allows 4 by default
_TOPIC_ID_TAG = 0x01_00_10  # one tagged field, its number 0, its size 16
_TEXTS = ("group_id", "topic", "metadata")
_PLAIN = np.dtype(
    [
        ("version", ">i2"),
        ("offset", ">i8"),
        ("leader_epoch", ">i4"),
        ("size", "u1"),  # of the metadata, and one more
        ("timestamp", ">i8"),
        ("tags", "u1"),
        ("tag", ">u2"),
        ("topic_id", "u1", 16),
    ]
)


class _Keys(NamedTuple):
    type: npt.NDArray[np.int16]
    group: Ints
    group_size: Ints
    topic: Ints
    topic_size: Ints
    partition: npt.NDArray[np.int32]
    plain: Bools


class _Values(NamedTuple):
    version: npt.NDArray[np.int16]
    offset: Ints
    leader_epoch: npt.NDArray[np.int32]
    metadata: Ints
    metadata_size: Ints
    commit_timestamp: Ints
    expire_timestamp: Ints
    topic_id: Ints
    has_topic_id: Bools
    plain: Bools


_Fields = TypeVar("_Fields", _Keys, _Values)


def types(keys: Ranges) -> npt.NDArray[np.int16]:
    """The record type of each key, -1 where it has none."""
    found: npt.NDArray[np.int16] = big_endian(keys.buffer, ">i2", keys.starts)
    found[keys.ends - keys.starts < 2] = -1
    return found


def plain_columns(
    keys: Ranges, values: Ranges, candidates: Ints, names: Collection[str]
) -> tuple[Ints, dict[str, pa.Array]]:
    """Which of the rows are plain commits or their tombstones, and their columns of these names.

    Columns of text are there in any case: a row whose text is none is not plain.
    """
    key = _read_keys(keys.at(candidates))
    value = _read_values(values.at(candidates), key.type)
    there = values.there[candidates]
    plain = key.plain & (value.plain | ~there)
    for _ in range(2):
        if not plain.all():
            kept = np.flatnonzero(plain)
            candidates, there = candidates[kept], there[kept]
            key, value = _only(key, kept), _only(value, kept)
        columns = _columns(keys.buffer, values.buffer, key, value, there, {*_TEXTS, *names})
        if _is_text(columns):
            break
        # Seldom: text of more than ASCII is looked at one by one.
        plain = _is_ascii(keys.at(candidates)) & (_is_ascii(values.at(candidates)))
    return candidates, columns


def _only(fields: _Fields, rows: Ints) -> _Fields:
    arrays: Any = fields
    return type(fields)(*(array[rows] for array in arrays))


def _read_keys(keys: Ranges) -> _Keys:
    buffer, starts, ends, there = keys
    kind = types(keys)
    group = starts + 4
    group_size = big_endian(buffer, ">i2", starts + 2).astype(np.int64)
    topic = group + group_size + 2
    topic_size = big_endian(buffer, ">i2", topic - 2).astype(np.int64)
    partition = topic + topic_size
    plain = (kind >= 0) & (kind <= 1) & there
    plain &= (group_size >= 0) & (topic_size >= 0) & (partition + 4 <= ends)
    return _Keys(
        kind, group, group_size, topic, topic_size, big_endian(buffer, ">i4", partition), plain
    )


def _read_values(values: Ranges, kind: npt.NDArray[np.int16]) -> _Values:
    buffer, starts, ends, _ = values
    if len(starts) and (ends - starts == _PLAIN.itemsize).all() and (kind == 1).all():
        alike = _read_plain_values(buffer, starts)
        if alike.plain.all():
            return alike
    version = big_endian(buffer, ">i2", starts)
    has_epoch = version >= 3
    epoch = np.where(has_epoch, big_endian(buffer, ">i4", starts + 10), np.int32(-1))
    at = starts + np.where(has_epoch, 14, 10)
    is_compact = version == NEWEST
    if is_compact.all():
        size, metadata = unsigned_varints(buffer, at)
        size -= 1
    else:
        size = big_endian(buffer, ">i2", at).astype(np.int64)
        metadata = at + 2
        compact = np.flatnonzero(is_compact)
        size[compact], metadata[compact] = unsigned_varints(buffer, at[compact])
        size[compact] -= 1
    end = metadata + size
    tags = big_endian(buffer, ">u4", end + 8)
    no_tags = tags >> 24 == 0
    has_topic_id = is_compact & (tags >> 8 == _TOPIC_ID_TAG)
    plain = (version >= 0) & (version <= np.where(kind == 0, 0, NEWEST)) & (size >= 0)
    plain &= (metadata - at <= _METADATA_BYTES) & (~is_compact | has_topic_id | no_tags)
    extra = np.where(has_topic_id, 27, np.where(is_compact, 9, np.where(version == 1, 16, 8)))
    plain &= end + extra <= ends
    expire = np.full(len(starts), -1, np.int64)
    old = np.flatnonzero(version == 1)
    expire[old] = big_endian(buffer, ">i8", end[old] + 8)
    return _Values(
        version,
        big_endian(buffer, ">i8", starts + 2),
        epoch,
        metadata,
        size,
        big_endian(buffer, ">i8", end),
        expire,
        end + 11,
        has_topic_id,
        plain,
    )


def _read_plain_values(buffer: Bytes, starts: Ints) -> _Values:
    """Values of version 4 with a topic id and no metadata: all are alike, and read in one go."""
    found = structures(buffer, _PLAIN, starts)
    count = len(starts)
    return _Values(
        found["version"].astype(np.int16),
        found["offset"].astype(np.int64),
        found["leader_epoch"].astype(np.int32),
        starts + 15,
        np.zeros(count, np.int64),
        found["timestamp"].astype(np.int64),
        np.full(count, -1, np.int64),
        starts + 26,
        np.ones(count, np.bool_),
        (found["version"] == NEWEST)
        & (found["size"] == 1)
        & (found["tags"] == _TOPIC_ID_TAG >> 16)
        & (found["tag"] == _TOPIC_ID_TAG & 0xFFFF),
    )


def _columns(
    key_buffer: Bytes,
    value_buffer: Bytes,
    key: _Keys,
    value: _Values,
    there: Bools,
    names: Collection[str],
) -> dict[str, pa.Array]:
    valid = None if there.all() else there
    ways: dict[str, Callable[[], pa.Array]] = {
        "kind": lambda: _kinds(key.type, there),
        "type": lambda: column(pa.int16(), key.type),
        "value_version": lambda: column(pa.int16(), value.version, valid),
        "group_id": lambda: slices(pa.string(), key_buffer, key.group, key.group_size),
        "topic": lambda: slices(pa.string(), key_buffer, key.topic, key.topic_size),
        "topic_partition": lambda: column(pa.int32(), key.partition),
        "committed_offset": lambda: column(pa.int64(), value.offset, valid),
        "leader_epoch": lambda: column(pa.int32(), value.leader_epoch, valid),
        "metadata": lambda: _optional(
            pa.string(), value_buffer, value.metadata, value.metadata_size, there
        ),
        "commit_timestamp": lambda: _times(value.commit_timestamp, there),
        "expire_timestamp": lambda: _times(value.expire_timestamp, there),
        "topic_id": lambda: _topic_ids(value_buffer, value, there),
    }
    return {name: way() for name, way in ways.items() if name in names}


def _topic_ids(buffer: Bytes, value: _Values, there: Bools) -> pa.Array:
    has = value.has_topic_id & there
    rows = np.flatnonzero(has)
    high = big_endian(buffer, ">u8", value.topic_id[rows])
    low = big_endian(buffer, ">u8", value.topic_id[rows] + 8)
    has[rows] = (high | low) != 0
    return _optional(pa.binary(), buffer, value.topic_id, np.full(len(there), 16), has)


def _optional(
    kind: pa.DataType, buffer: Bytes, starts: Ints, sizes: Ints, there: Bools
) -> pa.Array:
    """Byte ranges as a column; where there is none, nothing is read."""
    if there.all():
        if not sizes.any():
            return pa.repeat(pa.scalar("", kind), len(sizes))
        return slices(kind, buffer, starts, sizes)
    if not there.any():
        return pa.nulls(len(there), kind)
    return slices(kind, buffer, np.where(there, starts, 0), np.where(there, sizes, 0), there)


def _times(milliseconds: Ints, there: Bools) -> pa.Array:
    none = ~there | (milliseconds < 0)
    if none.all():
        return pa.nulls(len(there), TIME)
    return timestamps(np.where(there, milliseconds, -1) if none.any() else milliseconds)


_ALIKE = 16_384
_COMMIT = pa.repeat(pa.scalar(KINDS[1]), _ALIKE)
_NAMES = pa.array([KINDS[0], KINDS[1], TOMBSTONE])


def _kinds(kind: npt.NDArray[np.int16], there: Bools) -> pa.Array:
    codes = np.where(there, kind, 2).astype(np.int32)
    if len(codes) <= _ALIKE and (codes == 1).all():
        return _COMMIT.slice(0, len(codes))
    return _NAMES.take(column(pa.int32(), codes))


def _is_text(columns: dict[str, Any]) -> bool:
    try:
        for name in _TEXTS:
            columns[name].validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _is_ascii(items: Ranges) -> Bools:
    """Whether an item has no byte that begins or continues a longer character."""
    stop = int(items.ends.max(initial=0))
    first = int(items.starts.min(initial=stop))
    before = np.zeros(stop - first + 1, np.int32)
    np.cumsum(items.buffer[first:stop] > 127, out=before[1:])
    is_ascii: Bools = before[items.ends - first] == before[items.starts - first]
    return is_ascii
