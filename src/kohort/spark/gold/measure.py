"""What a measure is: a table of gold, and the pure function that computes it."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import NamedTuple

from pyspark.sql import DataFrame

from kohort.spark.schemas import Table

Frames = Mapping[str, DataFrame]
"""Tables by name: all of bronze and silver, and the gold that was computed before."""


def kept(frame: DataFrame) -> DataFrame:
    """The same rows, computed now and once: of what stands at the root of several branches, Spark
    would plan and compute each branch from the first record on. The executors have them until
    nobody uses the frame any more; if one of them is lost before, the run fails and can be begun
    again.
    """
    return frame.localCheckpoint()


class Context(NamedTuple):
    """What a measure may know besides the tables. No measure looks at a clock."""

    as_of: datetime
    """The moment for which gold is computed, in UTC."""
    retention_ms: int | None = None
    """`offsets.retention.minutes` of the cluster, in milliseconds; None for unknown."""
    session_timeout_ms: int | None = None
    """The shortest session that a member of the consumer protocol has on the cluster: the least of
    `group.consumer.session.timeout.ms` and what groups set for themselves; None for unknown."""


class Measure(NamedTuple):
    """A table of gold. `compute` ends in `table.conform`, orders by log offset, never by time, and
    is right for any subset of the log's partitions, unless it is `whole`: a group lives in one.
    """

    table: Table
    compute: Callable[[Frames, Context], DataFrame]
    whole: bool = False
    """Computed anew over all partitions of the log in every run, since it depends on the moment, on
    tables that are not of the log, or on groups in other partitions. The others are computed where
    the log has new rows."""
