# SPDX-License-Identifier: Apache-2.0
"""Adding rows to the tables: one increment, the samples of end offsets, gold, and then one flip.

Whatever happens before the flip, the tables are as they were, and the next attempt reads the same
rows again. Batch and stream add with the same function.
"""

import time
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from kohort.pipeline.columns.times import micros
from kohort.pipeline.format.code import code
from kohort.pipeline.format.manifest import DAY_MS, Manifest, Part
from kohort.pipeline.format.summary import Summary
from kohort.pipeline.format.writer import Writer
from kohort.pipeline.rollup.end_samples import SAMPLE, merge_samples, new_samples, walk_positions
from kohort.pipeline.rollup.sample_rollup import roll_up, without_known_samples
from kohort.pipeline.schemas import ALL_KINDS, END_OFFSETS
from kohort.pipeline.sources.log_position import Note, Plan, Position, Settings
from kohort.pipeline.stores.layout import END
from kohort.spark.engine.frames import conform
from kohort.spark.engine.job_progress import ProgressCallback, report_progress
from kohort.spark.gold import Context
from kohort.spark.sources.source import Ends, Source
from kohort.spark.tables import driver_write, increments, spark_reader
from kohort.spark.tables.compute import compute
from kohort.spark.tables.parts import write_part

_NO_PLACE = -1


class Options(NamedTuple):
    """What a run does besides reading."""

    as_of: datetime | None = None
    settings: Settings = Settings()
    """Where the source does not know them, or better than it does."""
    keep_days: float | None = None


class Batch(NamedTuple):
    """Rows to add, and what was planned of them."""

    rows: DataFrame | pa.Table | None
    plan: Plan
    whole: bool = True
    """All of the plan is in the rows. A micro-batch has some of it."""
    late_rows: DataFrame | None = None
    """Rows that lie before the ones that were planned (see `late_rows.late_rows`)."""
    ends: Ends | None = None
    """The ends when reading was planned; None for a batch that was planned just now."""
    server_log: tuple[Part, ...] = ()
    """The new lines of brokers' log files (see `format.server_logs`)."""


def add(
    spark: SparkSession,
    writer: Writer,
    log: Source,
    batch: Batch,
    options: Options,
    progress: ProgressCallback | None = None,
) -> Summary:
    """Add rows to the tables, compute gold, and flip."""
    began = time.monotonic()
    plan = batch.plan
    ends = batch.ends or ends_now(writer, log)
    exact = batch.whole and batch.late_rows is None
    total = sum(end - start for start, end in plan.ranges.values()) if exact else None
    manifest = writer.manifest
    manifest = manifest.with_(increments=increments.cut(manifest.increments, plan.cut))
    written = None
    rows = _rows(spark, batch)
    if rows is not None:
        with report_progress(spark, progress, "reading", total):
            ranges = plan.ranges if exact else None
            written = increments.write(spark, writer, rows, ranges)
    following = written.following if written is not None else {}
    counts = written.increment.counts if written is not None else {}
    if written is not None:
        manifest = manifest.with_(
            increments=(*manifest.increments, written.increment),
            added={kind: manifest.added.get(kind, 0) + counts.get(kind, 0) for kind in ALL_KINDS},
        )
    positions = plan.positions if batch.whole else _moved(manifest, log, following)
    notes = (*plan.notes, *(log.changes(plan) if batch.whole else ()))
    settings = options.settings.over(log.settings())
    context = Context(in_millis(options.as_of or ends.at), *settings)
    with report_progress(spark, progress, "looking at the ends of topics"):
        sampled = _end_offsets(spark, writer, manifest, ends)
        sampled = without_known_samples(writer, manifest.end_offsets, sampled)
    manifest = manifest.with_(
        positions={**manifest.positions, **positions},
        notes=manifest.notes_with(notes),
        end_offsets=(*manifest.end_offsets, *sampled),
        server_log=(*manifest.server_log, *batch.server_log),
    )
    touched = following.keys() | plan.cut.keys()
    upgraded = _upgrade(writer.manifest)
    clocked = options.as_of is None
    of_gold = flip(spark, writer, manifest, touched, context, progress, clocked=clocked)
    return Summary(
        writer.directory,
        counts,
        writer.manifest.gold_rows(),
        (*notes, *upgraded, *of_gold),
        context.as_of,
        time.monotonic() - began,
    )


def _upgrade(before: Manifest) -> tuple[Note, ...]:
    """What to say where gold cannot be gone on from, whatever is new in the log."""
    if not before.gold or before.code == code():
        return ()
    text = "another Kohort had computed the tables: all of gold was recomputed"
    return (Note(_NO_PLACE, _NO_PLACE, text),)


def in_millis(moment: datetime) -> datetime:
    """The last whole millisecond: the manifest keeps no more, and whoever computes the tables again
    is to do it for the same moment.
    """
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def _rows(spark: SparkSession, batch: Batch) -> DataFrame | pa.Table | None:
    """All rows of a batch."""
    if batch.late_rows is None or batch.rows is None:
        return batch.late_rows if batch.rows is None else batch.rows
    rows = batch.rows
    if isinstance(rows, pa.Table):
        rows = driver_write.frame(spark, rows)
    return rows.unionByName(batch.late_rows)


def ends_now(writer: Writer, log: Source) -> Ends:
    """Where user topics end, asked now. A caller that has made a plan asks at once."""
    return log.ends(walk_positions(writer.directory, writer.manifest))


def _moved(manifest: Manifest, log: Source, following: Mapping[int, int]) -> dict[int, Position]:
    """The offsets that the partitions of a micro-batch have reached."""
    return {
        partition: manifest.positions.get(partition, Position(0)).moved(position)
        for partition, position in log.positions(following).items()
    }


def flip(
    spark: SparkSession,
    writer: Writer,
    manifest: Manifest,
    touched: Iterable[int],
    context: Context,
    progress: ProgressCallback | None = None,
    *,
    clocked: bool = False,
) -> tuple[Note, ...]:
    """Compute gold over the rows of a manifest, and publish both, with the observed
    history. Old samples are downsampled first, so that gold rests on what the next one will find.
    `touched` are the partitions of the log whose rows differ from those of the published manifest;
    `clocked` says that the clock chose the moment. Returns notes about what was recomputed, and
    about the observed history.
    """
    samples = roll_up(writer, manifest.end_offsets, micros(context.as_of))
    manifest = manifest.with_(end_offsets=samples)
    with report_progress(spark, progress, "computing") as doing:
        computed = compute(spark, writer, manifest, touched, context, doing, clocked=clocked)
    history, notes = computed.observed_history
    notes = (
        *(
            Note(_NO_PLACE, _NO_PLACE, f"{what} were recomputed: {why}")
            for what, why in computed.recomputed.items()
        ),
        *notes,
    )
    writer.publish(
        manifest.with_(
            gold=computed.gold,
            histories=computed.histories,
            progress=computed.progress,
            past=history,
            notes=manifest.notes_with(notes),
            code=code(),
            as_of_ms=micros(context.as_of) // 1000,
            settings=Settings(context.retention_ms, context.session_timeout_ms),
        )
    )
    return notes


def merge_and_expire(
    spark: SparkSession,
    writer: Writer,
    context: Context,
    keep_days: float | None = None,
    progress: ProgressCallback | None = None,
) -> None:
    """Rewrite increments that hold rows behind a cut, merge small increments and small files of
    samples, and drop history that is older than `keep_days` before `as_of`.

    A merge changes no row and no table. Dropping history changes gold.
    """
    keep_ms = None if keep_days is None else int(keep_days * DAY_MS)
    _drop_cut_rows(spark, writer, progress)
    manifest = writer.manifest
    merging = increments.to_merge(manifest.increments, keep_ms)
    if merging:
        with report_progress(
            spark, progress, "merging", sum(increment.rows for increment in merging)
        ):
            writer.publish(increments.merge(spark, writer, manifest, merging))
    merge_samples(writer)
    if keep_ms is None:
        return
    manifest = writer.manifest
    before_ms = micros(context.as_of) // 1000 - keep_ms
    old = increments.too_old(manifest, before_ms)
    if old:
        with report_progress(spark, progress, "dropping", sum(increment.rows for increment in old)):
            manifest = increments.compact(spark, writer, manifest, old)
        touched = {partition for increment in old for partition in increment.ranges}
        flip(spark, writer, manifest, touched, context, progress)


def _drop_cut_rows(spark: SparkSession, writer: Writer, progress: ProgressCallback | None) -> None:
    """From here on each file of rows counts as a whole, and in their Delta log as well."""
    manifest = writer.manifest
    cut = [increment for increment in manifest.increments if increment.cuts]
    if not cut:
        return
    with report_progress(spark, progress, "merging", sum(increment.rows for increment in cut)):
        for increment in cut:
            manifest = increments.merge(spark, writer, manifest, [increment])
        writer.publish(manifest)


def _end_offsets(
    spark: SparkSession, writer: Writer, manifest: Manifest, ends: Ends
) -> tuple[Part, ...]:
    """New samples of end offsets as a part; none where nothing new is known."""
    samples = ends.samples(spark)
    if samples is None:
        return ()
    if isinstance(samples, pa.Table):
        return new_samples(writer, manifest, samples)
    there = spark_reader.end_offsets(spark, writer.directory, manifest).select(*SAMPLE)
    fresh = conform(END_OFFSETS, samples).dropDuplicates(SAMPLE)
    if manifest.end_offsets:
        fresh = fresh.join(there, SAMPLE, "left_anti").select(*END_OFFSETS.names)
    part = write_part(writer, fresh.coalesce(1), END)
    return (part,) if part.rows else ()


def beyond(frame: DataFrame, manifest: Manifest) -> DataFrame:
    """The rows that were not added yet: a replayed micro-batch has none."""
    following = {index: position.next for index, position in manifest.positions.items()}
    if not following:
        return frame
    known = F.create_map(*(F.lit(item) for pair in following.items() for item in pair))
    at = F.try_element_at(known, F.col("partition"))
    return frame.where(F.col("offset") >= F.coalesce(at, F.lit(0)))
