# SPDX-License-Identifier: Apache-2.0
"""How the history of lag is downsampled with age: a row comes to stand for several moments.

For a day or two a row is of one moment. Then it is of five minutes, and after another week of an
hour. A row that stands for several moments keeps the least and the most of them all, so no spike is
lost. Rows become the same in whatever order and pieces they are merged.
"""

import pyarrow as pa
import pyarrow.compute as pc

from kohort.pipeline.schemas import LAG_HISTORY
from kohort.pipeline.schemas.rollup_tiers import ONE_MOMENT

KEY = ["partition", "group_id", "level", "topic", "topic_partition"]
ORDER = [
    (name, "ascending")
    for name in ("level", "group_id", "topic", "topic_partition", "partition", "at")
]
_LAST = (
    "committed_offset",
    "end_offset",
    "end_sampled_at",
    "lag_records",
    "records_lost",
    "lag_seconds",
    "lag_seconds_error",
    "partitions",
)
_LEAST = ("first_at", "lag_records_min", "lag_seconds_min")
_MOST = ("at", "lag_records_max", "lag_seconds_max", "partitions_unknown")
_SUMS = ("moments", "moments_unknown", "moments_timeless")


def of_moments(lag: pa.Table) -> pa.Table:
    """Rows of `lag` as rows of `lag_history`, each of one moment."""
    records, seconds = lag["lag_records"], lag["lag_seconds"]
    extremes = {
        **dict.fromkeys(("lag_records_min", "lag_records_max"), records),
        **dict.fromkeys(("lag_seconds_min", "lag_seconds_max"), seconds),
        "first_at": lag["at"],
        "moments": pa.repeat(1, lag.num_rows),
        "moments_unknown": pc.is_null(records).cast(pa.int32()),
        "moments_timeless": pc.is_null(seconds).cast(pa.int32()),
    }
    columns = [extremes[name] if name in extremes else lag[name] for name in LAG_HISTORY.names]
    return pa.table(columns, names=LAG_HISTORY.names).cast(LAG_HISTORY.arrow)


def downsample(rows: pa.Table, step_us: int) -> pa.Table:
    """Rows of `lag_history`, one for each key and step; rows of one moment stay so with ONE_MOMENT.
    No moment may be in two of the rows of a key.
    """
    ordered = rows.sort_by(ORDER)
    if step_us == ONE_MOMENT:
        return ordered
    steps = ordered["at"].cast(pa.int64()).to_numpy() // step_us
    last = pc.ScalarAggregateOptions(skip_nulls=False)
    aggregates = [
        *((name, "last", last) for name in _LAST),
        ("reason", "last"),
        *((name, "min") for name in _LEAST),
        *((name, "max") for name in _MOST),
        *((name, "sum") for name in _SUMS),
    ]
    merged = (
        ordered.append_column("step", pa.array(steps))
        .group_by([*KEY, "step"], use_threads=False)  # else nobody knows which is the last
        .aggregate(aggregates)
    )
    names = {name: name for name in KEY} | {name: f"{name}_{how}" for name, how, *_ in aggregates}
    columns = [merged[names[name]] for name in LAG_HISTORY.names]
    return pa.table(columns, names=LAG_HISTORY.names).cast(LAG_HISTORY.arrow).sort_by(ORDER)
