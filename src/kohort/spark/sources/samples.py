"""What is known already of where partitions end, so that their logs are not walked again."""

from collections.abc import Mapping
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

_PLACE = ["topic", "topic_partition"]


class Sample(NamedTuple):
    """The end of a partition at a time, in milliseconds since 1970."""

    at_ms: int
    end_offset: int


class Seen(NamedTuple):
    """The last sample of an earlier walk, and the topic that it is of; None for unknown."""

    topic_id: str | None
    last: Sample


Since = Mapping[tuple[str, int], Seen]
"""Topic and partition -> where the next walk goes on."""
NOTHING: Since = {}


def newest(samples: pa.Table) -> pa.Table:
    """The rows that `last_seen` needs: of each partition the last, and the last with an id."""
    numbered = samples.append_column("has_id", samples["topic_id"].is_valid())
    in_order = numbered.sort_by([("sampled_at", "ascending"), ("end_offset", "ascending")])
    others = [name for name in samples.schema.names if name not in _PLACE]
    found = in_order.group_by([*_PLACE, "has_id"], use_threads=False).aggregate(
        [(name, "last") for name in others]
    )
    columns = [found[name if name in _PLACE else f"{name}_last"] for name in samples.schema.names]
    return pa.table(columns, schema=samples.schema)


def last_seen(samples: pa.Table) -> Since:
    """Where the next walk goes on, out of END_OFFSETS rows: only those with origin `log` count."""
    walked = samples.filter(pc.field("origin") == "log")
    in_order = walked.sort_by([("sampled_at", "ascending"), ("end_offset", "ascending")])
    columns = ("topic_id", "sampled_at", "end_offset")
    newest = in_order.group_by(_PLACE, use_threads=False).aggregate(
        [(name, "last") for name in columns]
    )
    times = newest.column("sampled_at_last").cast(pa.int64()).to_pylist()
    others = (
        newest.column(name).to_pylist() for name in (*_PLACE, "topic_id_last", "end_offset_last")
    )
    return {
        (topic, partition): Seen(topic_id, Sample(at_us // 1000, end_offset))
        for topic, partition, topic_id, end_offset, at_us in zip(*others, times, strict=True)
    }
