"""The histories of all groups, in one grouped map: what Spark does best is done by Spark, and what
is told one record after the other by `kohort.history`.

Spark chooses the records, leaves out of them what no history needs, and folds the commits of each
partition between two records of its group. So Python sees few rows however many commits there are,
and none of groups that never had members.
"""

from collections.abc import Callable, Mapping

import msgspec
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import from_arrow_schema

from kohort.history import (
    RECORD_TYPES,
    AssignmentRow,
    History,
    MemberRow,
    Names,
    RebalanceRow,
    Row,
    Told,
)
from kohort.history.events import CLASSIC, ClassicMember
from kohort.spark.columns.events import COMMITS, VALUES, events
from kohort.spark.gold.completeness import complete_from
from kohort.spark.gold.history import GROUP, so_far
from kohort.spark.gold.measure import Context, Frames, kept
from kohort.spark.gold.names import topic_names
from kohort.spark.schemas import DECODED, KINDS, TOMBSTONE, Table
from kohort.spark.schemas.membership import ASSIGNMENTS, MEMBERS, REBALANCES

HISTORIES = "histories"
"""The name under which the frames have the result of `histories`, once it is known."""
_TABLES: Mapping[type[Row], Table] = {
    MemberRow: MEMBERS,
    AssignmentRow: ASSIGNMENTS,
    RebalanceRow: REBALANCES,
}
_ELSEWHERE = (*GROUP, "complete_from")
_ROWS = {
    table.name: pa.struct([one for one in table.arrow if one.name not in _ELSEWHERE])
    for table in _TABLES.values()
}
_REPLAYED = pa.schema(
    [("partition", pa.int32()), ("group_id", pa.string()), ("table", pa.string()), *_ROWS.items()]
)
_NESTED = ("likely", "joined", "gone", "changed", "moves", "unowned", "unread")


def with_histories(frames: Frames, context: Context) -> Frames:
    """The frames with what several tables need of the histories: they are replayed once."""
    return {**frames, HISTORIES: kept(histories(frames, context))}


def histories(frames: Frames, context: Context) -> DataFrame:
    """partition, group_id, table, and a struct with the row for each of the tables: all but the
    one that `table` names are null.
    """
    if HISTORIES in frames:
        return frames[HISTORIES]
    names = topic_names(frames).toArrow().to_pylist()
    complete = complete_from(frames).toArrow().to_pylist()
    replayed = _replayed(
        {row["topic_id"]: row["topic"] for row in names},
        {row["partition"]: row["complete_offset"] for row in complete},
        context.session_timeout_ms,
    )
    grouped = _events(frames).groupBy(*GROUP)
    return grouped.applyInArrow(replayed, from_arrow_schema(_REPLAYED))


def rows_of(frames: Frames, context: Context, table: Table) -> DataFrame:
    """The rows of one of the tables."""
    found = histories(frames, context).where(F.col("table") == table.name)
    return found.select(*GROUP, f"{table.name}.*")


def _replayed(
    names: Mapping[str, str],
    complete: Mapping[int, int | None],
    session_timeout_ms: int | None,
) -> Callable[[pa.Table], pa.Table]:
    def replayed(rows: pa.Table) -> pa.Table:
        partition, group_id = (rows[name][0].as_py() for name in GROUP)
        told = Told(Names(names), session_timeout_ms, complete.get(partition))
        history = History(told)
        history.feed(events(rows))
        return as_table(partition, group_id, [*history.closed, *history.open_rows()])

    return replayed


def as_table(partition: int, group_id: str, rows: list[Row]) -> pa.Table:
    """The rows of a group's history, as `histories` has them."""
    tables = [_TABLES[type(row)].name for row in rows]
    columns: list[pa.Array] = [
        pa.array([partition] * len(rows), pa.int32()),
        pa.array([group_id] * len(rows), pa.string()),
        pa.array(tables, pa.string()),
    ]
    for name, kind in _ROWS.items():
        told = [
            _as_dict(row) if table == name else None
            for row, table in zip(rows, tables, strict=True)
        ]
        columns.append(pa.array(told, kind))
    return pa.Table.from_arrays(columns, schema=_REPLAYED)


def _as_dict(row: Row) -> dict[str, object]:
    told = msgspec.structs.asdict(row)
    if isinstance(row, RebalanceRow):
        for name in _NESTED:
            told[name] = [one._asdict() for one in told[name]]
    return told


def _events(frames: Frames) -> DataFrame:
    """Records about members, and commits of their groups, folded."""
    records = _records(frames[DECODED.name])
    commits = frames[DECODED.name].where(F.col("kind").isin(*COMMITS))
    with_members = F.broadcast(records.select(*GROUP).distinct())
    return records.unionByName(
        _folded(commits.join(with_members, [*GROUP], "left_semi"), records),
        allowMissingColumns=True,
    )


def _records(decoded: DataFrame) -> DataFrame:
    kind = F.col("kind")
    values = [
        F.when(kind == KINDS[number], F.struct(*_fields(number))).alias(KINDS[number])
        for number in VALUES
    ]
    return (
        decoded.where(kind.isin(TOMBSTONE, *(KINDS[number] for number in RECORD_TYPES)))
        .where(F.col("type").isin(*RECORD_TYPES))
        .select(
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
    )


def _fields(number: int) -> list[Column]:
    value = F.col(KINDS[number])
    found = [value[name].alias(name) for name in VALUES[number].__struct_fields__]
    if number == CLASSIC:  # without the bytes of subscriptions and assignments
        members = F.transform(
            value["members"],
            lambda one: F.struct(
                *(one[name].alias(name) for name in ClassicMember.__struct_fields__)
            ),
        )
        found[-1] = members.alias("members")
    return found


def _folded(commits: DataFrame, records: DataFrame) -> DataFrame:
    """The commits of a partition between two records of its group as one row."""
    what = ("topic", "topic_partition", "committed_offset", "producer_id", "partition_leader_epoch")
    marks = records.select(*GROUP, "offset", F.lit(True).alias("is_mark"))
    interval = F.count("is_mark").over(so_far())
    numbered = (
        commits.select(*GROUP, "offset", "timestamp", *what)
        .unionByName(marks, allowMissingColumns=True)
        .withColumn("interval", interval)
        .where(F.col("is_mark").isNull())
        .withColumn("plain", F.col("producer_id") == -1)
    )
    return (
        numbered.groupBy(*GROUP, "interval", "topic", "topic_partition", "plain")
        .agg(
            F.min_by("committed_offset", "offset").alias("first_committed"),
            F.max_by("committed_offset", "offset").alias("committed_offset"),
            F.min("timestamp").alias("first_at"),
            F.max("timestamp").alias("timestamp"),
            F.max("offset").alias("offset"),
            F.max("partition_leader_epoch").alias("partition_leader_epoch"),
            F.count("*").alias("count"),
        )
        .drop("interval")
        .withColumns({"kind": F.lit(COMMITS[1]), "type": F.lit(1)})
    )
