# SPDX-License-Identifier: Apache-2.0
"""Who was in which group, who owned what, and what each rebalance was about and cost: the rows of
the groups' histories as tables.
"""

from pyspark.sql import DataFrame

from kohort.pipeline.schemas import Table
from kohort.pipeline.schemas.membership import ASSIGNMENTS, MEMBERS, REBALANCES
from kohort.spark.engine.frames import conform
from kohort.spark.gold.completeness import mark
from kohort.spark.gold.history_replay import rows_of
from kohort.spark.gold.measure import Context, Frames


def members(frames: Frames, context: Context) -> DataFrame:
    """The table `members`."""
    return _table(frames, context, MEMBERS)


def assignments(frames: Frames, context: Context) -> DataFrame:
    """The table `assignments`."""
    return _table(frames, context, ASSIGNMENTS)


def rebalances(frames: Frames, context: Context) -> DataFrame:
    """The table `rebalances`."""
    return _table(frames, context, REBALANCES)


def _table(frames: Frames, context: Context, table: Table) -> DataFrame:
    rows = rows_of(frames, context, table)
    conformed: DataFrame = conform(table, mark(rows, frames))
    return conformed
