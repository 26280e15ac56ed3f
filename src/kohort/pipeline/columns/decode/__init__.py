# SPDX-License-Identifier: Apache-2.0
"""From raw rows to typed ones: what the records of the group log say.

Plain committed offsets are read many at once (`commits`), everything else one by one (`records`);
here the two are put together again, row for row.
"""

from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from kohort.pipeline.columns.buffers import Ints, column
from kohort.pipeline.columns.decode.commits import plain_columns, types
from kohort.pipeline.columns.decode.records import decode_row
from kohort.pipeline.columns.record_positions import Rows
from kohort.pipeline.schemas import DECODED, QUARANTINE, RAW
from kohort.pipeline.schemas.rows import COMMIT_COLUMNS, KEY_COLUMNS

_COMMIT_NAMES = [
    *("partition", "offset", "timestamp", "producer_id", "producer_epoch", "transactional"),
    *(known.name for known in KEY_COLUMNS[:3]),
    *("type", "value_version"),
    *(known.name for known in COMMIT_COLUMNS),
]
OFFSET_COMMITS = pa.schema([DECODED.arrow.field(name) for name in _COMMIT_NAMES])
"""What `offset_commits` gives."""

_ADDED = [field for field in DECODED.arrow if field.name not in RAW.names]


def decode(rows: Rows, names: Sequence[str] = DECODED.names) -> pa.RecordBatch:
    """Raw rows as decoded rows, one for one: these columns of DECODED.

    Whatever cannot be read is of kind quarantine.
    """
    return _decoded(rows, pa.schema([DECODED.arrow.field(name) for name in names]))


def offset_commits(rows: Rows, names: Sequence[str] = OFFSET_COMMITS.names) -> pa.RecordBatch:
    """The committed offsets among raw rows, and nothing else: these columns of OFFSET_COMMITS."""
    kinds = types(rows.key())
    wanted = (kinds >= 0) & (kinds <= 1) & rows.value().there & ~rows.control() & ~rows.broken()
    if not wanted.all():
        rows = rows.where(wanted)
    schema = pa.schema([OFFSET_COMMITS.field(name) for name in names])
    found = _decoded(rows, schema.append(RAW.arrow.field("error")))
    errors = found.column("error")
    if errors.null_count < len(errors):
        found = found.filter(errors.is_null())
    return found.select(names)


def _decoded(rows: Rows, schema: pa.Schema) -> pa.RecordBatch:
    """The rows with these columns of decoded rows."""
    added = _added(rows, set(schema.names))
    arrays = [added[name] if name in added else rows.column(name) for name in schema.names]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _added(rows: Rows, names: Collection[str]) -> dict[str, pa.Array]:
    """Every column of these that raw rows lack, and `error` where it is another."""
    control, broken = rows.control(), rows.broken()
    plain, columns = plain_columns(
        rows.key(), rows.value(), np.flatnonzero(~(control | broken)), names
    )
    count = len(rows)
    fields = [field for field in _ADDED if field.name in names]
    if len(plain) == count:
        return {
            field.name: columns[field.name] if field.name in columns else _nulls(field, count)
            for field in fields
        }
    is_other = np.ones(count, np.bool_)
    is_other[plain] = False
    others = np.flatnonzero(is_other)
    decoded = _one_by_one(rows.where(is_other))
    added = {field.name: _merged(field, columns, plain, decoded, others) for field in fields}
    if any("error" in row for row in decoded):
        added["error"] = _merged(DECODED.arrow.field("error"), {}, plain, decoded, others)
    return added


def _one_by_one(rows: Rows) -> list[dict[str, Any]]:
    keys, values, errors = (rows.column(name).to_pylist() for name in ("key", "value", "error"))
    return [
        {"kind": QUARANTINE, "error": error}
        if is_broken
        else decode_row(key, value, control=is_control)
        for key, value, error, is_control, is_broken in zip(
            keys, values, errors, rows.control().tolist(), rows.broken().tolist(), strict=True
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
