# SPDX-License-Identifier: Apache-2.0
"""Made-up rows for tests of what groups commit: a record, an offset or a sample in a few words."""

from datetime import UTC, datetime, timedelta

import pyarrow as pa

from kohort.pipeline.schemas import END_OFFSETS
from kohort.pipeline.schemas.progress import COMMITS

BEGIN = datetime(2026, 11, 21, tzinfo=UTC)


def at(seconds):
    """So many seconds after the begin."""
    return BEGIN + timedelta(seconds=seconds)


def seconds(moment):
    """The way back; moments of Spark have no zone, and are in UTC here."""
    return None if moment is None else (moment.replace(tzinfo=UTC) - BEGIN).total_seconds()


def frame(spark, table, rows):
    """Rows as dicts with any of the table's columns; the others are null."""
    return spark.createDataFrame(pa.Table.from_pylist(rows, table.arrow))


def commit(group_id, committed_offset, second, **more):
    """A row of `commits` that took effect at once; `offset` is the second unless it is given."""
    return {
        "partition": 0,
        "offset": int(second),
        "timestamp": at(second),
        "group_id": group_id,
        "topic": "t",
        "topic_partition": 0,
        "state": "committed" if committed_offset is not None else "removed",
        "effective_at": at(second),
        "effective_offset": int(second),
        "committed_offset": committed_offset,
        "commit_timestamp": at(second),
    } | more


def commits_frame(spark, rows):
    return frame(spark, COMMITS, rows)


def sample(second, end_offset, **more):
    """A row of `end_offsets`."""
    return {
        "sampled_at": at(second),
        "topic": "t",
        "topic_partition": 0,
        "log_start_offset": 0,
        "end_offset": end_offset,
        "origin": "cluster",
    } | more


def samples_frame(spark, rows):
    return frame(spark, END_OFFSETS, rows)
