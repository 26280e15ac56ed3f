"""From raw rows to typed ones: what the records of the group log say.

Plain committed offsets are read many at once (`commits`), everything else one by one (`records`);
here the two are put together again, row for row.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from kohort.spark.buffers import Bools, Ints, column
from kohort.spark.decode.commits import plain_columns, ranges, types
from kohort.spark.decode.records import decode_row
from kohort.spark.schemas import DECODED, QUARANTINE, RAW
from kohort.spark.schemas.rows import COMMIT_COLUMNS, KEY_COLUMNS

_COMMIT_NAMES = [
    *("partition", "offset", "timestamp", "producer_id", "producer_epoch", "transactional"),
    *(one.name for one in KEY_COLUMNS[:3]),
    *("type", "value_version"),
    *(one.name for one in COMMIT_COLUMNS),
]
OFFSET_COMMITS = pa.schema([DECODED.arrow.field(name) for name in _COMMIT_NAMES])
"""What `offset_commits` gives."""

_ADDED = [field for field in DECODED.arrow if field.name not in RAW.names]


def decode(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Raw rows as decoded rows, one for one. Whatever cannot be read is of kind quarantine."""
    added = _added(rows, _control(rows), _broken(rows))
    arrays = [
        added[name] if name in added else rows.column(RAW.names.index(name))
        for name in DECODED.names
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=DECODED.arrow)


def offset_commits(rows: pa.RecordBatch) -> pa.RecordBatch:
    """The committed offsets among raw rows, and nothing else: see OFFSET_COMMITS."""
    control, broken = _control(rows), _broken(rows)
    kinds = types(ranges(rows.column("key")))
    wanted = (kinds >= 0) & (kinds <= 1) & ~control & ~broken
    values = rows.column("value")
    if values.null_count:
        wanted &= values.is_valid().to_numpy(zero_copy_only=False)
    if not wanted.all():
        rows = rows.filter(pa.array(wanted))
        control, broken = control[wanted], broken[wanted]
    added = _added(rows, control, broken)
    found = pa.RecordBatch.from_arrays(
        [added[name] if name in added else rows.column(name) for name in OFFSET_COMMITS.names],
        schema=OFFSET_COMMITS,
    )
    if "error" not in added:
        return found
    return found.filter(added["error"].is_null())


def decode_frame(raw: DataFrame) -> DataFrame:
    """A frame of raw rows, of whatever source, as decoded rows."""
    return RAW.conform(raw).mapInArrow(_decode_all, DECODED.spark)


def _decode_all(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for rows in batches:
        yield decode(rows.cast(RAW.arrow))


def _control(rows: pa.RecordBatch) -> Bools:
    control: Bools = rows.column("control").to_numpy(zero_copy_only=False)
    return control


def _broken(rows: pa.RecordBatch) -> Bools:
    """Rows that were a batch that cannot be read."""
    errors = rows.column("error")
    if errors.null_count == len(errors):
        return np.zeros(len(errors), np.bool_)
    broken: Bools = errors.is_valid().to_numpy(zero_copy_only=False)
    return broken


def _added(rows: pa.RecordBatch, control: Bools, broken: Bools) -> dict[str, pa.Array]:
    """Every column of decoded rows that raw rows lack, and `error` where it is another."""
    keys, values = ranges(rows.column("key")), ranges(rows.column("value"))
    plain, columns = plain_columns(keys, values, np.flatnonzero(~(control | broken)))
    count = rows.num_rows
    if len(plain) == count:
        return {
            field.name: columns[field.name] if field.name in columns else _nulls(field, count)
            for field in _ADDED
        }
    is_other = np.ones(count, np.bool_)
    is_other[plain] = False
    others = np.flatnonzero(is_other)
    decoded = _one_by_one(rows, others, control, broken)
    added = {field.name: _merged(field, columns, plain, decoded, others) for field in _ADDED}
    if any("error" in row for row in decoded):
        added["error"] = _merged(DECODED.arrow.field("error"), {}, plain, decoded, others)
    return added


def _one_by_one(
    rows: pa.RecordBatch, others: Ints, control: Bools, broken: Bools
) -> list[dict[str, Any]]:
    index = column(pa.int64(), others)
    keys, values, errors = (
        rows.column(name).take(index).to_pylist() for name in ("key", "value", "error")
    )
    return [
        {"kind": QUARANTINE, "error": error}
        if is_broken
        else decode_row(key, value, control=is_control)
        for key, value, error, is_control, is_broken in zip(
            keys, values, errors, control[others].tolist(), broken[others].tolist(), strict=True
        )
    ]


def _merged(
    field: pa.Field,
    columns: dict[str, pa.Array],
    plain: Ints,
    decoded: list[dict[str, Any]],
    others: Ints,
) -> pa.Array:
    """A column out of what plain rows and the others have in it."""
    count = len(plain) + len(others)
    slow = [row.get(field.name) for row in decoded]
    is_slow = any(value is not None for value in slow)
    parts = []
    index = np.zeros(count, np.int64)
    there = np.zeros(count, np.bool_)
    if field.name in columns:
        parts.append(columns[field.name])
        index[plain] = np.arange(len(plain))
        there[plain] = True
    if is_slow:
        index[others] = np.arange(len(others)) + (len(parts[0]) if parts else 0)
        there[others] = True
        parts.append(pa.array(slow, field.type))
    if not parts:
        return _nulls(field, count)
    return pa.concat_arrays(parts).take(column(pa.int64(), index, there))


def _nulls(field: pa.Field, count: int) -> pa.Array:
    return _all_nulls(count)[field.name]


@lru_cache(maxsize=16)
def _all_nulls(count: int) -> dict[str, pa.Array]:
    """A column of nulls for each of ours: most of them are nothing else most of the time."""
    return {field.name: pa.nulls(count, field.type) for field in DECODED.arrow}
