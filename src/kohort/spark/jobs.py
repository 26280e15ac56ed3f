"""The jobs: what `kohort pipeline` does, for notebooks, `spark-submit` and schedulers.

Each holds the lock of its directory of tables as long as it runs; readers never wait.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from kohort.spark.engine import class_archive, shipping
from kohort.spark.engine.progress import Doing, Progress
from kohort.spark.engine.session import (
    INTERPRETED,
    ONE_TASK,
    SessionError,
    is_local,
    sentence,
    session,
    settings,
)
from kohort.spark.gold import Context
from kohort.spark.report import write_into as report
from kohort.spark.snapshots import snapshot
from kohort.spark.sources.named import source as source_of
from kohort.spark.sources.source import Source
from kohort.spark.sources.standing import Plan, Position, Settings
from kohort.spark.streaming import MicroBatch, follow
from kohort.spark.tables import delta, delta_files, older_copy, unchanged
from kohort.spark.tables.adding import Batch, Options, add, ends_now, tidy
from kohort.spark.tables.arrow_reader import Tables
from kohort.spark.tables.code import code
from kohort.spark.tables.late import late
from kohort.spark.tables.log_end import log_end
from kohort.spark.tables.manifest import TablesError, Writer, claim, load
from kohort.spark.tables.progress_run import FEW_HERE
from kohort.spark.tables.summary import Summary

FORMATS = ("parquet", "delta")
FEW_ROWS = 300_000
"""For so many rows plans are interpreted; see also `FEW_HERE`."""


def run(
    source: str | Source,
    out: str | Path,
    *,
    master: str | None = None,
    spark: SparkSession | None = None,
    from_time: datetime | None = None,
    to_time: datetime | None = None,
    conf: Mapping[str, str] | None = None,
    as_of: datetime | None = None,
    retention_ms: int | None = None,
    session_timeout_ms: int | None = None,
    format: str = "parquet",  # noqa: A002  (what Spark calls it)
    keep_days: float | None = None,
    progress: Progress | None = None,
    alone: bool = False,
) -> Summary:
    """Read what is new in a group log, and bring the tables in `out` up to date.

    Where nothing can have changed since the last run, Spark is not started: the summary says
    `unchanged`, and `as_of` is that of the tables (see `tables.unchanged`).

    Gold is computed for the moment `as_of`, by default `to_time` or the moment at which reading was
    planned: what the log says later is read by the next run. `keep_days` drops history
    that is older, but not what tells the state of groups. `retention_ms` and `session_timeout_ms`
    are the cluster's (see `Settings`), where the source cannot ask. `alone` says that the process
    ends with this run: a JVM that is started for few rows is made for few rows. Raises KohortError:
    the source cannot be read, the tables are those of another log, somebody else is writing them.
    """
    began = time.monotonic()
    told = unchanged.asked(
        source,
        format=format,
        from_time=from_time,
        to_time=to_time,
        as_of=as_of,
        retention_ms=retention_ms,
        session_timeout_ms=session_timeout_ms,
        keep_days=keep_days,
    )
    same = unchanged.summary_or_none(out, told)
    if same is not None:
        return same
    with _opened(source, out, format) as (log, writer):
        seen = unchanged.seen(told)
        plan = log.plan(writer.manifest.positions, from_time=from_time, to_time=to_time)
        ends = ends_now(writer, log)
        given = Given(spark, master, conf, alone=alone)
        with _session(given, writer, progress, _rows_at_most(writer, plan)) as active:
            if to_time is None:  # with `to_time`, a plan ends before the log does
                older = older_copy.older_copies(active, writer, log, plan)
                plan = older_copy.spared(plan, writer, older)
            batch = _batch(active, writer, log, plan, from_time)._replace(ends=ends)
            settings_told = Settings(retention_ms, session_timeout_ms)
            options = Options(as_of or to_time, settings_told, keep_days)
            added = _added(active, writer, log, batch, options, progress)
        if not added.notes:  # what happened to the log is looked at again
            unchanged.remember(writer, told, seen)
        gold, ended = writer.manifest.gold_rows(), log_end(Tables(writer.directory))
    return added._replace(gold=gold, seconds=time.monotonic() - began, log_end=ended)


def stream(
    source: str | Source,
    out: str | Path,
    *,
    every_s: float | None = None,
    max_records: int | None = None,
    master: str | None = None,
    spark: SparkSession | None = None,
    from_time: datetime | None = None,
    conf: Mapping[str, str] | None = None,
    as_of: datetime | None = None,
    retention_ms: int | None = None,
    session_timeout_ms: int | None = None,
    format: str = "parquet",  # noqa: A002  (what Spark calls it)
    keep_days: float | None = None,
    progress: Progress | None = None,
) -> Summary:
    """The same in micro-batches of `max_records`, each of which brings all tables up to date.

    With `every_s` it goes on until it is interrupted, and begins a micro-batch that often; without,
    it ends when it has read what is there now. Where to go on the manifest says, so a micro-batch
    that comes again adds nothing; Spark's checkpoint is for one stream only.
    """
    began = time.monotonic()
    options = Options(as_of, Settings(retention_ms, session_timeout_ms), keep_days)
    with _opened(source, out, format) as (log, writer):
        before = writer.manifest
        plan = log.plan(before.positions, from_time=from_time)
        with _session(Given(spark, master, conf), writer, progress) as active:
            for one, end in older_copy.older_copies(active, writer, log, plan).items():
                note = older_copy.note(one, end, before.positions[one].next)
                raise TablesError(f"{note.text}, but not as a stream: run it without --stream")
            plan, missed = _with_late(active, writer, log, plan)
            _begin(writer, plan, from_time)
            # The stream's own process sees only the published manifest.
            writer.publish(writer.manifest)
            if plan.cut or plan.notes or not plan.ranges:
                first = Batch(None, _without_rows(plan), late=missed)
                add(active, writer, log, first, options, progress)
            rows = log.stream(active, plan, max_records=max_records)
            follow(rows, MicroBatch(writer, log, options, progress), writer, every_s)
        after = load(writer.directory)
    added = {kind: rows - before.added.get(kind, 0) for kind, rows in after.added.items()}
    return Summary(
        writer.directory,
        {kind: rows for kind, rows in added.items() if rows},
        after.gold_rows(),
        after.notes[len(before.notes) :],
        datetime.fromtimestamp((after.as_of_ms or 0) / 1000, UTC),
        time.monotonic() - began,
        log_end(Tables(writer.directory)),
    )


def _rows_at_most(writer: Writer, plan: Plan) -> int:
    """How many rows there will be: those that are new, and where the tables cannot go on from what
    earlier runs have kept, all others. Of that a few rows of each key are left.
    """
    planned = sum(end - start for start, end in plan.ranges.values())
    before = writer.manifest.progress
    goes_on = before is not None and before.code == code() and not plan.cut
    known = before.newest if goes_on and before is not None else writer.manifest.increments
    return planned + sum(one.rows for one in known)


def _batch(
    spark: SparkSession, writer: Writer, log: Source, plan: Plan, from_time: datetime | None
) -> Batch:
    """The rows of a plan, and those that came late."""
    plan, missed = _with_late(spark, writer, log, plan)
    _begin(writer, plan, from_time)
    rows: DataFrame | pa.Table | None = None
    if plan.ranges:
        few = log.few_or_none(plan)
        rows = log.frame(spark, plan) if few is None else few
    return Batch(rows, plan, late=missed)


def _added(
    spark: SparkSession,
    writer: Writer,
    log: Source,
    batch: Batch,
    options: Options,
    progress: Progress | None,
) -> Summary:
    """Add rows, and tidy up."""
    added = add(spark, writer, log, batch, options, progress)
    context = Context(added.as_of, *writer.manifest.settings)
    tidy(spark, writer, context, options.keep_days, progress)
    return added


class Given(NamedTuple):
    """What the caller says of Spark."""

    spark: SparkSession | None
    master: str | None
    conf: Mapping[str, str] | None
    alone: bool = False


@contextmanager
def _session(
    given: Given, writer: Writer, progress: Progress | None, rows: int | None = None
) -> Iterator[SparkSession]:
    """The session, with our package on its executors and the settings that we need.

    `rows` is how many there are at most. A session of our own outlives the run, so what only few
    want is set back, and in the JVM itself it is set only when nothing comes after.
    """
    quick = rows is not None and rows <= FEW_ROWS
    as_delta = writer.manifest.format == "delta"
    if given.spark is None and progress is not None:
        progress(Doing("starting Spark"))
    chosen = {**(delta.SETTINGS if as_delta else {}), **(given.conf or {})}
    active = given.spark or session(
        given.master, chosen, quick=quick and given.alone, alone=given.alone
    )
    shipping.ship(active)
    ours = given.spark is None and is_local(active.conf.get("spark.master", "") or "")
    wanted = INTERPRETED if quick and ours else {}
    if quick and ours and rows is not None and rows <= FEW_HERE:
        wanted = wanted | ONE_TASK
    try:
        with settings(active, {name: one for name, one in wanted.items() if name not in chosen}):
            if as_delta:
                delta.check(active, writer.directory)
            yield active
            if given.alone and given.spark is None:
                class_archive.make_later(active)
    except (PySparkException, Py4JError) as error:
        raise SessionError(f"Spark failed: {sentence(error)}") from error


@contextmanager
def _opened(source: str | Source, out: str | Path, form: str) -> Iterator[tuple[Source, Writer]]:
    """A log and the writer of its tables, if they are of this log and in this format."""
    if form not in FORMATS:
        raise TablesError(f"{form!r} is no format of tables, expected one of {', '.join(FORMATS)}")
    if form == "delta":
        delta_files.require()
    log = source_of(source) if isinstance(source, str) else source
    identity = log.identity()
    with Writer(Path(out)) as writer:
        before = writer.manifest
        if before.source and before.format != form:
            raise TablesError(f"{out} has tables in the format {before.format}, not {form}")
        claim(writer, out, identity)
        name = source if isinstance(source, str) else type(source).__name__
        writer.manifest = writer.manifest.with_(format=form, source=name)
        yield log, writer


def _with_late(
    spark: SparkSession, writer: Writer, log: Source, plan: Plan
) -> tuple[Plan, DataFrame | None]:
    """The plan with what is to be said of rows that came late, and those rows."""
    rows, notes = late(spark, writer, log)
    return plan._replace(notes=(*plan.notes, *notes)), rows


def _begin(writer: Writer, plan: Plan, from_time: datetime | None) -> None:
    """Remember what was left out because reading was told when to begin."""
    if from_time is not None:
        known = writer.manifest.positions
        fresh = {
            one: plan.ranges[one][0] if one in plan.ranges else position.next
            for one, position in plan.positions.items()
            if one not in known
        }
        writer.manifest = writer.manifest.with_(begins=writer.manifest.begins | fresh)


def _without_rows(plan: Plan) -> Plan:
    """Only what a plan says of the past: a stream brings the rows."""
    if not plan.ranges:
        return plan
    begun = {one: Position(plan.ranges[one][0]) for one in plan.cut if one in plan.ranges}
    return Plan({}, plan.cut, plan.notes, begun)


__all__ = ["report", "run", "snapshot", "stream"]
