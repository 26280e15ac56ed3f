# SPDX-License-Identifier: Apache-2.0
"""The jobs: what `kohort pipeline` does, for notebooks, `spark-submit` and schedulers.

Each that writes tables holds the lock of their directory as long as it runs; readers never wait.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import NamedTuple

import pyarrow as pa
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from kohort.errors import KohortError
from kohort.pipeline.format import cluster as clusters
from kohort.pipeline.format import up_to_date
from kohort.pipeline.format.arrow_reader import Tables
from kohort.pipeline.format.code import code
from kohort.pipeline.format.log_end import log_end
from kohort.pipeline.format.manifest import TablesError, load
from kohort.pipeline.format.rebuild import (
    RebuildResult,
    as_of_of,
    check_rows,
    partitions_of,
    rebuild_result,
    without_derived_state,
)
from kohort.pipeline.format.server_logs import ServerLogResult
from kohort.pipeline.format.server_logs import keep as store_server_logs
from kohort.pipeline.format.summary import Summary
from kohort.pipeline.format.writer import Writer, claim
from kohort.pipeline.sources.log_position import WHOLE_LOG, Plan, Position, Settings
from kohort.pipeline.sources.sampler import snapshot
from kohort.pipeline.stores.places import Folder, place_of
from kohort.security.settings import NO_SECURITY, Security
from kohort.spark.engine import class_archive, shipping, small_runs
from kohort.spark.engine.disk_full import disk_full_or_none
from kohort.spark.engine.interrupts import asked_to_end, is_interrupt
from kohort.spark.engine.job_progress import ProgressCallback, ProgressEvent, report_progress
from kohort.spark.engine.session import (
    INTERPRETED,
    ONE_TASK,
    WIDE_ROWS,
    SessionError,
    begin_end,
    is_local,
    is_running,
    sentence,
    session,
    settings,
    what_ended_jvm,
)
from kohort.spark.gold import Context
from kohort.spark.sources.registry import source as source_of
from kohort.spark.sources.source import Source
from kohort.spark.streaming import MicroBatch, follow
from kohort.spark.tables import older_copy
from kohort.spark.tables.ingest import Batch, Options, add, ends_now, flip, merge_and_expire
from kohort.spark.tables.late_rows import late_rows
from kohort.spark.tables.verification import (
    Recomputation,
    VerificationResult,
    can_be_recomputed,
    file_findings,
    why_not,
)


def run(
    source: str | Source,
    out: str | Folder,
    *,
    master: str | None = None,
    spark: SparkSession | None = None,
    from_time: datetime | None = None,
    to_time: datetime | None = None,
    conf: Mapping[str, str] | None = None,
    as_of: datetime | None = None,
    retention_ms: int | None = None,
    session_timeout_ms: int | None = None,
    keep_days: float | None = None,
    cluster: str | None = None,
    security: Security = NO_SECURITY,
    server_logs: Sequence[str | Path] = (),
    progress: ProgressCallback | None = None,
    alone: bool = False,
    spark_only: bool = False,
) -> Summary:
    """Read what is new in a group log, and bring the tables in `out` up to date.

    Where nothing can have changed since the last run, Spark is not started (see
    `up_to_date.summary_or_none`).
    Gold is computed for the moment `as_of`, by default `to_time` or the moment at which reading was
    planned. `keep_days` drops older history, but not what tells the state of groups. `server_logs`
    are log files of brokers, or patterns: what they say of members that are gone decides why.
    `retention_ms` and `session_timeout_ms` are the cluster's, where the source cannot ask,
    `cluster` is its name, `security` how to ask it. `alone`: the JVM ends too. `spark_only`: the
    driver takes no rows. Raises KohortError: the source or tables cannot be read or written.
    """
    began = time.monotonic()
    arguments = up_to_date.asked(
        source,
        from_time=from_time,
        to_time=to_time,
        as_of=as_of,
        retention_ms=retention_ms,
        session_timeout_ms=session_timeout_ms,
        keep_days=keep_days,
        cluster=cluster,
    )
    if not server_logs and (same := up_to_date.summary_or_none(out, arguments)) is not None:
        return same
    with _opened(source, out, cluster, spark_only, security) as (log, writer):
        seen = up_to_date.seen(arguments)
        logged = store_server_logs(writer, server_logs)
        plan = log.plan(writer.manifest.positions, from_time=from_time, to_time=to_time)
        ends = ends_now(writer, log)
        spark_config = SparkConfig(spark, master, conf, alone=alone)
        options = Options(as_of or to_time, Settings(retention_ms, session_timeout_ms), keep_days)
        few = _reading(log, plan)
        with _session(spark_config, writer, progress, _size_at_most(writer, plan)) as active:
            plan = _without_older_copies(active, writer, log, plan, to_time)
            batch = _batch(active, writer, log, plan, from_time, few)
            batch = batch._replace(ends=ends, server_log=logged.parts)
            added = _added(active, writer, log, batch, options, progress)
        if all(note.partition == WHOLE_LOG for note in added.notes):  # no cut, which is read again
            up_to_date.remember(writer, arguments, seen)
        return _ended(added, writer, logged, began)


def _ended(added: Summary, writer: Writer, logged: ServerLogResult, began: float) -> Summary:
    """What a run has to tell that began at that moment of the monotonic clock."""
    return added._replace(
        gold=writer.manifest.gold_rows(),
        seconds=time.monotonic() - began,
        log_end=log_end(Tables(writer.directory)),
        server_logs=logged.files,
    )


def rebuild(
    out: str | Folder,
    *,
    master: str | None = None,
    spark: SparkSession | None = None,
    conf: Mapping[str, str] | None = None,
    progress: ProgressCallback | None = None,
    alone: bool = False,
) -> RebuildResult:
    """Recompute all tables of gold from the rows that the tables keep, for the moment and with
    the settings that they were computed with. Until then readers have the old ones.

    Raises KohortError: there are no tables, rows of theirs are missing or damaged, somebody else is
    writing them.
    """
    began = time.monotonic()
    load(place_of(out))
    with Writer(out) as writer:
        before = writer.manifest
        check_rows(writer.directory, before)
        with _session(SparkConfig(spark, master, conf, alone=alone), writer, progress) as active:
            context = Context(as_of_of(before), *before.settings)
            flip(
                active,
                writer,
                without_derived_state(before),
                partitions_of(before),
                context,
                progress,
            )
        return rebuild_result(before, writer, time.monotonic() - began)


def verify(
    out: str | Folder,
    *,
    every: bool = False,
    master: str | None = None,
    spark: SparkSession | None = None,
    conf: Mapping[str, str] | None = None,
    progress: ProgressCallback | None = None,
    alone: bool = False,
) -> VerificationResult:
    """Hold the files of tables against their manifest, and gold against one that is recomputed
    elsewhere: of some partitions of the log, or of `every` one. Changes nothing.

    Raises KohortError: there are no tables, or their manifest is not one.
    """
    tables = Tables(out)
    found = [*file_findings(tables)]
    if found or not can_be_recomputed(tables):
        return VerificationResult(tables.directory, tuple(found), None, why_not(tables, found))
    spark_config = SparkConfig(spark, master, conf, alone=alone)
    with (
        TemporaryDirectory(prefix="kohort-verify-") as scratch,
        Writer(Path(scratch)) as writer,
        _session(spark_config, writer, progress) as active,
        report_progress(active, progress, "computing") as doing,
    ):
        recomputation = Recomputation(active, writer, tables, doing)
        chosen, differences = recomputation.of_all() if every else recomputation.of_some()
    return VerificationResult(tables.directory, tuple(differences), chosen, None)


def stream(
    source: str | Source,
    out: str | Folder,
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
    keep_days: float | None = None,
    cluster: str | None = None,
    security: Security = NO_SECURITY,
    server_logs: Sequence[str | Path] = (),
    progress: ProgressCallback | None = None,
    after_each: Callable[[Summary], None] | None = None,
    spark_only: bool = False,
) -> Summary:
    """The same in micro-batches of `max_records`, each of which brings all tables up to date.

    With `every_s` it goes on until it is interrupted, and begins a micro-batch that often; without,
    it ends when it has read what is there now. Where to go on the manifest says, so a micro-batch
    that comes again adds nothing; Spark's checkpoint is for one stream only. `after_each`
    hears what each micro-batch has added, in the thread that has done so; not on Spark Connect.
    """
    began = time.monotonic()
    options = Options(as_of, Settings(retention_ms, session_timeout_ms), keep_days)
    with _opened(source, out, cluster, spark_only, security) as (log, writer):
        before = writer.manifest
        plan = log.plan(before.positions, from_time=from_time)
        with _session(SparkConfig(spark, master, conf), writer, progress) as active:
            for partition, end in older_copy.older_copies(active, writer, log, plan).items():
                note = older_copy.note(partition, end, before.positions[partition].next)
                raise TablesError(f"{note.text}, but not as a stream: run it without --stream")
            plan, missed = _with_late(active, writer, log, plan)
            _begin(writer, plan, from_time)
            logged = store_server_logs(writer, server_logs)
            # The stream's own process sees only the published manifest.
            writer.publish(writer.manifest)
            if plan.cut or plan.notes or logged.parts or not plan.ranges:
                first = Batch(None, _without_rows(plan), late_rows=missed, server_log=logged.parts)
                _added(active, writer, log, first, options, progress)
            rows = log.stream(active, plan, max_records=max_records)
            follow(rows, MicroBatch(writer, log, options, progress, after_each), writer, every_s)
        after = load(writer.directory)
    added = {kind: rows - before.added.get(kind, 0) for kind, rows in after.added.items()}
    return Summary(
        writer.directory,
        {kind: rows for kind, rows in added.items() if rows},
        after.gold_rows(),
        after.notes[max(len(after.notes) - (after.noted - before.noted), 0) :],
        datetime.fromtimestamp((after.as_of_ms or 0) / 1000, UTC),
        time.monotonic() - began,
        log_end(Tables(writer.directory)),
        logged.files,
    )


class Size(NamedTuple):
    """How many rows a run looks at."""

    read: int
    kept: int = 0
    """What earlier runs have kept for those that go on: a row or a few of each key."""

    @property
    def rows(self) -> int:
        return self.read + self.kept

    @property
    def is_interpreted(self) -> bool:
        """Whether that is cheaper than to compile."""
        weight = small_runs.KEPT_WEIGHT
        return self.read + weight * self.kept <= small_runs.INTERPRETED_ROWS


def _size_at_most(writer: Writer, plan: Plan) -> Size:
    """The rows that are new, and where the tables cannot go on from what earlier runs have kept,
    all others.
    """
    planned = sum(end - start for start, end in plan.ranges.values())
    before = writer.manifest.progress
    goes_on = before is not None and before.code == code() and not plan.cut
    if goes_on and before is not None:
        return Size(planned, sum(part.rows for part in (*before.newest, *before.records)))
    return Size(planned + sum(increment.rows for increment in writer.manifest.increments))


Few = Callable[[Plan], pa.Table | None]
"""The rows of a plan, where they are few."""


def _reading(log: Source, plan: Plan) -> Few:
    """Read the rows of a plan, if they are few, in a thread of its own while a JVM starts. Those of
    another plan are read when they are asked for.
    """
    found: Future[pa.Table | None] = Future()

    def read() -> None:
        try:
            found.set_result(few_of(plan) if plan.ranges else None)
        except BaseException as error:  # noqa: BLE001  (it is raised where the rows are wanted)
            found.set_exception(error)

    def few_of(wanted: Plan) -> pa.Table | None:
        return log.few_or_none(wanted) if small_runs.are_open() else None

    def few_or_none(wanted: Plan) -> pa.Table | None:
        few = found.result()
        return few if wanted.ranges == plan.ranges else few_of(wanted)

    # Whoever fails, or is interrupted, need not wait for a cluster that does not answer.
    Thread(target=read, daemon=True).start()
    return few_or_none


def _batch(
    spark: SparkSession,
    writer: Writer,
    log: Source,
    plan: Plan,
    from_time: datetime | None,
    few_or_none: Few,
) -> Batch:
    """The rows of a plan, and those that came late."""
    plan, missed = _with_late(spark, writer, log, plan)
    writer.manifest = writer.manifest.with_(source_files=log.files())
    _begin(writer, plan, from_time)
    rows: DataFrame | pa.Table | None = None
    if plan.ranges:
        few = few_or_none(plan)
        rows = log.frame(spark, plan) if few is None else few
    return Batch(rows, plan, late_rows=missed)


def _added(
    spark: SparkSession,
    writer: Writer,
    log: Source,
    batch: Batch,
    options: Options,
    progress: ProgressCallback | None,
) -> Summary:
    """Add rows, merge small files, and drop what is too old."""
    added = add(spark, writer, log, batch, options, progress)
    context = Context(added.as_of, *writer.manifest.settings)
    merge_and_expire(spark, writer, context, options.keep_days, progress)
    return added


def report(out: str | Folder, groups: Sequence[str] | None = None) -> Folder:
    """Write `report.html` into the directory of tables: `kohort.pipeline.report.write_into`."""
    from kohort.pipeline.report import write_into  # noqa: PLC0415  (it takes longest to import)

    return write_into(out, groups)


class SparkConfig(NamedTuple):
    """What the caller says of Spark."""

    spark: SparkSession | None
    master: str | None
    conf: Mapping[str, str] | None
    alone: bool = False


@contextmanager
def _session(
    spark_config: SparkConfig,
    writer: Writer,
    progress: ProgressCallback | None,
    size: Size | None = None,
) -> Iterator[SparkSession]:
    """The session, with our package on its executors and the settings that we need.

    `size` is what there is at most. A session of our own outlives the run, so what only few
    want is set back, and in the JVM itself it is set only when nothing comes after.
    """
    quick = size is not None and size.rows <= small_runs.QUICK_JVM_ROWS
    if spark_config.spark is None and progress is not None:
        progress(ProgressEvent("starting Spark"))
    chosen = dict(spark_config.conf or {})
    is_new = spark_config.spark is None and not is_running()
    with asked_to_end() as asked:  # a JVM that nobody has heard of yet would outlive its starter
        active = spark_config.spark or session(
            spark_config.master,
            chosen,
            quick=quick and spark_config.alone,
            alone=spark_config.alone,
        )
    if asked.is_set():
        raise KeyboardInterrupt
    shipping.ship(active)
    ours = spark_config.spark is None and is_local(active.conf.get("spark.master", "") or "")
    wanted = dict(WIDE_ROWS)
    if quick and ours and size is not None:
        wanted |= INTERPRETED if size.is_interpreted else {}
        wanted |= ONE_TASK if size.rows <= small_runs.DRIVER_TABLE_ROWS else {}
    try:
        with settings(
            active, {name: value for name, value in wanted.items() if name not in chosen}
        ):
            yield active
            if spark_config.alone and spark_config.spark is None:
                class_archive.make_later(active)
        if spark_config.alone and is_new:
            begin_end()
    except Exception as error:
        if is_interrupt(error):
            raise KeyboardInterrupt from error
        if isinstance(error, KohortError):  # whoever raised it knows what has become of the tables
            raise
        full = disk_full_or_none(error, active, writer.directory, is_changed=writer.is_changed)
        if full is not None:
            raise TablesError(full) from error
        is_of_spark = isinstance(error, PySparkException | Py4JJavaError)
        ended = None if is_of_spark or spark_config.spark is not None else what_ended_jvm()
        if ended is not None:
            raise SessionError(f"Spark failed: {ended}") from error
        if is_of_spark or isinstance(error, Py4JError):
            raise SessionError(f"Spark failed: {sentence(error)}") from error
        raise


@contextmanager
def _opened(
    source: str | Source,
    out: str | Folder,
    cluster: str | None,
    spark_only: bool,  # noqa: FBT001  (named by its callers)
    security: Security,
) -> Iterator[tuple[Source, Writer]]:
    """A log and the writer of its tables, if they are of this log."""
    log = source_of(source, security) if isinstance(source, str) else source
    identity = log.identity()
    with small_runs.spark_only(spark_only), Writer(out) as writer:
        claim(writer, out, identity)
        clusters.name(writer, out, cluster)
        name = source if isinstance(source, str) else type(source).__name__
        writer.manifest = writer.manifest.with_(source=name)
        try:
            yield log, writer
        except KohortError:
            raise
        except (OSError, pa.ArrowException) as error:
            what = f"{out} cannot be brought up to date"
            full = disk_full_or_none(error, None, out, is_changed=writer.is_changed)
            if full is not None:
                raise TablesError(f"{what}: {full}") from error
            # What a run reads of its own tables may be damaged, one file among thousands.
            raise TablesError(
                f"{what}: {str(error).splitlines()[0]}; `kohort pipeline verify` says what is "
                "damaged"
            ) from error


def _with_late(
    spark: SparkSession, writer: Writer, log: Source, plan: Plan
) -> tuple[Plan, DataFrame | None]:
    """The plan with what is to be said of rows that came late, and those rows."""
    rows, notes = late_rows(spark, writer, log)
    return plan._replace(notes=(*plan.notes, *notes)), rows


def _begin(writer: Writer, plan: Plan, from_time: datetime | None) -> None:
    """Remember what was left out because reading was told when to begin."""
    if from_time is not None:
        known = writer.manifest.positions
        fresh = {
            partition: plan.ranges[partition][0] if partition in plan.ranges else position.next
            for partition, position in plan.positions.items()
            if partition not in known
        }
        writer.manifest = writer.manifest.with_(begins=writer.manifest.begins | fresh)


def _without_older_copies(
    spark: SparkSession, writer: Writer, log: Source, plan: Plan, to_time: datetime | None
) -> Plan:
    """The plan without cuts where the log merely ends earlier than it was read to. A plan that was
    told where to end does not say where the log does.
    """
    whole = log.plan(writer.manifest.positions) if to_time and plan.cut else plan
    older = older_copy.older_copies(spark, writer, log, whole)
    return older_copy.without_older_copies(
        plan, writer, {index: end for index, end in older.items() if index in plan.cut}
    )


def _without_rows(plan: Plan) -> Plan:
    """Only what a plan says of the past: a stream brings the rows."""
    if not plan.ranges:
        return plan
    begun = {
        partition: Position(plan.ranges[partition][0])
        for partition in plan.cut
        if partition in plan.ranges
    }
    return Plan({}, plan.cut, plan.notes, begun)


__all__ = ["rebuild", "report", "run", "snapshot", "stream", "verify"]
