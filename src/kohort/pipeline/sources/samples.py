# SPDX-License-Identifier: Apache-2.0
"""What is known already of where partitions end, so that their logs are not walked again."""

from collections.abc import Mapping
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

_LOG = ["topic", "topic_partition", "topic_id"]


class Sample(NamedTuple):
    """The end of a partition at a time, in milliseconds since 1970."""

    at_ms: int
    end_offset: int


Since = Mapping[tuple[str, int, str | None], Sample]
"""Topic, partition and id of the topic, None for unknown -> where the next walk goes on: the last
sample of an earlier one. A topic that was recreated may have older times than the one before it.
"""
NOTHING: Since = {}


def newest(samples: pa.Table) -> pa.Table:
    """The rows that `last_seen` needs: the last of each log."""
    in_order = samples.sort_by([("sampled_at", "ascending"), ("end_offset", "ascending")])
    others = [name for name in samples.schema.names if name not in _LOG]
    found = in_order.group_by(_LOG, use_threads=False).aggregate(
        [(name, "last") for name in others]
    )
    columns = [found[name if name in _LOG else f"{name}_last"] for name in samples.schema.names]
    return pa.table(columns, schema=samples.schema)


def last_seen(samples: pa.Table) -> Since:
    """Where the next walk goes on, out of END_OFFSETS rows: only those with origin `log` count."""
    found = newest(samples.filter(pc.field("origin") == "log"))
    times = found["sampled_at"].cast(pa.int64()).to_pylist()
    others = (found[name].to_pylist() for name in (*_LOG, "end_offset"))
    return {
        (topic, partition, topic_id): Sample(at_us // 1000, end_offset)
        for topic, partition, topic_id, end_offset, at_us in zip(*others, times, strict=True)
    }
