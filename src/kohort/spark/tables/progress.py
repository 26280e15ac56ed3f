"""Commits, offsets, rates, lag, status, states of groups: what is new of them, as parts of tables.

Rows that nothing can change any more are appended. What tells of now is computed from the newest
record of each key (see `gold.newest`), which is kept from run to run. So a run costs what is new,
and a row for each partition that a group has committed for. Where that could be wrong (see
`reach`), the rows of a partition of the log are computed from all of its records.
"""

from collections.abc import Callable, Collection, Iterable
from functools import reduce
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from kohort.spark.gold.cleanup import deletable_groups
from kohort.spark.gold.commits import (
    EFFECTIVE,
    effective,
    held,
    offsets,
    rates,
    settled,
)
from kohort.spark.gold.completeness import mark
from kohort.spark.gold.group_state import group_state
from kohort.spark.gold.lag import lag_of, moments_of
from kohort.spark.gold.measure import Context, Frames, kept
from kohort.spark.gold.moments import micros
from kohort.spark.gold.newest import NEWEST, RECORDS, as_effective, newest, records, said_of_offsets
from kohort.spark.gold.status import WINDOWS, status, windows_of
from kohort.spark.schemas import DECODED, END_OFFSETS, KINDS, Table
from kohort.spark.schemas.membership import GROUP_STATE
from kohort.spark.schemas.progress import (
    COMMIT_RATES,
    COMMITS,
    COMMITTED,
    DELETABLE_GROUPS,
    LAG,
    OFFSETS,
    PENDING,
    REMOVED,
    STATUS,
)
from kohort.spark.tables import spark_reader
from kohort.spark.tables.code import code
from kohort.spark.tables.lag_news import SampleNews, sample_news
from kohort.spark.tables.manifest import (
    GOLD,
    PROGRESS,
    ROWS,
    Gold,
    Manifest,
    Part,
    Progress,
    Writer,
)
from kohort.spark.tables.news import reached_by
from kohort.spark.tables.parts import columns_of, is_whole, without, write_part
from kohort.spark.tables.reach import Standing, fresh_increments
from kohort.spark.tables.silver import views

TABLES = (GROUP_STATE, COMMITS, OFFSETS, COMMIT_RATES, LAG, STATUS, DELETABLE_GROUPS)
MOST_PARTS = 10
"""So many small parts of rows that are over become one."""
FEW_ROWS = 200_000
_TRANSACTIONAL = (KINDS[0], KINDS[1])


class Brought(NamedTuple):
    """The tables, and what the next run goes on from."""

    gold: dict[str, Gold]
    progress: Progress


class Run(NamedTuple):
    """What a run knows."""

    spark: SparkSession
    writer: Writer
    manifest: Manifest
    frames: Frames
    context: Context
    standing: Standing
    names: Part

    @property
    def directory(self) -> Path:
        return self.writer.directory

    @property
    def going_on(self) -> frozenset[int]:
        """Partitions of which only what is new is looked at."""
        return self.standing.go_on - self.standing.rewound - self.standing.hidden

    def anew(self) -> frozenset[int]:
        """Partitions all of whose rows are looked at."""
        return self.standing.touched - self.going_on

    def here(self, frame: DataFrame, partitions: Collection[int]) -> DataFrame:
        """The rows of some partitions of the log."""
        return frame.where(F.col("partition").isin(sorted(partitions)))

    def parts(self, table: Table, those: Collection[Part]) -> DataFrame:
        """The rows of parts of a table."""
        return spark_reader.parts(self.spark, self.directory, table, those)

    def before(self, table: Table) -> tuple[Part, ...]:
        """The parts of a table as they were."""
        return () if self.standing.before is None else self.manifest.gold[table.name].parts

    def write(
        self,
        rows: DataFrame,
        table: Table,
        partitions: Iterable[int] | None = None,
        *,
        is_open: bool = False,
    ) -> tuple[Part, ...]:
        """Rows as a part; none without rows."""
        where = f"{GOLD}/{table.name}" if table in TABLES else PROGRESS
        some = None if partitions is None else tuple(sorted(partitions))
        one = write_part(self.writer, self._few(rows), where, some, is_open=is_open)
        return (one,) if one.rows else ()

    def _few(self, rows: DataFrame) -> DataFrame:
        before, fresh = self.standing.before, fresh_increments(self.writer, self.manifest)
        small = before is not None and sum(one.rows for one in fresh) <= FEW_ROWS
        return rows.coalesce(1) if small else rows


def are_whole(directory: Path, manifest: Manifest) -> bool:
    """Whether all the tables are there, with the columns that they have today."""
    for table in TABLES:
        gold = manifest.gold.get(table.name)
        if gold is None or gold.columns != columns_of(table):
            return False
        if not all(is_whole(directory, one) for one in gold.parts):
            return False
    return True


def bring_up(run: Run, doing: Callable[[str], None]) -> Brought:
    """The tables over the rows of a manifest. The files are new; the old ones stay."""
    standing, before = run.standing, run.standing.before
    gold: dict[str, tuple[Part, ...]] = {}
    if before is not None and not standing.touched:
        gold = {one.name: run.before(one) for one in TABLES}
        fresh = _Fresh((), (), before.open_from)
        state = _State(before.newest, before.records, before.held_back)
    else:
        doing(COMMITS.name)
        fresh = _commits(run, gold)
        doing(COMMIT_RATES.name)
        behind = _rates(run, fresh, gold)
        doing(OFFSETS.name)
        state = _State(_newest(run, fresh), _records(run), behind)
        gold[OFFSETS.name] = _offsets(run, fresh, state)
        doing(GROUP_STATE.name)
        gold[GROUP_STATE.name] = _group_state(run, state)
    doing(LAG.name)
    exact_us, newest_us = _bounds(run, state.newest)
    samples = sample_news(run.directory, run.manifest, before)
    gold[LAG.name], moments = _lag(run, fresh, state, gold, samples)
    doing(STATUS.name)
    gold[STATUS.name] = _status(run, state, gold, exact_us)
    doing(DELETABLE_GROUPS.name)
    gold[DELETABLE_GROUPS.name] = _deletable(run, state, gold)
    progress = Progress(
        code=code() or "",
        fed=reached_by(run.manifest.increments),
        extents={one: (*reach,) for one, reach in standing.reaches.items()},
        held_back=state.held_back,
        open_from=fresh.open_from,
        newest=state.newest,
        records=state.records,
        names=run.names,
        exact_us=exact_us,
        newest_us=newest_us,
        moments=tuple(moments),
        samples=tuple(one.path for one in run.manifest.end_offsets),
    )
    tables = {one.name: Gold(columns=columns_of(one), parts=gold[one.name]) for one in TABLES}
    return Brought(tables, progress)


class _Fresh(NamedTuple):
    """What has become final of `commits`, and what has not."""

    over: tuple[Part, ...]
    still_open: tuple[Part, ...]
    """Of partitions with news only."""
    open_from: dict[int, int]


class _State(NamedTuple):
    """See `Progress`."""

    newest: tuple[Part, ...]
    records: tuple[Part, ...]
    held_back: dict[int, int]


def _decoded(run: Run) -> DataFrame:
    """The rows that are looked at: the new ones, and all of the partitions that begin anew."""
    every = run.frames[DECODED.name]
    if run.standing.anew is None:
        return every
    fresh = fresh_increments(run.writer, run.manifest)
    rows = spark_reader.rows(run.spark, run.directory, run.manifest, fresh)
    chosen = run.here(rows, run.going_on)
    return chosen.unionByName(run.here(every, run.anew())) if run.anew() else chosen


def _commits(run: Run, gold: dict[str, tuple[Part, ...]]) -> _Fresh:
    """Rows that are over are added to those before, and those of open transactions replaced."""
    before = run.standing.before
    open_from = {} if before is None else before.open_from
    decoded = _decoded(run)
    tail = {one: at for one, at in open_from.items() if one in run.going_on}
    if tail:  # a commit of an open transaction is looked at again, with all that came after it
        decoded = decoded.unionByName(_behind(run, tail))
    rows = settled(views(decoded), transactions=bool(tail) or _has_transactions(run))
    marked = mark(rows, run.frames)
    touched = run.standing.touched
    old = run.before(COMMITS)
    over = without([one for one in old if not one.is_open], run.anew(), run.directory)
    left = without([one for one in old if one.is_open], touched, run.directory)
    if not tail and not _has_transactions(run):
        new = run.write(COMMITS.conform(marked), COMMITS)
        still: tuple[Part, ...] = ()
    else:
        known = {} if before is None else {one: before.fed.get(one, 0) for one in run.going_on}
        marked = kept(marked.where(_is_new(known)))
        final = F.col("settled_at").isNotNull()
        new = run.write(COMMITS.conform(marked.where(final)), COMMITS)
        opened = COMMITS.conform(marked.where(~final))
        still = run.write(opened, COMMITS, touched, is_open=True)
    gold[COMMITS.name] = (*_merged(run, COMMITS, (*over, *new)), *left, *still)
    opened_from = {one: at for one, at in open_from.items() if one not in touched}
    return _Fresh(new, still, opened_from | _first_offsets(run, still))


def _behind(run: Run, tail: dict[int, int]) -> DataFrame:
    """Rows that are known, from these offsets on."""
    old = {one.name for one in run.writer.manifest.increments}
    chosen = [one for one in run.manifest.increments if one.name in old]
    rows = spark_reader.rows(run.spark, run.directory, run.manifest, chosen)
    beyond = [(F.col("partition") == one) & (F.col("offset") >= at) for one, at in tail.items()]
    return rows.where(reduce(Column.__or__, beyond))


def _is_new(known: dict[int, int]) -> Column:
    """Whether what has become of a commit was not known before: it is open, or was."""
    if not known:
        return F.lit(True)
    pairs = F.create_map(*(F.lit(one) for pair in known.items() for one in pair))
    reached = F.coalesce(F.try_element_at(pairs, F.col("partition")), F.lit(0))
    return F.col("settled_at").isNull() | (F.col("settled_at") >= reached)


def _has_transactions(run: Run) -> bool:
    """Whether some of the commits that are looked at may be in transactions, as the footers of
    their files tell.
    """
    chosen = run.manifest.increments
    if not run.anew():
        chosen = tuple(fresh_increments(run.writer, run.manifest))
    for one in chosen:
        for kind in _TRANSACTIONAL:
            for file in (run.directory / ROWS / one.name / f"kind={kind}").glob("*.parquet"):
                if _largest(file, "producer_id", -1) != -1:
                    return True
    return False


def _largest(file: Path, column: str, none: int | None) -> int | None:
    """The largest value of a column of a file, by its statistics; `none` without rows."""
    found = pq.read_metadata(file)
    index = found.schema.names.index(column) if column in found.schema.names else -1
    if index < 0:
        return _largest_of_rows(file, column, none)
    values = []
    for group in range(found.num_row_groups):
        told = found.row_group(group).column(index).statistics
        if told is None or not (told.has_min_max or told.null_count == told.num_values):
            return _largest_of_rows(file, column, none)
        if told.has_min_max:
            values.append(told.max)
    return max(values, default=none)


def _largest_of_rows(file: Path, column: str, none: int | None) -> int | None:
    found = pc.max(pq.read_table(file, columns=[column], partitioning=None)[column]).as_py()
    return none if found is None else found


def _first_offsets(run: Run, parts: Iterable[Part]) -> dict[int, int]:
    """Partition of the log -> the first offset in these parts."""
    found: dict[int, int] = {}
    for part in parts:
        rows = ds.dataset(run.directory / part.path, format="parquet").to_table(
            columns=["partition", "offset"]
        )
        for one in rows.group_by("partition").aggregate([("offset", "min")]).to_pylist():
            found[one["partition"]] = one["offset_min"]
    return found


def _rates(run: Run, fresh: _Fresh, gold: dict[str, tuple[Part, ...]]) -> dict[int, int]:
    """Each new commit beside the one before it. Answers from when on they are known to be."""
    before = run.standing.before
    old = {} if before is None else before.held_back
    known = {one: at for one, at in old.items() if one not in run.anew()}
    found = _held_back(run, fresh.over)
    behind = known | {one: max(at, known.get(one, at)) for one, at in found.items()}
    again = {one for one in run.going_on if behind.get(one) != known.get(one)}
    every = run.parts(COMMITS, fresh.over)
    if again:  # what was told of them begins later now
        all_of_them = [one for one in gold[COMMITS.name] if not one.is_open]
        every = every.where(~F.col("partition").isin(sorted(again))).unionByName(
            run.here(run.parts(COMMITS, all_of_them), again)
        )
    on = run.going_on - again
    then = None
    if before is not None and on:
        then = run.here(run.parts(NEWEST, before.newest), on)
        groups = F.broadcast(every.select("partition", "group_id").distinct())
        then = then.join(groups, ["partition", "group_id"], "left_semi")
    rows = rates(every, _as_behind(run, behind), then)
    parts = without(run.before(COMMIT_RATES), run.anew() | again, run.directory)
    gold[COMMIT_RATES.name] = _merged(run, COMMIT_RATES, (*parts, *run.write(rows, COMMIT_RATES)))
    return behind


def _held_back(run: Run, parts: Iterable[Part]) -> dict[int, int]:
    """As `gold.commits.held_back`, of these parts, in microseconds."""
    found: dict[int, int] = {}
    of_table = COMMITS.arrow
    is_held = (
        ds.field("state").isin([COMMITTED, REMOVED])
        & (ds.field("timestamp") < ds.field("complete_from"))
        & (ds.field("effective_at") >= ds.field("complete_from"))
    )
    for part in parts:
        rows = ds.dataset(run.directory / part.path, of_table, format="parquet").to_table(
            columns=["partition", "effective_at"], filter=is_held
        )
        latest = rows.set_column(1, "at", rows["effective_at"].cast(pa.int64()))
        for one in latest.group_by("partition").aggregate([("at", "max")]).to_pylist():
            found[one["partition"]] = one["at_max"]
    return found


def _as_behind(run: Run, behind: dict[int, int]) -> DataFrame:
    rows = {
        "partition": pa.array([*behind], pa.int32()),
        "held_back": pa.array([*behind.values()], COMMITS.arrow.field("effective_at").type),
    }
    return run.spark.createDataFrame(pa.table(rows))


def _newest(run: Run, fresh: _Fresh) -> tuple[Part, ...]:
    before = run.standing.before
    rows = run.parts(COMMITS, fresh.over)
    if before is None:
        return run.write(newest(rows), NEWEST)
    then = run.here(run.parts(NEWEST, before.newest), run.going_on)
    touched = run.standing.touched
    new = run.write(newest(rows, then if run.going_on else None), NEWEST, touched)
    return (*without(before.newest, touched, run.directory), *new)


def _records(run: Run) -> tuple[Part, ...]:
    before, rows = run.standing.before, _decoded(run)
    if before is None:
        return run.write(records(rows), RECORDS)
    touched = run.standing.touched
    then = run.here(run.parts(RECORDS, before.records), run.going_on)
    new = run.write(records(then.unionByName(rows)), RECORDS, touched)
    return (*without(before.records, touched, run.directory), *new)


def _offsets(run: Run, fresh: _Fresh, state: _State) -> tuple[Part, ...]:
    """Of the partitions with news."""
    touched = run.standing.touched
    last = run.here(run.parts(NEWEST, state.newest), touched)
    if fresh.still_open:
        pending = run.here(run.parts(COMMITS, fresh.still_open), touched)
        pending = pending.where(F.col("state") == PENDING)
        both = last.unionByName(pending, allowMissingColumns=True)
        rows = offsets({COMMITS.name: both}, run.context)
    else:
        rows = held(last.withColumn("pending", F.lit(False)))
    return _replaced(run, rows, OFFSETS, touched)


def _replaced(run: Run, rows: DataFrame, table: Table, touched: frozenset[int]) -> tuple[Part, ...]:
    if run.standing.before is None:
        return run.write(rows, table)
    left = without(run.before(table), touched, run.directory)
    return (*left, *run.write(rows, table, touched))


def _group_state(run: Run, state: _State) -> tuple[Part, ...]:
    touched = run.standing.touched
    rows = run.here(run.parts(RECORDS, state.records), touched)
    frames = {**run.frames, **views(rows)}
    return _replaced(run, group_state(frames, run.context), GROUP_STATE, touched)


def _bounds(run: Run, parts: Iterable[Part]) -> tuple[int | None, int | None]:
    """`exact_us` and `newest_us` of NEWEST rows."""
    files = [one for part in parts for one in (run.directory / part.path).glob("*.parquet")]
    exact = [_largest(one, "exact_us", None) for one in files]
    latest = [_largest(one, "newest_us", None) for one in files]
    return (
        max((one for one in exact if one is not None), default=None),
        max((one for one in latest if one is not None), default=None),
    )


def _lag(
    run: Run,
    fresh: _Fresh,
    state: _State,
    gold: dict[str, tuple[Part, ...]],
    samples: SampleNews,
) -> tuple[tuple[Part, ...], list[int]]:
    """Rows of moments that nothing new is about stay, and those of others are computed."""
    before = run.standing.before
    as_of = micros(run.context.as_of)
    keys = sum(one.rows for one in state.newest)
    moments = moments_of(samples.times, keys, as_of)
    told: set[int] = set()
    if before is not None and not run.standing.rewound:
        since = min(samples.since_us, _since(run, fresh))
        told = {one for one in moments if one in before.moments and one < since}
    computed = [one for one in moments if one not in told]
    if before is not None and moments == [*before.moments] and not computed:
        return run.before(LAG), moments
    frames = dict(run.frames)
    if _suffices(run, computed):
        assert before is not None
        last_only = before.newest_us is None or min(computed, default=0) >= before.newest_us
        then = run.parts(NEWEST, before.newest)
        if run.anew():
            then = then.where(~F.col("partition").isin(sorted(run.anew())))
        known = as_effective(then, last_only=last_only)
        frames[EFFECTIVE] = known.unionByName(_effective(run, fresh.over))
    else:
        frames[EFFECTIVE] = _effective(run, [one for one in gold[COMMITS.name] if not one.is_open])
    rows = lag_of(frames, computed)
    if told:
        at = F.unix_micros("at").isin(sorted(told))
        rows = rows.unionByName(run.parts(LAG, run.before(LAG)).where(at))
    return run.write(rows, LAG), moments


def _suffices(run: Run, moments: list[int]) -> bool:
    """Whether what is kept of the commits before tells what held at these moments."""
    before = run.standing.before
    return (
        before is not None
        and not run.standing.rewound
        and all(before.exact_us is None or one >= before.exact_us for one in moments)
    )


def _since(run: Run, fresh: _Fresh) -> int:
    """The time of the first of what is new, in microseconds."""
    times = [
        one.oldest_ms * 1000
        for one in fresh_increments(run.writer, run.manifest)
        if one.oldest_ms is not None
    ]
    assert run.standing.before is not None
    fed = run.standing.before.fed
    known = pa.table({"partition": pa.array([*fed], pa.int32()), "fed": pa.array([*fed.values()])})
    for part in fresh.over:  # some commits have a time of their own
        rows = ds.dataset(run.directory / part.path, COMMITS.arrow, format="parquet")
        for batch in rows.to_batches(columns=["partition", "effective_offset", "effective_at"]):
            both = pa.Table.from_batches([batch]).join(known, "partition", join_type="left outer")
            is_new = pc.greater_equal(both["effective_offset"], pc.coalesce(both["fed"], 0))
            first = pc.min(both.filter(is_new)["effective_at"].cast(pa.int64())).as_py()
            times += [] if first is None else [first]
    return min(times, default=np.iinfo(np.int64).max)


def _effective(run: Run, parts: Collection[Part]) -> DataFrame:
    return effective({COMMITS.name: run.parts(COMMITS, parts)})


def _status(
    run: Run, state: _State, gold: dict[str, tuple[Part, ...]], exact_us: int | None
) -> tuple[Part, ...]:
    now = micros(run.context.as_of)
    if exact_us is None or now >= exact_us:
        known = {WINDOWS: windows_of(run.parts(NEWEST, state.newest), now)}
    else:
        over = [one for one in gold[COMMITS.name] if not one.is_open]
        known = {EFFECTIVE: _effective(run, over)}
    frames = {
        **known,
        LAG.name: run.parts(LAG, gold[LAG.name]),
        END_OFFSETS.name: run.frames[END_OFFSETS.name],
        GROUP_STATE.name: run.parts(GROUP_STATE, gold[GROUP_STATE.name]),
    }
    return run.write(status(frames, run.context), STATUS)


def _deletable(run: Run, state: _State, gold: dict[str, tuple[Part, ...]]) -> tuple[Part, ...]:
    frames = {
        GROUP_STATE.name: run.parts(GROUP_STATE, gold[GROUP_STATE.name]),
        OFFSETS.name: run.parts(OFFSETS, gold[OFFSETS.name]),
        COMMITS.name: run.parts(RECORDS, state.records).where(said_of_offsets()),
    }
    return run.write(deletable_groups(frames, run.context), DELETABLE_GROUPS)


def _merged(run: Run, table: Table, parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """The parts, small ones as one where there are many."""
    small = [one for one in parts if one.rows < FEW_ROWS]
    if len(small) < MOST_PARTS:
        return parts
    one = run.write(run.parts(table, small), table)
    return (*(part for part in parts if part not in small), *one)
