# SPDX-License-Identifier: Apache-2.0
"""How far the log is known, and which part of it is new, before anything is computed.

The offset from which on a partition of the log is complete (see `gold.completeness`) follows from
all of its records, and is computed once. Records that follow on without a hole do not change it. So
most runs count only the new records.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from kohort.pipeline.format.code import code
from kohort.pipeline.format.manifest import HistoriesState, Increment, Manifest, ProgressState
from kohort.pipeline.format.refresh_plan import next_offsets, refresh_plan
from kohort.pipeline.format.writer import Writer
from kohort.pipeline.schemas import RECORDS_TABLE
from kohort.pipeline.stores import parquet
from kohort.pipeline.stores.layout import ROWS
from kohort.pipeline.stores.places import Folder
from kohort.spark.engine import small_runs
from kohort.spark.gold.completeness import CompletenessWatermark, completeness_watermarks
from kohort.spark.gold.measure import Frames
from kohort.spark.tables.parts import is_whole

_BEGIN = CompletenessWatermark(end=0, rows=0, complete_offset=0, complete_us=None)


class LogProgress(NamedTuple):
    """What the tables know of the log, and what is new in it. Partitions are those of the log."""

    before: ProgressState | None
    """The state of the previous run; None where none of it may be used."""
    incremental: frozenset[int]
    """Partitions with rows behind those that are known, and with nothing else."""
    truncated: frozenset[int]
    """Partitions whose known rows no longer count, or that have got rows before the known ones."""
    completeness_changed: frozenset[int]
    """Partitions that are now complete from another offset or time on than before."""
    completeness_watermarks: dict[int, CompletenessWatermark]

    @property
    def recompute(self) -> frozenset[int] | None:
        """Partitions whose rows of gold are all recomputed; None for all there are."""
        return None if self.before is None else self.truncated | self.completeness_changed

    @property
    def touched(self) -> frozenset[int]:
        """Partitions whose rows of gold may have changed."""
        return (
            frozenset(self.completeness_watermarks)
            if self.recompute is None
            else self.incremental | self.recompute
        )


def log_progress(writer: Writer, manifest: Manifest, frames: Frames) -> LogProgress:
    """Compares the rows of `manifest` with those of the published one. May run Spark."""
    before = usable_state_or_none(writer.directory, manifest)
    if before is None:
        return _full_recompute(writer.directory, manifest, frames)
    state = HistoriesState(code=before.code, session_timeout_ms=None, fed=before.fed, complete={})
    now = state.with_(code=code() or "", fed=next_offsets(manifest.increments))
    found = refresh_plan(state, now, writer.manifest.increments, manifest.increments)
    if found.recompute is None:
        return _full_recompute(writer.directory, manifest, frames)
    known = {
        index: CompletenessWatermark(*extent)
        for index, extent in before.extents.items()
        if index not in found.recompute
    }
    added = _row_ranges(writer.directory, new_increments(writer, manifest))
    reached = {index: mark for index, mark in known.items() if index not in found.incremental}
    reached |= {
        index: _extend(known[index], added[index])
        for index in found.incremental & known.keys() & added.keys()
        if _is_contiguous(known[index], added[index])
    }
    reached |= {index: known[index] for index in (found.incremental & known.keys()) - added.keys()}
    others = (found.recompute | found.incremental) - reached.keys()
    reached |= _of_spark(frames, others)
    completeness_changed = {
        index for index, mark in known.items() if reached.get(index, mark)[2:] != mark[2:]
    }
    return LogProgress(
        before, found.incremental, found.recompute, frozenset(completeness_changed), reached
    )


def _full_recompute(directory: Folder, manifest: Manifest, frames: Frames) -> LogProgress:
    """The log progress when nothing is known. If there are few rows, Spark looks only at partitions
    with holes.
    """
    nothing: frozenset[int] = frozenset()
    if not are_few(manifest):
        return LogProgress(None, nothing, nothing, nothing, completeness_watermarks(frames))
    counted = _row_ranges(directory, manifest.increments)
    whole = {
        index: CompletenessWatermark(rows.last + 1, rows.rows, 0, rows.begin_us)
        for index, rows in counted.items()
        if _is_contiguous(_BEGIN, rows)
    }
    rest = _of_spark(frames, counted.keys() - whole.keys())
    return LogProgress(None, nothing, nothing, nothing, whole | rest)


def _of_spark(frames: Frames, partitions: Collection[int]) -> dict[int, CompletenessWatermark]:
    if not partitions:
        return {}
    records = frames[RECORDS_TABLE.name]
    of_partitions = records.where(records["partition"].isin(sorted(partitions)))
    return completeness_watermarks({RECORDS_TABLE.name: of_partitions})


def are_few(manifest: Manifest) -> bool:
    """Whether there are few rows, and all rows in the files count: then the driver may read some of
    their columns by itself.
    """
    if any(increment.cuts for increment in manifest.increments):
        return False
    rows = sum(increment.rows for increment in manifest.increments)
    return small_runs.is_few(rows, small_runs.DRIVER_SCAN_ROWS)


def usable_state_or_none(directory: Folder, manifest: Manifest) -> ProgressState | None:
    """What earlier runs have left, if its files are there. If not, the tables of commits and lag
    are recomputed (see `format.refresh_plan`).
    """
    before = manifest.progress
    if before is None or not before.code:
        return None
    return before if all(is_whole(directory, part) for part in before.parts) else None


def new_increments(writer: Writer, manifest: Manifest) -> list[Increment]:
    """Those that were added since the published manifest."""
    old = {increment.name for increment in writer.manifest.increments}
    return [increment for increment in manifest.increments if increment.name not in old]


class _RowRange(NamedTuple):
    """Rows of a partition of the log in some files."""

    first: int
    last: int
    rows: int
    damaged: bool
    timed: int | None
    """Offset of the first row that has a time."""
    begin_us: int | None
    """Its time."""

    def plus(self, other: "_RowRange") -> "_RowRange":
        """Both together."""
        begins = [(one.timed, one.begin_us) for one in (self, other) if one.timed is not None]
        return _RowRange(
            min(self.first, other.first),
            max(self.last, other.last),
            self.rows + other.rows,
            self.damaged or other.damaged,
            *min(begins, default=(None, None)),
        )


def _row_ranges(directory: Folder, increments: Iterable[Increment]) -> Mapping[int, _RowRange]:
    """Partition of the log -> the rows that some increments have of it. Needs no Spark."""
    files = [
        file
        for increment in increments
        for file in (directory / ROWS / increment.name).rglob("*.parquet")
    ]
    if not files:
        return {}
    rows = parquet.dataset(sorted(map(str, files)), RECORDS_TABLE.arrow)
    at, offset = ds.field("timestamp").cast(pa.int64()), ds.field("offset")
    columns = {
        "partition": ds.field("partition"),
        "offset": offset,
        "at": at,
        "timed": pc.if_else(at.is_valid(), offset, pa.scalar(None, pa.int64())),
        "damage": ~ds.field("error").is_null() & ds.field("key").is_null(),
    }
    aggregates = [("offset", function) for function in ("min", "max", "count")]
    aggregates += [("damage", "max"), ("timed", "first"), ("at", "first")]  # of those with a time
    names = ("offset_min", "offset_max", "offset_count", "damage_max", "timed_first", "at_first")
    found: dict[int, _RowRange] = {}
    for batch in rows.to_batches(columns=columns):
        in_order = pa.Table.from_batches([batch]).sort_by("offset")
        groups = in_order.group_by("partition", use_threads=False).aggregate(aggregates)
        for row in groups.to_pylist():
            counted = _RowRange(*(row[name] for name in names))
            known = found.get(row["partition"])
            found[row["partition"]] = counted if known is None else known.plus(counted)
    return found


def _is_contiguous(known: CompletenessWatermark, added: _RowRange) -> bool:
    """Whether nothing is missing between and within them: then the new rows reveal nothing that was
    hidden before. In a partition that is complete from nowhere on, or from a record without a time,
    any record may reveal something.
    """
    return (
        known.complete_offset is not None
        and (known is _BEGIN or known.complete_us is not None)
        and added.first == known.end
        and added.last - added.first + 1 == added.rows
        and not added.damaged
    )


def _extend(known: CompletenessWatermark, added: _RowRange) -> CompletenessWatermark:
    return known._replace(end=added.last + 1, rows=known.rows + added.rows)
