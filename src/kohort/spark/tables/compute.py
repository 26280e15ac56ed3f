# SPDX-License-Identifier: Apache-2.0
"""Computing gold into new files: by what the histories and the progress of groups go on from, and
other tables for the log partitions with new rows.

A group lives in one partition of the log, so where nothing was added nothing can change, unless a
measure depends on the moment. Those are marked `whole`.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession

from kohort.pipeline.format.code import code
from kohort.pipeline.format.manifest import Gold, HistoriesState, Manifest, ProgressState
from kohort.pipeline.format.refresh_plan import MISSING
from kohort.pipeline.format.writer import Writer
from kohort.pipeline.schemas import END_OFFSETS, LAG_HISTORY, Table
from kohort.pipeline.schemas.server_log import SERVER_LOG
from kohort.pipeline.stores.layout import GOLD
from kohort.pipeline.stores.places import Folder
from kohort.spark.gold import MEASURES, Context, Measure
from kohort.spark.gold.completeness import COMPLETENESS, as_frame
from kohort.spark.gold.history_replay import TABLES, ReplayContext
from kohort.spark.gold.lag import lag_of
from kohort.spark.gold.lazy_tables import LazyTables
from kohort.spark.tables import progress, spark_reader, topic_names
from kohort.spark.tables.histories import refresh
from kohort.spark.tables.log_progress import log_progress
from kohort.spark.tables.observed_history import HistoryUpdate, LagAt, Observation
from kohort.spark.tables.observed_history import refresh as refresh_observed_history
from kohort.spark.tables.parts import columns_of, is_whole, without, write_part
from kohort.spark.tables.progress_run import TABLES as PROGRESS_TABLES
from kohort.spark.tables.progress_run import Run
from kohort.spark.tables.silver import views_of


class GoldResult(NamedTuple):
    """All of gold, and what the next run goes on from."""

    gold: dict[str, Gold]
    histories: HistoriesState | None
    progress: ProgressState | None
    observed_history: HistoryUpdate
    recomputed: dict[str, str]
    """Tables that were recomputed from the first record -> why."""


def compute(
    spark: SparkSession,
    writer: Writer,
    manifest: Manifest,
    touched: Iterable[int],
    context: Context,
    doing: Callable[[str], None],
    *,
    clocked: bool = False,
) -> GoldResult:
    """Every table of gold over the rows of `manifest`, and the observed history with what this run
    adds. The rows of the log partitions `touched` differ from those that gold was last computed
    from. The files are new; the old ones stay. `clocked` says that nobody chose the moment.
    """
    changed = tuple(sorted(touched))
    frames = _inputs(spark, writer.directory, manifest)
    goes_on = _has_all(PROGRESS_TABLES)
    there = goes_on and progress.are_whole(writer.directory, manifest)
    found = log_progress(writer, manifest if there else manifest.with_(progress=None), frames)
    frames |= LazyTables({COMPLETENESS: partial(as_frame, spark, found.completeness_watermarks)})
    recomputed: dict[str, str] = {}
    if found.before is None and manifest.progress is not None and manifest.code == code():
        recomputed["commits, offsets and lag"] = MISSING
    doing("histories of groups")
    pairs: topic_names.Pairs = frozenset()
    done: dict[str, Gold] = {}
    histories = None
    if goes_on or _has_all(TABLES.values()):
        pairs = topic_names.read_topic_names(writer, manifest, frames, found)
        marks = found.completeness_watermarks
        complete = {index: mark.complete_offset for index, mark in marks.items()}
        timeout_ms = context.session_timeout_ms
        replay_context = ReplayContext(topic_names.named(pairs), complete, timeout_ms)
        if _has_all(TABLES.values()):
            result = refresh(spark, writer, manifest, frames, replay_context, marks)
            done, histories = result.gold, result.histories
            if result.recomputed:
                recomputed["histories of groups"] = result.recomputed
    frames |= _read(spark, writer, done)
    known = None
    lag_at: LagAt | None = None
    if goes_on:
        names = topic_names.keep(writer, pairs)
        run = Run(spark, writer, manifest, frames, context, found, names)
        refreshed = progress.refresh(run, doing)
        done |= refreshed.gold
        known, lag_at = refreshed.progress, refreshed.lag_at
    for measure in MEASURES:
        table = measure.table
        if table.name not in done:
            doing(table.name)
            before = _reusable(measure, manifest, writer.directory)
            done[table.name] = _one(writer, frames, measure, before, changed, context)
        frames |= _read(spark, writer, {table.name: done[table.name]})
    ordered = {measure.table.name: done[measure.table.name] for measure in MEASURES}
    doing(LAG_HISTORY.name)
    observation = Observation(ordered, context.as_of, lag_at or partial(lag_of, frames), clocked)
    update = refresh_observed_history(writer, manifest, observation)
    return GoldResult(ordered, histories, known, update, recomputed)


def _inputs(spark: SparkSession, directory: Folder, manifest: Manifest) -> LazyTables:
    """Everything that gold is computed from."""
    frames = views_of(partial(spark_reader.rows, spark, directory, manifest))
    ends = partial(spark_reader.end_offsets, spark, directory, manifest)
    frames |= LazyTables({END_OFFSETS.name: ends})
    if manifest.server_log:
        lines = spark_reader.parts(spark, directory, SERVER_LOG, manifest.server_log)
        frames |= {SERVER_LOG.name: lines}
    return frames


def _read(spark: SparkSession, writer: Writer, gold: Mapping[str, Gold]) -> LazyTables:
    """Tables of gold that are there already."""
    tables = {measure.table.name: measure.table for measure in MEASURES}
    return LazyTables(
        {
            name: partial(spark_reader.parts, spark, writer.directory, tables[name], computed.parts)
            for name, computed in gold.items()
        }
    )


def _has_all(tables: Iterable[Table]) -> bool:
    return {measure.table.name for measure in MEASURES} >= {table.name for table in tables}


def _reusable(measure: Measure, manifest: Manifest, directory: Folder) -> Gold | None:
    """What was computed earlier and may still be right in part: by the same code, into files that
    exist. If there is none, the table is recomputed (see `format.refresh_plan`).
    """
    table = measure.table
    before = manifest.gold.get(table.name)
    if before is None or measure.whole or "partition" not in table.names:
        return None
    same = before.columns == columns_of(table) and manifest.code == code()
    return before if same and all(is_whole(directory, part) for part in before.parts) else None


def _one(
    writer: Writer,
    frames: Mapping[str, DataFrame],
    measure: Measure,
    before: Gold | None,
    changed: tuple[int, ...],
    context: Context,
) -> Gold:
    if before is not None and not changed:
        return before
    table = measure.table
    inputs = frames if before is None else spark_reader.in_partitions(frames, changed)
    computed = measure.compute(inputs, context)
    new = write_part(writer, computed, f"{GOLD}/{table.name}")
    kept = () if before is None else without(writer, table, before.parts, changed)
    return Gold(columns=columns_of(table), parts=(*kept, new))
