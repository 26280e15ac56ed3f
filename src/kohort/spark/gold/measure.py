# SPDX-License-Identifier: Apache-2.0
"""What a measure is: a table of gold, and the pure function that computes it."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import NamedTuple

from pyspark import StorageLevel
from pyspark.sql import DataFrame

from kohort.pipeline.schemas import Table
from kohort.spark.engine.session import is_local

Frames = Mapping[str, DataFrame]
"""Tables by name: all of bronze and silver, and the gold that was computed before."""


def checkpoint(frame: DataFrame) -> DataFrame:
    """The same rows, computed now and once. Where several branches have a common root, Spark would
    plan and compute each branch from the first record on. The executors keep the rows until nobody
    uses the frame any more.

    Nothing tells Spark how to compute them again, so each row is kept by two executors: one may be
    lost. If two are, the run fails and can be begun again. They are on disks: in memory, histories
    of ten thousand groups leave the driver no room for anything else.
    """
    alone = is_local(frame.sparkSession.conf.get("spark.master", "") or "")
    level = StorageLevel.DISK_ONLY if alone else StorageLevel.DISK_ONLY_2
    return frame.localCheckpoint(storageLevel=level)


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
    """A table of gold. `compute` ends in `frames.conform`, and orders by log offset, never by time.
    It is right for any subset of the log's partitions, since a group lives in one, unless it is
    `whole`.
    """

    table: Table
    compute: Callable[[Frames, Context], DataFrame]
    whole: bool = False
    """Recomputed over all partitions of the log in every run: it depends on the moment, on
    tables that are not of the log, or on groups in other partitions. The other measures are
    computed where the log has new rows.
    """
