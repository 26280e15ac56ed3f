# SPDX-License-Identifier: Apache-2.0
"""Members, assignments and rebalances: brings the histories of groups up to date, as parts of
tables.

Rows that nothing can change any more are appended. Rows that may still change, and the states from
which histories go on, are replaced for the log partitions that have something new. So the cost of a
run depends on what is new. Where that could be wrong (see `refresh_plan.refresh_plan`), histories
are replayed from bronze.
"""

from collections.abc import Collection, Mapping
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from kohort.history import RECORD_TYPES
from kohort.pipeline.columns.events import COMMITS
from kohort.pipeline.format import server_logs
from kohort.pipeline.format.code import code
from kohort.pipeline.format.manifest import Gold, HistoriesState, Increment, Manifest, Part, to_join
from kohort.pipeline.format.refresh_plan import (
    MISSING,
    RefreshPlan,
    full_refresh,
    next_offsets,
    refresh_plan,
    renamed_topics,
)
from kohort.pipeline.format.writer import Writer
from kohort.pipeline.schemas import DECODED, KINDS, TOMBSTONE, Table
from kohort.pipeline.schemas.membership import REBALANCES
from kohort.pipeline.schemas.server_log import SERVER_LOG
from kohort.pipeline.stores import parquet
from kohort.pipeline.stores.layout import GOLD, HISTORIES, ROWS
from kohort.pipeline.stores.places import Folder
from kohort.spark.engine import small_runs
from kohort.spark.engine.frames import conform
from kohort.spark.gold.completeness import CompletenessWatermark, mark
from kohort.spark.gold.history import GROUP
from kohort.spark.gold.history_replay import (
    STATES,
    TABLES,
    ReplayContext,
    as_frame,
    events_of,
    groups_with_members,
    of_table,
    replay,
    replay_in_driver,
)
from kohort.spark.gold.measure import Frames, checkpoint
from kohort.spark.tables import spark_reader
from kohort.spark.tables.parts import columns_of, is_whole, without, write_part

_ABOUT_MEMBERS = (TOMBSTONE, *(KINDS[number] for number in RECORD_TYPES))
_NAMES = "names.parquet"


class HistoriesResult(NamedTuple):
    """The tables, and what the next run goes on from."""

    gold: dict[str, Gold]
    histories: HistoriesState
    recomputed: str = ""
    """Why all of them were recomputed, where that is worth a note."""


class _Run(NamedTuple):
    """What a run knows."""

    spark: SparkSession
    writer: Writer
    manifest: Manifest
    frames: Frames
    replay_context: ReplayContext
    refresh_plan: RefreshPlan

    def here(self, frame: DataFrame, partitions: Collection[int]) -> DataFrame:
        """The rows of some partitions of the log."""
        return frame.where(F.col("partition").isin(sorted(partitions)))

    def parts(self, table: Table, parts: Collection[Part]) -> DataFrame:
        """The rows of parts of a table."""
        return spark_reader.parts(self.spark, self.writer.directory, table, parts)

    @property
    def lines(self) -> DataFrame | None:
        """What log files of brokers tell."""
        return self.frames.get(SERVER_LOG.name)

    def increments(self, *, fresh: bool) -> list[Increment]:
        """Those that were added since the published manifest, or those before."""
        old = {increment.name for increment in self.writer.manifest.increments}
        return [
            increment
            for increment in self.manifest.increments
            if (increment.name not in old) == fresh
        ]

    def rows(self, *, fresh: bool) -> DataFrame:
        """Their decoded rows."""
        chosen = self.increments(fresh=fresh)
        return spark_reader.rows(self.spark, self.writer.directory, self.manifest, chosen)

    def looked_at(self) -> list[Increment]:
        """Increments that are read as a whole, at least for some partitions."""
        goes_on = self.refresh_plan.recompute == frozenset()
        return self.increments(fresh=True) if goes_on else [*self.manifest.increments]

    def about_members(self) -> int:
        """An upper bound of how many records about members are looked at."""
        counts = (increment.counts for increment in self.looked_at())
        return sum(count.get(kind, 0) for count in counts for kind in _ABOUT_MEMBERS)


def refresh(
    spark: SparkSession,
    writer: Writer,
    manifest: Manifest,
    frames: Frames,
    replay_context: ReplayContext,
    completeness_watermarks: Mapping[int, CompletenessWatermark],
) -> HistoriesResult:
    """The three tables over the rows of `manifest`, from what the published one knows of them. The
    files are new; the old ones stay.
    """
    before, now = manifest.histories, _now(manifest, completeness_watermarks, replay_context)
    found = _refresh_plan(writer, manifest, now, replay_context)
    if before is not None and found.touched == frozenset():
        same = before.with_(server_logs=now.server_logs)
        return HistoriesResult(
            {table.name: manifest.gold[table.name] for table in TABLES.values()}, same
        )
    run = _Run(spark, writer, manifest, frames, replay_context, found)
    if _is_nobodys(run):
        names = _write_names(writer, replay_context)
        states = () if before is None or found.recompute is None else before.states
        after = now.with_(states=states, names=names)
        return HistoriesResult(_as_before(run), after, found.why)
    replayed, counts = _replayed(run)
    gold = {table.name: _table(run, replayed, table, counts) for table in TABLES.values()}
    names = _write_names(writer, replay_context)
    after = now.with_(states=_states(run, replayed), names=names)
    return HistoriesResult(gold, after, found.why)


def _is_nobodys(run: _Run) -> bool:
    """Whether nothing new can be about a group with members: there are none, and none came."""
    before = run.manifest.histories
    if (
        run.refresh_plan.recompute is not None
        and before is not None
        and any(state.rows for state in before.states)
    ):
        return False
    return not run.about_members()


def _as_before(run: _Run) -> dict[str, Gold]:
    """The three tables as they were; without rows where they are recomputed."""
    if run.refresh_plan.recompute is not None:
        return {table.name: run.manifest.gold[table.name] for table in TABLES.values()}
    return {table.name: Gold(columns=columns_of(table), parts=()) for table in TABLES.values()}


def _now(
    manifest: Manifest,
    completeness_watermarks: Mapping[int, CompletenessWatermark],
    replay_context: ReplayContext,
) -> HistoriesState:
    """What histories depend on that is not in their states."""
    return HistoriesState(
        code=code() or "",
        session_timeout_ms=replay_context.session_timeout_ms,
        fed=next_offsets(manifest.increments),
        complete={
            partition: (watermark.complete_offset, watermark.complete_us)
            for partition, watermark in completeness_watermarks.items()
        },
        server_logs=server_logs.paths_of(manifest),
    )


def _refresh_plan(
    writer: Writer, manifest: Manifest, now: HistoriesState, replay_context: ReplayContext
) -> RefreshPlan:
    """What to recompute: everything where the earlier result is missing or damaged, else what
    `refresh_plan.refresh_plan` says.
    """
    before, directory = manifest.histories, writer.directory
    if before is None or before.names is None:
        return full_refresh()
    for table in TABLES.values():
        gold = manifest.gold.get(table.name)
        if gold is None or gold.columns != columns_of(table):
            return full_refresh()
        if not all(is_whole(directory, part) for part in gold.parts):
            return full_refresh(MISSING)
    if not all(is_whole(directory, part) for part in (*before.states, before.names)):
        return full_refresh(MISSING)
    topics = renamed_topics(_names(directory, before.names), replay_context.names)
    renamed = _partitions_with(directory, before.states, topics)
    renamed |= server_logs.partitions_with(
        directory, manifest.server_log, before.server_logs, before.states
    )
    return refresh_plan(before, now, writer.manifest.increments, manifest.increments, renamed)


def _names(directory: Folder, part: Part) -> dict[str, str]:
    rows = parquet.read(directory / part.path / _NAMES).to_pylist()
    return {row["topic_id"]: row["topic"] for row in rows}


def _write_names(writer: Writer, replay_context: ReplayContext) -> Part:
    name = f"{HISTORIES}/{writer.new_name('names-')}"
    path = writer.directory / name
    path.mkdir(parents=True)
    rows = {
        "topic_id": pa.array(replay_context.names.keys(), pa.string()),
        "topic": pa.array(replay_context.names.values(), pa.string()),
    }
    parquet.write(pa.table(rows), path / _NAMES)
    return Part(path=name, rows=len(replay_context.names))


def _partitions_with(directory: Folder, states: Collection[Part], topics: set[str]) -> set[int]:
    """Partitions of the log with groups that depend on one of these topics."""
    found: set[int] = set()
    wanted = pa.array(sorted(topics), pa.string())
    for part in states if topics else ():
        files = parquet.folder_dataset(directory / part.path, STATES.arrow)
        for batch in files.to_batches(columns=["partition", "topics"]):
            topic = pc.list_flatten(batch.column("topics"))
            rows = pc.list_parent_indices(batch.column("topics"))
            named = rows.filter(pc.is_in(topic, wanted)).unique()
            found |= {*batch.column("partition").take(named).to_pylist()}
    return found


def _replayed(run: _Run) -> tuple[DataFrame, dict[tuple[str, bool], int]]:
    """What `replay` gives for the groups with news, and its rows by table and `is_open`."""
    new_events, states = _new_events(run)
    if _is_few(run):
        replayed = replay_in_driver(new_events, states, run.replay_context, run.lines)
        counted = replayed.group_by(["table", "is_open"]).aggregate([([], "count_all")])
        columns = counted.select(["table", "is_open", "count_all"]).to_pydict().values()
        return as_frame(run.spark, replayed), {
            row[:2]: row[2] for row in zip(*columns, strict=True)
        }
    frame = checkpoint(replay(new_events, states, run.replay_context, run.lines))
    counts = frame.groupBy("table", "is_open").count().collect()
    return frame, {(row["table"], row["is_open"]): row["count"] for row in counts}


def _is_few(run: _Run) -> bool:
    rows = sum(increment.rows for increment in run.looked_at())
    few = small_runs.is_few(rows, small_runs.DRIVER_REPLAY_ROWS)
    few = few and run.about_members() <= small_runs.DRIVER_REPLAY_RECORDS
    return few and _bytes_about_members(run) <= small_runs.DRIVER_REPLAY_BYTES


def _bytes_about_members(run: _Run) -> int:
    folders = (
        run.writer.directory / ROWS / increment.name / f"kind={kind}"
        for increment in run.looked_at()
        for kind in _ABOUT_MEMBERS
    )
    return sum(parquet.size(file) for folder in folders for file in parquet.files_of(folder))


def _new_events(run: _Run) -> tuple[DataFrame, DataFrame | None]:
    """The new events of groups with news, and the states from which their histories go on."""
    decoded = run.frames[DECODED.name]
    if run.refresh_plan.recompute is None:
        return events_of(decoded, groups_with_members(decoded), run.replay_context.complete), None
    recompute = run.here(decoded, run.refresh_plan.recompute)
    if not run.refresh_plan.incremental:
        return events_of(
            recompute, groups_with_members(recompute), run.replay_context.complete
        ), None
    assert run.manifest.histories is not None
    states = run.here(
        run.parts(STATES, run.manifest.histories.states), run.refresh_plan.incremental
    )
    fresh = run.here(run.rows(fresh=True), run.refresh_plan.incremental)
    described = groups_with_members(fresh)
    newcomers = described.join(states, [*GROUP], "left_anti")
    before = _commits_before(run, newcomers)
    rows = fresh if before is None else fresh.unionByName(before)
    members = states.select(*GROUP).unionByName(described)
    if run.refresh_plan.recompute:
        rows = rows.unionByName(recompute)
        members = members.unionByName(groups_with_members(recompute))
    with_news = F.broadcast(fresh.select(*GROUP).distinct())
    going_on = states.join(with_news, [*GROUP], "left_semi")
    return events_of(rows, members.distinct(), run.replay_context.complete), going_on


def _commits_before(run: _Run, newcomers: DataFrame) -> DataFrame | None:
    """Commits of groups that had no members so far: from now on they belong to a history."""
    known_before = next_offsets(run.writer.manifest.increments)
    if run.refresh_plan.incremental.isdisjoint(known_before) or newcomers.isEmpty():
        return None
    old = run.here(run.rows(fresh=False), run.refresh_plan.incremental)
    commits = old.where(F.col("kind").isin(*COMMITS))
    return commits.join(F.broadcast(newcomers), [*GROUP], "left_semi")


def _table(
    run: _Run, replayed: DataFrame, table: Table, counts: dict[tuple[str, bool], int]
) -> Gold:
    """Rows that are over are added to those before, and rows that are open replace them."""
    recompute, touched = run.refresh_plan.recompute, run.refresh_plan.touched
    before = () if recompute is None else run.manifest.gold[table.name].parts
    over = [part for part in before if not part.is_open]
    parts = [*without(run.writer, table, over, recompute or ())]
    if counts.get((table.name, False)):
        closed = _table_rows(run, replayed.where(~F.col("is_open")), table)
        parts.append(_write(run, closed, table, counts[table.name, False]))
    parts = _merged(run, table, parts)
    rows = _table_rows(run, replayed.where("is_open"), table)
    still = [part for part in before if part.is_open]
    if touched is not None:
        rows = rows.unionByName(_others(run, run.parts(table, still), replayed))
    expected = counts.get((table.name, True), 0) + sum(part.rows for part in still)
    if expected:
        opened = _write(run, rows, table, expected, is_open=True)
        parts += [opened] if opened.rows else []
    if touched is not None:
        parts += without(run.writer, table, still, touched)
    return Gold(columns=columns_of(table), parts=tuple(parts))


def _table_rows(run: _Run, replayed: DataFrame, table: Table) -> DataFrame:
    return conform(table, mark(of_table(replayed, table), run.frames))


def _others(run: _Run, rows: DataFrame, replayed: DataFrame) -> DataFrame:
    """Rows of groups without news, in partitions of the log that go on."""
    fed = F.broadcast(replayed.where(F.col("table") == STATES.name).select(*GROUP))
    return (
        run.here(rows, run.refresh_plan.incremental)
        .join(fed, [*GROUP], "left_anti")
        .select(*rows.columns)
    )


def _write(
    run: _Run,
    rows: DataFrame,
    table: Table,
    expected: int,
    *,
    is_open: bool = False,
) -> Part:
    of_rebalances = table == REBALANCES
    most = small_runs.ONE_FILE_REBALANCES if of_rebalances else small_runs.ONE_FILE_ROWS
    few = expected <= most
    where = f"{GOLD}/{table.name}"
    return write_part(run.writer, rows, where, is_open=is_open, few=few)


def _merged(run: _Run, table: Table, parts: list[Part]) -> list[Part]:
    """The parts, small ones as one where there are many."""
    small = to_join(parts)
    if not small:
        return parts
    rows = sum(part.rows for part in small)
    merged = _write(run, run.parts(table, small), table, rows)
    return [*(part for part in parts if part not in small), merged]


def _states(run: _Run, replayed: DataFrame) -> tuple[Part, ...]:
    """The states of all groups: those of partitions of the log with news in a new part."""
    touched = run.refresh_plan.touched
    rows = replayed.where(F.col("table") == STATES.name).select(*STATES.names)
    before: tuple[Part, ...] = ()
    if touched is not None and run.manifest.histories is not None:
        before = run.manifest.histories.states
        rows = rows.unionByName(_others(run, run.parts(STATES, before), replayed))
    fresh = write_part(run.writer, rows.coalesce(1), HISTORIES)
    return (*without(run.writer, STATES, before, touched or ()), fresh)
