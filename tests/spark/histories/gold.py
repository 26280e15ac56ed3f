# SPDX-License-Identifier: Apache-2.0
"""All measures over the rows of histories, once, as plain rows."""

from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from tests.spark.histories import membership, progress
from tests.spark.histories.membership import SESSION_MS
from tests.spark.histories.truth import Truth

from kohort.spark.gold import MEASURES, Context
from kohort.spark.tables.silver import views

RETENTION = timedelta(days=7)  # what both brokers have by default
LATER = timedelta(days=8)
"""`rebalances_told` are `rebalances` by somebody who was told how long sessions are.
`deletable_later` is `deletable_groups` as of so much later: everybody is idle by then."""

Gold = dict[str, list[dict[str, Any]]]

CHECKS = {
    "group_state": membership.group_state,
    "members": membership.members,
    "assignments": membership.assignments,
    "rebalances": membership.rebalances,
    "rebalances_told": membership.rebalances_told,
    "commits": progress.commits,
    "offsets": progress.offsets,
    "commit_rates": progress.commit_rates,
    "lag": progress.lag,
    "status": progress.status,
    "deletable_groups": progress.deletable_groups,
    "deletable_later": progress.deletable_later,
}
"""Table -> what is wrong with it, a sentence each."""


def compute(spark: SparkSession, rows: pa.Table, end_offsets: pa.Table, as_of: datetime) -> Gold:
    """Every table of gold, each made from those before it as they were kept, as a job does."""
    decoded = spark.createDataFrame(rows).cache()
    frames = dict(views(decoded))
    frames["end_offsets"] = spark.createDataFrame(end_offsets)
    retention_ms = int(RETENTION.total_seconds() * 1000)
    gold: Gold = {}
    for measure in MEASURES:
        name = measure.table.name
        kept = measure.compute(frames, Context(as_of, retention_ms)).toArrow()
        gold[name] = kept.to_pylist()
        if name == "rebalances":
            told = Context(as_of, retention_ms, SESSION_MS)
            gold["rebalances_told"] = measure.compute(frames, told).toArrow().to_pylist()
        if name == "deletable_groups":
            later = Context(as_of + LATER, retention_ms)
            gold["deletable_later"] = measure.compute(frames, later).toArrow().to_pylist()
        frames[name] = spark.createDataFrame(kept)
    decoded.unpersist()
    return gold


def part(gold: Gold, partitions: range) -> Gold:
    """What is about these partitions of the log."""
    return {
        name: [row for row in rows if row["partition"] in partitions] for name, rows in gold.items()
    }


def problems(table: str, truth: Truth, gold: Gold) -> list[str]:
    return list(CHECKS[table](truth, gold))
