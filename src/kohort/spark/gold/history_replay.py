# SPDX-License-Identifier: Apache-2.0
"""The histories of all groups, in one grouped map.

Spark chooses the records, leaves out what no history needs, and folds the commits of each partition
between two records of its group. `kohort.history` then takes one record after the other. So Python
sees few rows however many commits there are, and none of groups that never had members.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import from_arrow_schema

from kohort.history import (
    RECORD_TYPES,
    AssignmentRow,
    History,
    HistoryInputs,
    MemberRow,
    Names,
    RebalanceRow,
    Row,
)
from kohort.history.backlog import SCALES_S, STEPS
from kohort.history.events import CLASSIC, ClassicMember
from kohort.history.logged import Line, Lines, by_member
from kohort.history.outages import SHORTEST_REST_US
from kohort.history.rows import null_first
from kohort.pipeline.columns.events import COMMITS, VALUES, events
from kohort.pipeline.schemas import DECODED, KINDS, TOMBSTONE, Column, Table
from kohort.pipeline.schemas.membership import ASSIGNMENTS, MEMBERS, REBALANCES
from kohort.pipeline.schemas.server_log import SERVER_LOG
from kohort.spark.engine.frames import empty, struct_of
from kohort.spark.gold.completeness import complete_from
from kohort.spark.gold.history import GROUP, so_far
from kohort.spark.gold.measure import Context, Frames
from kohort.spark.gold.names import topic_names

HISTORIES = "histories"
"""The name under which the frames have the result of `histories`, once it is known."""
TABLES: Mapping[type[Row], Table] = {
    MemberRow: MEMBERS,
    AssignmentRow: ASSIGNMENTS,
    RebalanceRow: REBALANCES,
}
STATES = Table(
    "states",
    "gold",
    "What is known of groups with members, from which their histories go on.",
    (
        Column("partition", pa.int32(), "partition of the log"),
        Column("group_id", pa.string(), "the group"),
        Column("state", pa.binary(), "see `kohort.history.state`"),
        Column("topics", pa.list_(pa.string()), "ids and names on which the history depends"),
    ),
)
"""The states of groups, in `replay` beside the rows of the tables."""
_ELSEWHERE = (*GROUP, "complete_from")
_ROWS = {
    table.name: pa.struct([field for field in table.arrow if field.name not in _ELSEWHERE])
    for table in TABLES.values()
}
_REPLAYED = pa.schema(
    [*STATES.arrow, ("table", pa.string()), ("is_open", pa.bool_()), *_ROWS.items()],
)
LINES = "lines"
"""The column with the lines of log files of brokers about a group."""
_NESTED = ("likely", "joined", "gone", "changed", "moves", "unowned", "unread")


class ReplayContext(NamedTuple):
    """What is known besides the log of a group: see `kohort.history.HistoryInputs`."""

    names: Mapping[str, str]
    """Topic id, as text -> name."""
    complete: Mapping[int, int | None]
    """Partition of the log -> offset from which on nothing is missing."""
    session_timeout_ms: int | None


def read_replay_context(frames: Frames, context: Context) -> ReplayContext:
    """What the tables know besides the log of a group."""
    names = topic_names(frames).toArrow().to_pylist()
    complete = complete_from(frames).toArrow().to_pylist()
    return ReplayContext(
        {row["topic_id"]: row["topic"] for row in names},
        {row["partition"]: row["complete_offset"] for row in complete},
        context.session_timeout_ms,
    )


def histories(frames: Frames, context: Context) -> DataFrame:
    """All histories from the begin of the log on, as `replay` gives them."""
    if HISTORIES in frames:
        return frames[HISTORIES]
    decoded = frames[DECODED.name]
    members = groups_with_members(decoded)
    lines = frames.get(SERVER_LOG.name)
    replay_context = read_replay_context(frames, context)
    return replay(events_of(decoded, members, replay_context.complete), None, replay_context, lines)


def replay(
    new_events: DataFrame,
    states: DataFrame | None,
    replay_context: ReplayContext,
    lines: DataFrame | None = None,
) -> DataFrame:
    """The histories of the groups that have events, from their states on, if they have any; `lines`
    are what log files of brokers tell of them.

    `table` says what a row is: one of a table, in a struct of that name, which may still change if
    it `is_open`; or the group's state behind these events, exactly one for each group.
    """
    groups = _beside(new_events, states, lines).groupBy(*GROUP)
    return groups.applyInArrow(_replayed(replay_context), from_arrow_schema(_REPLAYED))


def replay_in_driver(
    new_events: DataFrame,
    states: DataFrame | None,
    replay_context: ReplayContext,
    lines: DataFrame | None = None,
) -> pa.Table:
    """The same by this process. For few events, starting a worker costs more than the replay."""
    both = _beside(new_events, states, lines).toArrow().combine_chunks()
    of_group: dict[tuple[int, str], list[int]] = {}
    for index, group in enumerate(zip(*(both[name].to_pylist() for name in GROUP), strict=True)):
        of_group.setdefault(group, []).append(index)
    replayed = _replayed(replay_context)
    found = [replayed(both.take(indices)) for indices in of_group.values()]
    return pa.concat_tables([_REPLAYED.empty_table(), *found]).combine_chunks()


def as_frame(spark: SparkSession, replayed: pa.Table) -> DataFrame:
    """What `replay_in_driver` gives, as `replay` gives it."""
    return spark.createDataFrame(replayed, from_arrow_schema(_REPLAYED))


def _beside(new_events: DataFrame, states: DataFrame | None, lines: DataFrame | None) -> DataFrame:
    """Events, the states before them, and what log files tell of the same groups."""
    if states is None:
        states = empty(new_events.sparkSession, struct_of(STATES))
    both = new_events.unionByName(states, allowMissingColumns=True)
    if lines is None:
        return both
    return both.unionByName(_lines_of(both, lines), allowMissingColumns=True)


def rows_of(frames: Frames, context: Context, table: Table) -> DataFrame:
    """The rows of one of the tables."""
    return of_table(histories(frames, context), table)


def of_table(replayed: DataFrame, table: Table) -> DataFrame:
    """The rows of one of the tables, out of what `replay` gives."""
    return replayed.where(F.col("table") == table.name).select(*GROUP, f"{table.name}.*")


def _replayed(replay_context: ReplayContext) -> Callable[[pa.Table], pa.Table]:
    names = Names(replay_context.names)

    def replayed(rows: pa.Table) -> pa.Table:
        partition, group_id = (rows[name][0].as_py() for name in GROUP)
        (before,) = rows.filter(pc.is_valid(rows["state"])).select(
            ["state", "topics"]
        ).to_pylist() or [{"state": None, "topics": []}]
        inputs = HistoryInputs(
            names.anew(),
            replay_context.session_timeout_ms,
            replay_context.complete.get(partition),
            _lines_in(rows),
        )
        history = History(inputs, before["state"])
        history.feed(events(rows))
        found = as_table(partition, group_id, history.closed, list(history.open_rows()))
        topics = sorted(inputs.names.asked | {*before["topics"]})
        return pa.concat_tables([found, _state(partition, group_id, history.state(), topics)])

    return replayed


def _lines_of(rows: DataFrame, lines: DataFrame) -> DataFrame:
    """A row for each group that has lines, with all of them."""
    said = F.struct(*(F.col(name) for name in Line._fields))
    of_groups = lines.groupBy("group_id").agg(F.collect_list(said).alias(LINES))
    return rows.select(*GROUP).distinct().join(F.broadcast(of_groups), "group_id")


def _lines_in(rows: pa.Table) -> Lines:
    if LINES not in rows.column_names:
        return {}
    found = rows[LINES].filter(pc.is_valid(rows[LINES])).to_pylist()
    return by_member(sorted((Line(**line) for lines in found for line in lines), key=null_first))


def as_table(
    partition: int, group_id: str, closed: Sequence[Row], still_open: Sequence[Row] = ()
) -> pa.Table:
    """The rows of a group's history, as `replay` gives them."""
    rows = [*closed, *still_open]
    tables = [TABLES[type(row)].name for row in rows]
    columns: dict[str, pa.Array] = {
        "partition": pa.array([partition] * len(rows), pa.int32()),
        "group_id": pa.array([group_id] * len(rows), pa.string()),
        "table": pa.array(tables, pa.string()),
        "is_open": pa.array([False] * len(closed) + [True] * len(still_open), pa.bool_()),
    }
    for name, kind in _ROWS.items():
        structs = [
            _as_dict(row) if table == name else None
            for row, table in zip(rows, tables, strict=True)
        ]
        columns[name] = pa.array(structs, kind)
    return _with_nulls(columns, len(rows))


def _state(partition: int, group_id: str, state: bytes, topics: list[str]) -> pa.Table:
    values = {"partition": partition, "group_id": group_id, "state": state, "topics": topics}
    columns = {field.name: pa.array([values[field.name]], field.type) for field in STATES.arrow}
    return _with_nulls({**columns, "table": pa.array([STATES.name])}, 1)


def _with_nulls(columns: Mapping[str, pa.Array], rows: int) -> pa.Table:
    """The other columns are null."""
    arrays = [
        columns[field.name] if field.name in columns else pa.nulls(rows, field.type)
        for field in _REPLAYED
    ]
    return pa.Table.from_arrays(arrays, schema=_REPLAYED)


def _as_dict(row: Row) -> dict[str, object]:
    fields = msgspec.structs.asdict(row)
    if isinstance(row, RebalanceRow):
        for name in _NESTED:
            fields[name] = [entry._asdict() for entry in fields[name]]
        fields["computed"] = None if row.computed is None else row.computed._asdict()
    return fields


def groups_with_members(decoded: DataFrame) -> DataFrame:
    """The groups that have records about members."""
    return decoded.where(_is_record()).select(*GROUP).distinct()


def events_of(
    decoded: DataFrame, members: DataFrame, complete: Mapping[int, int | None]
) -> DataFrame:
    """Records about members, and the commits of the groups `members`, folded. The log may be
    complete from some point on: commits before it and behind it are folded by themselves.
    """
    records = _records(decoded)
    commits = decoded.where(F.col("kind").isin(*COMMITS))
    return records.unionByName(
        _folded(commits.join(F.broadcast(members), [*GROUP], "left_semi"), records, complete),
        allowMissingColumns=True,
    )


def _is_record() -> Expression:
    kinds = (TOMBSTONE, *(KINDS[number] for number in RECORD_TYPES))
    return F.col("kind").isin(*kinds) & F.col("type").isin(*RECORD_TYPES)


def _records(decoded: DataFrame) -> DataFrame:
    kind = F.col("kind")
    values = [
        F.when(kind == KINDS[number], F.struct(*_fields(number))).alias(KINDS[number])
        for number in VALUES
    ]
    return decoded.where(_is_record()).select(
        *GROUP,
        "offset",
        "timestamp",
        "kind",
        F.col("type").cast("int").alias("type"),
        "partition_leader_epoch",
        "headers",
        "member_id",
        "regular_expression",
        *values,
    )


def _fields(number: int) -> list[Expression]:
    value = F.col(KINDS[number])
    found = [value[name].alias(name) for name in VALUES[number].__struct_fields__]
    if number == CLASSIC:  # without the bytes of subscriptions and assignments
        members = F.transform(
            value["members"],
            lambda member: F.struct(
                *(member[name].alias(name) for name in ClassicMember.__struct_fields__)
            ),
        )
        found[-1] = members.alias("members")
    return found


def _is_complete(complete: Mapping[int, int | None]) -> Expression:
    """Whether nothing is missing behind a record."""
    known = ((partition, offset) for partition, offset in complete.items() if offset is not None)
    holds = (
        (F.col("partition") == partition) & (F.col("offset") >= offset)
        for partition, offset in known
        if offset
    )
    return reduce(Expression.__or__, holds, F.lit(col=False))


def _rest() -> Expression:
    """The time before a row, if nothing was written about its group for so long."""
    lasted = F.unix_micros("timestamp") - F.unix_micros("before")
    rest = F.struct(F.col("before").alias("since"), F.col("timestamp").alias("until"))
    return F.when(lasted > SHORTEST_REST_US, rest)


def _section() -> Expression:
    """`kohort.history.backlog.section` of a commit, among those between two records, as Spark
    computes it. Tests hold it against that one.
    """
    together = Window.partitionBy(*GROUP, "interval", "topic", "topic_partition")
    at, first_at = F.unix_seconds("timestamp"), F.unix_seconds(F.min("timestamp").over(together))
    passed = (
        F.shiftright(at, power) - F.shiftright(first_at, power) for power in range(len(SCALES_S))
    )
    return reduce(Expression.__add__, (F.least(steps, F.lit(STEPS)) for steps in passed))


def _folded(
    commits: DataFrame, records: DataFrame, complete: Mapping[int, int | None]
) -> DataFrame:
    """The commits of a partition between two records of its group as a row for each section."""
    columns = (
        "topic",
        "topic_partition",
        "committed_offset",
        "producer_id",
        "partition_leader_epoch",
    )
    marks = records.select(*GROUP, "offset", "timestamp", F.lit(True).alias("is_mark"))
    earlier = so_far().rowsBetween(Window.unboundedPreceding, -1)
    before = F.max("timestamp").over(earlier)
    interval = F.count("is_mark").over(so_far())
    numbered = (
        commits.select(*GROUP, "offset", "timestamp", *columns)
        .unionByName(marks, allowMissingColumns=True)
        .withColumn("interval", interval)
        .withColumn("before", before)
        .withColumn("rest", F.last(_rest(), ignorenulls=True).over(so_far()))
        .where(F.col("is_mark").isNull())
        .withColumn("plain", F.col("producer_id") == -1)
        .withColumn("is_complete", _is_complete(complete))
        .withColumn("section", _section())
    )
    return (
        numbered.groupBy(
            *(*GROUP, "interval", "topic", "topic_partition", "plain", "is_complete", "section"),
            "partition_leader_epoch",  # a change of it tells that the coordinator was away
        )
        .agg(
            F.min_by("committed_offset", "offset").alias("first_committed"),
            F.max_by("committed_offset", "offset").alias("committed_offset"),
            F.min("timestamp").alias("first_at"),
            F.max("timestamp").alias("timestamp"),
            F.min("offset").alias("offset"),
            F.count("*").alias("count"),
            F.max_by("rest.since", "offset").alias("rest_since"),
            F.max_by("rest.until", "offset").alias("rest_until"),
        )
        .drop("interval", "is_complete", "section")
        .withColumns({"kind": F.lit(COMMITS[1]), "type": F.lit(1)})
    )
