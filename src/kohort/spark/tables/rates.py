# SPDX-License-Identifier: Apache-2.0
"""Brings `commit_rates` up to date: new rows beside old ones, and old ones merged as they age.

Rows that stand for an hour are over, unless a commit comes late that belongs to one of them. They
get files of their own, so that what a run writes again does not grow with the history.

A commit that is later than the moment of a run makes nothing old. A later run, whose moment is
behind it, finds it again by the footers of the files.
"""

from collections.abc import Iterable
from typing import NamedTuple

import pyarrow as pa
import pyarrow.dataset as ds
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from kohort.pipeline.columns.times import micros
from kohort.pipeline.format.footers import largest
from kohort.pipeline.format.manifest import Part
from kohort.pipeline.schemas.progress import COMMIT_RATES, COMMITS, COMMITTED, REMOVED
from kohort.pipeline.schemas.rollup_tiers import ROLLUP_TIERS
from kohort.pipeline.stores import parquet
from kohort.spark.gold import rates as of_commits
from kohort.spark.gold.measure import checkpoint
from kohort.spark.gold.newest import NEWEST
from kohort.spark.gold.rate_rollup import roll_up_rates
from kohort.spark.tables.progress_run import NewCommits, Parts, Run

_FINEST, _COARSEST = ROLLUP_TIERS[0], ROLLUP_TIERS[-1]
"""Rows are due from the finest tier on, and over in the coarsest."""


class RatesState(NamedTuple):
    """What the next run goes on from, by partition of the log, in microseconds."""

    held_back: dict[int, int]
    """From when on commits are known (see `gold.rates.held_back`)."""
    newest: dict[int, int]
    """The newest commit that is not after the moment of the run."""


class _Span(NamedTuple):
    """The times of commits of a partition of the log."""

    first_us: int
    last_us: int

    def plus(self, other: "_Span | None") -> "_Span":
        """Both together."""
        if other is None:
            return self
        return _Span(min(self.first_us, other.first_us), max(self.last_us, other.last_us))


def rates(run: Run, fresh: NewCommits, commits: Parts) -> tuple[Parts, RatesState]:
    """The table, with each new commit beside the one before it. `commits` are all parts of that
    table.
    """
    before = run.log_progress.before
    old, rated = ({}, {}) if before is None else (before.held_back, before.rated)
    now = micros(run.context.as_of)
    passed = _passed(run, now)
    is_later = any(at > now for at in rated.values())
    if before is not None and not (run.log_progress.touched or passed or is_later):
        return run.before(COMMIT_RATES), RatesState(before.held_back, before.rated)
    known = {index: at for index, at in old.items() if index not in run.recompute()}
    found = _held_back(run, fresh.over)
    behind = known | {index: max(at, known.get(index, at)) for index, at in found.items()}
    later = frozenset(one for one, at in rated.items() if at > now)  # merged for a later moment
    again = later - run.recompute()
    again |= frozenset(
        one for one in run.incremental_partitions if behind.get(one) != known.get(one)
    )
    over = [part for part in commits if not part.is_open]
    every = run.parts(COMMITS, fresh.over)
    if again:  # what is known of them begins later now
        every = every.where(~F.col("partition").isin(sorted(again))).unionByName(
            run.here(run.parts(COMMITS, over), again)
        )
    on = run.incremental_partitions - again
    then = None
    if before is not None and on:
        then = run.here(run.parts(NEWEST, before.newest), on)
        groups = F.broadcast(every.select("partition", "group_id").distinct())
        then = then.join(groups, ["partition", "group_id"], "left_semi")
    rows = of_commits.rates(every, _as_behind(run, behind), then)
    spans = _spans(run, fresh.over, now) | _spans(run, over, now, again)
    recompute = run.recompute() | again
    for index, span in passed.items():
        if index not in recompute:
            spans[index] = span.plus(spans.get(index))
    parts = run.without(COMMIT_RATES, run.before(COMMIT_RATES), recompute)
    until = {index: at for index, at in rated.items() if index not in recompute}
    newest = until | {
        index: max(span.last_us, until.get(index, span.last_us)) for index, span in spans.items()
    }
    if due := _due(spans, until, newest):
        parts = _with_old(run, parts, rows, due, newest)
    else:
        parts = (*parts, *run.write(rows, COMMIT_RATES))
    return run.merged(COMMIT_RATES, parts), RatesState(behind, newest)


def _due(spans: dict[int, _Span], until: dict[int, int], newest: dict[int, int]) -> dict[int, int]:
    """The partitions with rows that have become old enough to be merged, and from when on others
    may be merged with them; `until` are the newest commits before, `newest` those of now.
    """
    found = {}
    for index, span in spans.items():
        due_us = _FINEST.due_before(newest[index])
        known = until.get(index)
        if span.first_us < due_us or (known is not None and _FINEST.due_before(known) < due_us):
            step = span.first_us // _COARSEST.step_us * _COARSEST.step_us
            found[index] = step if known is None else min(step, _COARSEST.due_before(known))
    return found


def _with_old(
    run: Run, parts: Parts, rows: DataFrame, due: dict[int, int], newest: dict[int, int]
) -> Parts:
    """The parts with the new rows, and what has become old merged."""
    open_ones = tuple(part for part in parts if _last(run, part) >= min(due.values()))
    known = run.here(run.parts(COMMIT_RATES, open_ones), due)
    merged = checkpoint(roll_up_rates(known.unionByName(rows), _as_newest(run, newest)))
    over_us = min(_COARSEST.due_before(newest[index]) for index in due)
    is_over = F.coalesce(F.unix_micros("effective_at") < over_us, F.lit(False))
    return (
        *(part for part in parts if part not in open_ones),
        *run.without(COMMIT_RATES, open_ones, due),
        *run.write(merged.where(is_over), COMMIT_RATES),
        *run.write(merged.where(~is_over), COMMIT_RATES),
    )


def _last(run: Run, part: Part) -> int:
    """The time of its newest row; rows without any time are never old."""
    last = largest(run.directory, [part], "effective_at")
    return -1 if last is None else micros(last)


def _spans(
    run: Run, parts: Iterable[Part], now_us: int, only: frozenset[int] | None = None
) -> dict[int, _Span]:
    """Partition of the log -> when its commits took effect that are not after a moment, of some
    partitions or of all.
    """
    found: dict[int, _Span] = {}
    taken = (ds.field("state") == COMMITTED) & (ds.field("effective_at") <= _time(now_us))
    if only is not None:
        taken &= ds.field("partition").isin(sorted(only))
    for part in parts if only is None or only else ():
        rows = parquet.folder_dataset(run.directory / part.path, COMMITS.arrow)
        _add_spans(found, rows, taken)
    return found


def _passed(run: Run, now_us: int) -> dict[int, _Span]:
    """Partition of the log -> when its known commits took effect that were later than the moment of
    the run before, and are not later than now. Where clocks are right there are none.
    """
    before_ms = run.writer.manifest.as_of_ms
    if run.log_progress.before is None or before_ms is None or now_us <= before_ms * 1000:
        return {}
    found: dict[int, _Span] = {}
    at = ds.field("effective_at")
    taken = (at > _time(before_ms * 1000)) & (at <= _time(now_us))
    for part in run.before(COMMIT_RATES):
        if _last(run, part) > before_ms * 1000:
            rows = parquet.folder_dataset(run.directory / part.path, COMMIT_RATES.arrow)
            _add_spans(found, rows, taken)
    return found


def _add_spans(found: dict[int, _Span], rows: ds.Dataset, taken: ds.Expression) -> None:
    for batch in rows.to_batches(columns=["partition", "effective_at"], filter=taken):
        at = batch.column("effective_at").cast(pa.int64())
        times = pa.table({"partition": batch.column("partition"), "at": at})
        ends = times.group_by("partition").aggregate([("at", "min"), ("at", "max")])
        for row in ends.to_pylist():
            span = _Span(row["at_min"], row["at_max"])
            found[row["partition"]] = span.plus(found.get(row["partition"]))


def _time(microseconds: int) -> pa.Scalar:
    return pa.scalar(microseconds, COMMITS.arrow.field("effective_at").type)


def _held_back(run: Run, parts: Iterable[Part]) -> dict[int, int]:
    """The result of `gold.rates.held_back` for these parts, in microseconds."""
    found: dict[int, int] = {}
    of_table = COMMITS.arrow
    is_held = (
        ds.field("state").isin([COMMITTED, REMOVED])
        & (ds.field("timestamp") < ds.field("complete_from"))
        & (ds.field("effective_at") >= ds.field("complete_from"))
    )
    for part in parts:
        rows = parquet.folder_dataset(run.directory / part.path, of_table).to_table(
            columns=["partition", "effective_at"], filter=is_held
        )
        latest = rows.set_column(1, "at", rows["effective_at"].cast(pa.int64()))
        for row in latest.group_by("partition").aggregate([("at", "max")]).to_pylist():
            found[row["partition"]] = row["at_max"]
    return found


def _as_behind(run: Run, behind: dict[int, int]) -> DataFrame:
    times = pa.array([*behind.values()], COMMITS.arrow.field("effective_at").type)
    return _by_partition(run, behind, "held_back timestamp", times)


def _as_newest(run: Run, newest: dict[int, int]) -> DataFrame:
    """The result of `rate_rollup.newest_of`."""
    return _by_partition(run, newest, "newest_us bigint", pa.array([*newest.values()], pa.int64()))


def _by_partition(
    run: Run, by_partition: dict[int, int], column: str, values: pa.Array
) -> DataFrame:
    partitions = pa.array([*by_partition], pa.int32())
    rows = pa.table([partitions, values], names=["partition", column.partition(" ")[0]])
    return run.spark.createDataFrame(rows, f"partition int, {column}")
