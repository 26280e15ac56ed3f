# SPDX-License-Identifier: Apache-2.0
"""What a run adds to the observed history: the statuses, and lag at moments that are new.

The history cannot be computed again: tomorrow's log does not tell what was known today, and
compaction removes the records that told how things were. So it is an input, as the rows are. A run
adds to it and never recomputes it, whatever becomes of gold. It counts with the same flip as gold.
"""

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from kohort.pipeline.columns.times import micros
from kohort.pipeline.format.manifest import Gold, Manifest, ObservedHistory, Part
from kohort.pipeline.format.writer import Writer
from kohort.pipeline.rollup import lag_history
from kohort.pipeline.rollup.batch_fold import folded
from kohort.pipeline.rollup.episodes import Worst
from kohort.pipeline.rollup.lag_downsampling import of_moments
from kohort.pipeline.rollup.lag_history import Origin
from kohort.pipeline.rollup.status_history import Moments, updated_status_history
from kohort.pipeline.schemas import END_OFFSETS, LAG_HISTORY
from kohort.pipeline.schemas.progress import LAG, STATUS
from kohort.pipeline.sources.log_position import Note
from kohort.pipeline.stores import parquet
from kohort.pipeline.stores.layout import OBSERVED_HISTORY
from kohort.pipeline.stores.places import Folder
from kohort.spark.gold.lag import MOMENTS, Times, sampled_times
from kohort.spark.tables.parts import is_whole, write_part

ROWS = 5_000_000
"""About how many rows a run adds at most. With many partitions of groups it looks at fewer samples,
down to `FEWEST`.
"""
FEWEST = 10

LagAt = Callable[[Sequence[int]], DataFrame]
"""The rows of `lag` at some moments, in microseconds."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NOBODY = -1
_SEEN = f"{OBSERVED_HISTORY}/seen"
"""Rows on their way into the observed history: no manifest names them."""


class Observation(NamedTuple):
    """What a run has computed."""

    gold: dict[str, Gold]
    as_of: datetime
    lag_at: LagAt
    clocked: bool
    """Whether the clock gave the moment, and nobody chose it."""


class HistoryUpdate(NamedTuple):
    """The observed history with what was added, and notes about it."""

    history: ObservedHistory
    notes: tuple[Note, ...]


def refresh(writer: Writer, manifest: Manifest, observation: Observation) -> HistoryUpdate:
    """Add what a run has seen. The files are new; the old ones stay.

    A moment that is there already is left as it is. A moment before that of an earlier run adds its
    lag, but no status, unless the clock gave it: then the clock was set back.
    """
    before, notes = _without_lost(writer.directory, manifest.past)
    now = micros(observation.as_of)
    if now == before.as_of_us or not {LAG.name, STATUS.name} <= observation.gold.keys():
        return HistoryUpdate(before, notes)
    samples = _sample_times(writer.directory, manifest, now)
    lag = Origin(_files(writer.directory, observation.gold[LAG.name].parts), LAG.arrow)
    wanted = _moments(before, samples, now, _keys(lag, now))
    fresh = sorted(set(wanted) - lag_history.recorded_moments(writer.directory, before.lag, wanted))
    origins = _origins(writer, lag, fresh, observation.lag_at)
    chunks = lag_history.with_new_rows(writer, before.lag, origins)
    # What one clock says is believed when the next run says so too: what is downsampled stays so.
    old = now if before.as_of_us is None else min(now, before.as_of_us)
    chunks = lag_history.roll_up(writer, chunks, old)
    since = now if before.as_of_us is None else before.as_of_us
    between = _worst(origins, [moment for moment in fresh if since < moment < now])
    writer.discard(_SEEN)
    after = msgspec.structs.replace(before, lag=chunks)
    if before.as_of_us is not None and now < before.as_of_us and not observation.clocked:
        return HistoryUpdate(after, notes)
    last = None if before.as_of_us is None else _moment(before.as_of_us)
    moments = Moments(observation.as_of, last)
    statuses = _statuses(writer.directory, observation.gold[STATUS.name].parts)
    status = updated_status_history(writer, before.status, statuses, moments, between)
    newest = int(samples.max()) if len(samples) else before.samples_us
    return HistoryUpdate(
        ObservedHistory(lag=chunks, status=status, as_of_us=now, samples_us=newest), notes
    )


def _without_lost(
    directory: Folder, history: ObservedHistory
) -> tuple[ObservedHistory, tuple[Note, ...]]:
    """The observed history without files that are gone or damaged, and notes about what was in
    them. Nobody can bring it back.
    """
    lost = [chunk for chunk in history.lag if not is_whole(directory, chunk.part)]
    gone = [part for part in history.status if not is_whole(directory, part)]
    if not lost and not gone:
        return history, ()
    texts = [
        f"the past of lag from {_moment(chunk.first_us)} to {_moment(chunk.last_us)} is lost: "
        f"{directory / chunk.part.path} is gone or damaged"
        for chunk in lost
    ]
    texts += [
        f"some of the past of statuses is lost: {directory / part.path} is gone or damaged"
        for part in gone
    ]
    left = msgspec.structs.replace(
        history,
        lag=tuple(chunk for chunk in history.lag if chunk not in lost),
        status=tuple(part for part in history.status if part not in gone),
    )
    return left, tuple(Note(_NOBODY, _NOBODY, text) for text in texts)


def _sample_times(directory: Folder, manifest: Manifest, until_us: int) -> Times:
    """All times of samples up to a moment, each once."""
    parts = _files(directory, manifest.end_offsets)
    if not parts:
        return np.array([], np.int64)
    samples = parquet.dataset(parts, END_OFFSETS.arrow).to_batches(columns=["sampled_at"])
    schema = pa.schema([END_OFFSETS.arrow.field("sampled_at")])
    times = folded(samples, schema, lambda rows: rows.group_by("sampled_at").aggregate([]))
    found = np.sort(times["sampled_at"].cast(pa.int64()).to_numpy())
    return found[found <= until_us]


def _keys(lag: Origin, now: int) -> int:
    """How many partitions of groups `lag` has at the moment of the run."""
    where = (pc.field("level") == "partition") & _is_at([now])
    return int(lag.read(["partition"], where).num_rows)


def _moments(before: ObservedHistory, samples: Times, now: int, keys: int) -> list[int]:
    """The moment of the run, and times of samples since the previous run. Of a copy of a log, those
    since the last sample that the previous copy had.
    """
    if before.as_of_us is not None:
        since = before.as_of_us
        if before.samples_us is not None:
            since = min(since, before.samples_us)
        samples = samples[samples > since]
    most = max(FEWEST, min(MOMENTS, ROWS // max(keys, 1)))
    return sorted({*sampled_times(samples, now, most), now})


def _origins(writer: Writer, lag: Origin, fresh: Sequence[int], lag_at: LagAt) -> list[Origin]:
    """Where the rows of these moments are: most of them in `lag`."""
    if not fresh:
        return []
    groups = lag.read(["at"], (pc.field("level") == "group") & _is_at(fresh))
    recorded_moments = set(groups["at"].cast(pa.int64()).unique().to_pylist())
    found = [lag._replace(where=_is_at(fresh), shape=of_moments)]
    others = [moment for moment in fresh if moment not in recorded_moments]
    if others:
        part = write_part(writer, lag_at(others), _SEEN)
        files = _files(writer.directory, [part])
        found.append(Origin(files, LAG.arrow, shape=of_moments))
    return found


def _worst(origins: Iterable[Origin], moments: Sequence[int]) -> Worst:
    """The largest lag that a group had at some moments."""
    if not moments:
        return {}
    names = ["partition", "group_id", "lag_records", "lag_seconds"]
    where = (pc.field("level") == "group") & _is_at(moments)
    rows = pa.concat_tables([origin.read(names, where) for origin in origins])
    most = rows.group_by(names[:2]).aggregate([(name, "max") for name in names[2:]])
    return {
        (row["partition"], row["group_id"]): (row["lag_records_max"], row["lag_seconds_max"])
        for row in most.to_pylist()
    }


def _statuses(directory: Folder, parts: Iterable[Part]) -> pa.Table:
    """How groups are judged now."""
    names = ["partition", "group_id", "rules", "status", "rule", "lag_records", "lag_seconds"]
    now = Origin(_files(directory, parts), STATUS.arrow)
    return now.read(names, pc.field("level") == "group")


def _files(directory: Folder, parts: Iterable[Part]) -> list[str]:
    """The files of parts of any table."""
    return [str(file) for part in parts for file in parquet.files_of(directory / part.path)]


def _is_at(moments: Sequence[int]) -> Any:
    return pc.field("at").isin(pa.array(moments, LAG_HISTORY.arrow.field("at").type))


def _moment(microseconds: int) -> datetime:
    return _EPOCH + timedelta(microseconds=microseconds)
