# SPDX-License-Identifier: Apache-2.0
"""Commits, offsets, rates, lag, status, states of groups: brings these up to date, as parts of
tables.

Rows that nothing can change any more are appended. The tables about the present are computed from
the newest record of each key (see `gold.newest`), which is kept from run to run. So the cost of a
run depends on what is new, plus a row for each partition that a group has committed for. Where that
could be wrong (see `log_progress.log_progress`), the rows of a partition of the log are recomputed
from all of its records.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial, reduce
from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from kohort.pipeline.format.code import code
from kohort.pipeline.format.footers import has_transactions, largest
from kohort.pipeline.format.manifest import Gold, Manifest, Part, ProgressState
from kohort.pipeline.format.refresh_plan import next_offsets
from kohort.pipeline.schemas import DECODED, Table
from kohort.pipeline.schemas.membership import GROUP_STATE
from kohort.pipeline.schemas.progress import (
    COMMIT_RATES,
    COMMITS,
    DELETABLE_GROUPS,
    LAG,
    OFFSETS,
    PENDING,
    STATUS,
)
from kohort.pipeline.stores import parquet
from kohort.pipeline.stores.places import Folder
from kohort.spark.engine.frames import conform
from kohort.spark.gold.commits import (
    offsets,
    offsets_of_newest,
    resolved_commits,
)
from kohort.spark.gold.completeness import mark
from kohort.spark.gold.group_state import group_state
from kohort.spark.gold.measure import checkpoint
from kohort.spark.gold.newest import NEWEST, RECORDS, newest, records
from kohort.spark.tables import spark_reader
from kohort.spark.tables.current_tables import (
    deletable,
    lag,
    lag_at,
    moments_at,
    moments_or_none,
    status_now,
)
from kohort.spark.tables.group_liveness import are_groups_alive, has_only_commits
from kohort.spark.tables.log_progress import new_increments
from kohort.spark.tables.parts import columns_of, is_whole, partitions_of
from kohort.spark.tables.progress_run import TABLES, NewCommits, Parts, Run
from kohort.spark.tables.rates import RatesState, rates
from kohort.spark.tables.sample_delta import find_sample_delta
from kohort.spark.tables.silver import views


class ProgressResult(NamedTuple):
    """The tables, and what the next run goes on from."""

    gold: dict[str, Gold]
    progress: ProgressState
    lag_at: Callable[[Sequence[int]], DataFrame]
    """The rows that `lag` would have at other moments, in microseconds."""


def are_whole(directory: Folder, manifest: Manifest) -> bool:
    """Whether all the tables are there, with the columns that they have today. If not, they are
    recomputed (see `format.refresh_plan`).
    """
    for table in TABLES:
        gold = manifest.gold.get(table.name)
        if gold is None or gold.columns != columns_of(table):
            return False
        if not all(is_whole(directory, part) for part in gold.parts):
            return False
    return True


def refresh(run: Run, doing: Callable[[str], None]) -> ProgressResult:
    """The tables over the rows of a manifest. The files are new; the old ones stay."""
    gold: dict[str, Parts] = {}
    with run.background_worker() as background_worker:
        doing(f"{COMMITS.name} and {GROUP_STATE.name}")
        grouping = background_worker.submit(partial(_group_state, run, gold))
        fresh = _commits(run, gold)
        keeping = background_worker.submit(partial(_newest, run, fresh))
        samples = find_sample_delta(run.directory, run.manifest, run.log_progress.before)
        moments = moments_or_none(run, fresh, samples.times)
        if moments is None:
            moments = moments_at(run, keeping.result(), samples.times)
        doing(f"{LAG.name}, {STATUS.name} and {COMMIT_RATES.name}")
        gold[LAG.name] = lag(run, fresh, gold, samples, moments)
        newest_records, last = grouping.result(), keeping.result()
        rating = background_worker.submit(partial(_rates, run, fresh, gold))
        background_worker.submit(
            partial(_offsets_and_deletable_groups, run, fresh, last, newest_records, gold)
        )
        exact_us, newest_us = (
            largest(run.directory, last, column) for column in ("exact_us", "newest_us")
        )
        gold[STATUS.name] = status_now(run, last, gold, exact_us)
    rated = rating.result()
    progress = ProgressState(
        code=code() or "",
        fed=next_offsets(run.manifest.increments),
        extents={
            index: (*watermark,)
            for index, watermark in run.log_progress.completeness_watermarks.items()
        },
        held_back=rated.held_back,
        rated=rated.newest,
        open_from=fresh.open_from,
        newest=last,
        records=newest_records,
        names=run.names,
        exact_us=exact_us,
        newest_us=newest_us,
        moments=tuple(moments),
        samples=tuple(part.path for part in run.manifest.end_offsets),
    )
    tables = {
        table.name: Gold(columns=columns_of(table), parts=gold[table.name]) for table in TABLES
    }
    return ProgressResult(tables, progress, partial(lag_at, run, fresh, gold))


def _rates(run: Run, fresh: NewCommits, gold: dict[str, Parts]) -> RatesState:
    gold[COMMIT_RATES.name], rated = rates(run, fresh, gold[COMMITS.name])
    return rated


def _offsets_and_deletable_groups(
    run: Run, fresh: NewCommits, last: Parts, newest_records: Parts, gold: dict[str, Parts]
) -> None:
    """Where consumers stand, and which of their groups are not needed any more."""
    gold[OFFSETS.name] = _offsets(run, fresh, last)
    gold[DELETABLE_GROUPS.name] = deletable(run, newest_records, gold)


def _decoded(run: Run) -> DataFrame:
    """The rows to look at: the new ones, and all rows of the partitions to recompute."""
    every = run.frames[DECODED.name]
    if run.log_progress.recompute is None:
        return every
    fresh = new_increments(run.writer, run.manifest)
    rows = spark_reader.rows(run.spark, run.directory, run.manifest, fresh)
    chosen = run.here(rows, run.incremental_partitions)
    return chosen.unionByName(run.here(every, run.recompute())) if run.recompute() else chosen


def _commits(run: Run, gold: dict[str, Parts]) -> NewCommits:
    """Rows that are over are added to those before. Rows of open transactions are replaced."""
    before = run.log_progress.before
    if before is not None and run.is_same:
        gold[COMMITS.name] = run.before(COMMITS)
        return NewCommits((), (), before.open_from)
    open_from = {} if before is None else before.open_from
    decoded = _decoded(run)
    tail = {index: at for index, at in open_from.items() if index in run.incremental_partitions}
    if tail:  # a commit of an open transaction is looked at again, with all that came after it
        decoded = decoded.unionByName(_behind(run, tail))
    looked_at = (
        run.manifest.increments if run.recompute() else new_increments(run.writer, run.manifest)
    )
    transactions = bool(tail) or has_transactions(run.directory, looked_at)
    rows = resolved_commits(views(decoded), transactions=transactions)
    marked = mark(rows, run.frames)
    touched = run.log_progress.touched
    old = run.before(COMMITS)
    over = run.without(COMMITS, tuple(part for part in old if not part.is_open), run.recompute())
    left = run.without(COMMITS, tuple(part for part in old if part.is_open), touched)
    if not transactions:
        new = run.write(conform(COMMITS, marked), COMMITS)
        still: Parts = ()
    else:
        known = (
            {}
            if before is None
            else {index: before.fed.get(index, 0) for index in run.incremental_partitions}
        )
        marked = checkpoint(marked.where(_is_new(known)))
        final = F.col("settled_at").isNotNull()
        new = run.write(conform(COMMITS, marked.where(final)), COMMITS)
        opened = conform(COMMITS, marked.where(~final))
        still = run.write(opened, COMMITS, is_open=True)
    gold[COMMITS.name] = (*run.merged(COMMITS, (*over, *new)), *left, *still)
    opened_from = {index: at for index, at in open_from.items() if index not in touched}
    return NewCommits(new, still, opened_from | _first_offsets(run, still))


def _behind(run: Run, tail: dict[int, int]) -> DataFrame:
    """Known rows, from these offsets on."""
    old = {increment.name for increment in run.writer.manifest.increments}
    chosen = [increment for increment in run.manifest.increments if increment.name in old]
    rows = spark_reader.rows(run.spark, run.directory, run.manifest, chosen)
    beyond = [(F.col("partition") == index) & (F.col("offset") >= at) for index, at in tail.items()]
    return rows.where(reduce(Column.__or__, beyond))


def _is_new(known: dict[int, int]) -> Column:
    """Whether the outcome of a commit was not known before: it is open, or was."""
    if not known:
        return F.lit(True)
    pairs = F.create_map(*(F.lit(item) for pair in known.items() for item in pair))
    reached = F.coalesce(F.try_element_at(pairs, F.col("partition")), F.lit(0))
    return F.col("settled_at").isNull() | (F.col("settled_at") >= reached)


def _first_offsets(run: Run, parts: Iterable[Part]) -> dict[int, int]:
    """Partition of the log -> the first offset in these parts."""
    found: dict[int, int] = {}
    for part in parts:
        rows = parquet.folder_dataset(run.directory / part.path).to_table(
            columns=["partition", "offset"]
        )
        for row in rows.group_by("partition").aggregate([("offset", "min")]).to_pylist():
            found[row["partition"]] = row["offset_min"]
    return found


def _newest(run: Run, fresh: NewCommits) -> Parts:
    before, rows = run.log_progress.before, run.parts(COMMITS, fresh.over)
    if before is None:
        return run.write(newest(rows), NEWEST)
    if run.is_same:
        return before.newest
    found = newest(rows, run.known(NEWEST, before.newest))
    return run.rewritten(found, NEWEST, before.newest)


def _records(run: Run) -> Parts:
    before, rows = run.log_progress.before, _decoded(run)
    if before is None:
        return run.write(records(rows), RECORDS)
    then = run.known(RECORDS, before.records)
    found = records(then, rows) if has_only_commits(run) else records(then.unionByName(rows))
    return run.rewritten(found, RECORDS, before.records)


def _offsets(run: Run, fresh: NewCommits, newest_commits: Parts) -> Parts:
    if run.is_same:
        return run.before(OFFSETS)
    touched = run.log_progress.touched
    last = run.here(run.parts(NEWEST, newest_commits), touched)
    if fresh.still_open:
        pending = run.here(run.parts(COMMITS, fresh.still_open), touched)
        pending = pending.where(F.col("state") == PENDING)
        both = last.unionByName(pending, allowMissingColumns=True)
        rows = offsets({COMMITS.name: both}, run.context)
    else:
        rows = offsets_of_newest(last.withColumn("pending", F.lit(False)))
    return _replaced(run, rows, OFFSETS)


def _replaced(run: Run, rows: DataFrame, table: Table) -> Parts:
    """A table whose rows of the partitions with news are these."""
    if run.log_progress.before is None:
        return run.write(rows, table)
    touched, before = run.log_progress.touched, run.before(table)
    if run.are_few():
        left = [part for part in before if partitions_of(run.directory, part) - touched]
        others = run.parts(table, left).where(~F.col("partition").isin(sorted(touched)))
        return run.write(rows.unionByName(others) if left else rows, table)
    return (*run.without(table, before, touched), *run.write(rows, table))


def _group_state(run: Run, gold: dict[str, Parts]) -> Parts:
    """What groups are by the newest records of each key, which are returned."""
    before, touched = run.log_progress.before, run.log_progress.touched
    if before is not None and run.is_same:
        gold[GROUP_STATE.name] = run.before(GROUP_STATE)
        return before.records
    newest_records = _records(run)
    if has_only_commits(run) and run.are_few() and are_groups_alive(run):
        gold[GROUP_STATE.name] = run.before(GROUP_STATE)
        return newest_records
    rows = run.here(run.parts(RECORDS, newest_records), touched)
    found = group_state(run.frames | views(rows), run.context)
    gold[GROUP_STATE.name] = _replaced(run, found, GROUP_STATE)
    return newest_records
