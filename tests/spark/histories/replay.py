# SPDX-License-Identifier: Apache-2.0
"""Recorded histories as rows: all of them side by side in one log, so that Spark runs once.

Each gets partitions of its own, and its time is moved so that all of them end at `AS_OF`: what is
stale or lags then does not depend on when it was recorded. Names of groups and topics differ
anyhow.
"""

import json
import os
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, cached_property
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from tests.archives import unpack_into
from tests.spark.histories.truth import Truth

from kohort.pipeline.columns.decode import decode
from kohort.pipeline.columns.segments import parse
from kohort.pipeline.schemas import DECODED, END_OFFSETS
from kohort.pipeline.sources.sampling import sample_folders

DATA = Path(__file__).parents[2] / "data" / "histories"
AS_OF = datetime(2026, 12, 1, 12, tzinfo=UTC)
SPREAD = 10  # partitions of the merged log for one history
FILES = {path.name.removesuffix(".tar.xz"): path for path in sorted(DATA.glob("*.tar.xz"))}


@dataclass(frozen=True)
class History:
    """One recorded history, its time moved."""

    name: str
    truth: Truth
    rows: pa.Table  # decoded
    end_offsets: pa.Table

    @cached_property
    def groups(self) -> list[str]:
        return sorted(self.truth.groups)


@cache
def histories() -> dict[str, History]:
    """All recorded ones, by name."""
    return {name: load(path, number) for number, (name, path) in enumerate(FILES.items())}


def load(archive: Path, number: int = 0) -> History:
    with tempfile.TemporaryDirectory() as directory:
        unpack_into(directory, archive)
        return read(Path(directory), number)


def read(directory: Path, number: int = 0) -> History:
    """What `record` has packed, unpacked."""
    told = json.loads((directory / "truth.json").read_text())
    for path in directory.rglob("*.log"):  # where a topic is empty, its files tell since when
        os.utime(path, ns=(told["end"]["before"] * 1_000_000,) * 2)
    parsed = [
        parse(path.read_bytes(), SPREAD * number + int(path.parent.name.rpartition("-")[2])).pieces
        for path in sorted(directory.glob("__consumer_offsets-*/*.log"))
    ]
    rows = pa.Table.from_batches(
        [decode(one) for pieces in parsed for one in pieces], DECODED.arrow
    )
    ends = sample_folders(str(directory))
    shift_ms = int(AS_OF.timestamp() * 1000) - told["end"]["before"]
    assert rows.num_rows > 0, f"{directory} has no records"
    name = f"{told['name']}.{told['on']}"
    end_offsets = moved(ends, shift_ms) if ends is not None else END_OFFSETS.arrow.empty_table()
    return History(name, Truth(told, shift_ms), moved(rows, shift_ms), end_offsets)


def moved(table: pa.Table, by_ms: int) -> pa.Table:
    """The table with every time in it, at any depth, moved."""
    columns = [_moved(column.combine_chunks(), by_ms) for column in table.columns]
    return pa.Table.from_arrays(columns, schema=table.schema)


def _moved(array: pa.Array, by_ms: int) -> pa.Array:
    kind = array.type
    if pa.types.is_timestamp(kind):
        by = pa.scalar(by_ms * 1000, pa.duration("us"))
        return pc.add(array, by)
    if pa.types.is_struct(kind):
        fields = [_moved(array.field(index), by_ms) for index in range(kind.num_fields)]
        return pa.StructArray.from_arrays(fields, fields=list(kind), mask=pc.is_null(array))
    if pa.types.is_list(kind) and any(pa.types.is_timestamp(one) for one in _leaves(kind)):
        raise NotImplementedError(f"a time inside a list: {kind}")
    return array


def _leaves(kind: pa.DataType) -> list[pa.DataType]:
    if pa.types.is_list(kind):
        return _leaves(kind.value_type)
    if pa.types.is_struct(kind):
        return [leaf for field in kind for leaf in _leaves(field.type)]
    return [kind]


def merged(parts: list[pa.Table]) -> pa.Table:
    return pa.concat_tables(parts).combine_chunks()


def renamed(rows: pa.Table, suffix: str, shift: int) -> pa.Table:
    """The same rows of other groups, in other partitions of the log."""
    group_ids = pc.binary_join_element_wise(rows["group_id"], pa.scalar(suffix), "")
    partitions = pc.add(rows["partition"], pa.scalar(shift, pa.int32()))
    rows = rows.set_column(rows.schema.get_field_index("group_id"), "group_id", group_ids)
    rows = rows.set_column(rows.schema.get_field_index("partition"), "partition", partitions)
    return rows.cast(DECODED.arrow)
