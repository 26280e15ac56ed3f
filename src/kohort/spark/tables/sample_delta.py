# SPDX-License-Identifier: Apache-2.0
"""Which moments of lag the new samples of the ends of topics are about. Needs no Spark.

A sample tells about the time since the one before it, since it shows whether the end has moved.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kohort.pipeline.format.manifest import Manifest, Part, ProgressState
from kohort.pipeline.rollup.batch_fold import folded
from kohort.pipeline.schemas import END_OFFSETS
from kohort.pipeline.stores import parquet
from kohort.pipeline.stores.places import Folder
from kohort.spark.gold.ends import NOT_DOWNSAMPLED_BELOW, PLACE
from kohort.spark.gold.lag import Times

_EVER = np.iinfo(np.int64).min
_NEVER = np.iinfo(np.int64).max
_AT = pa.schema([("at", pa.int64())])
_SPAN = pa.schema(
    [
        *(END_OFFSETS.arrow.field(name) for name in PLACE),
        *((name, pa.int64()) for name in ("at_min", "at_max", "of_log")),
    ]
)


class SampleDelta(NamedTuple):
    """The times of samples, in microseconds."""

    times: Times
    """All times of samples, each once."""
    since_us: int
    """The new samples say nothing new about moments before this one."""


def find_sample_delta(
    directory: Folder, manifest: Manifest, before: ProgressState | None
) -> SampleDelta:
    """What is new in the samples of `manifest`, compared with those that `before` knew."""
    there = {part.path for part in manifest.end_offsets}
    known = set() if before is None else {*before.samples}
    old = [part for part in manifest.end_offsets if part.path in known]
    new = [part for part in manifest.end_offsets if part.path not in known]
    every = folded(_read(directory, [*old, *new], ["at"]), _AT, _each_once)
    times = every["at"].to_numpy()
    if before is None or not known <= there:
        return SampleDelta(times, _EVER)
    return SampleDelta(
        times, _since(_partition_spans(directory, old), _partition_spans(directory, new))
    )


def _read(directory: Folder, parts: list[Part], names: list[str]) -> Iterator[pa.RecordBatch]:
    for part in parts:
        samples = parquet.folder_dataset(directory / part.path, END_OFFSETS.arrow)
        for batch in samples.to_batches(columns=["sampled_at", *PLACE, "origin", "samples"]):
            at = batch.column("sampled_at").cast(pa.int64())
            of_log = pc.if_else(
                pc.equal(batch.column("origin"), "log"), pc.fill_null(batch.column("samples"), 1), 0
            )
            columns = [at, at, *(batch.column(name) for name in PLACE), at, of_log]
            rows = pa.record_batch(columns, names=["at", "at_min", *PLACE, "at_max", "of_log"])
            yield rows.select(names)


def _each_once(rows: pa.Table) -> pa.Table:
    return rows.group_by("at").aggregate([])


def _partition_spans(directory: Folder, parts: list[Part]) -> list[dict[str, Any]]:
    """For each partition its first and last sample, and how many of them come from its folder."""
    found: list[dict[str, Any]]
    found = folded(_read(directory, parts, _SPAN.names), _SPAN, _spans).to_pylist()
    return found


def _spans(rows: pa.Table) -> pa.Table:
    aggregates = [("at_min", "min"), ("at_max", "max"), ("of_log", "sum")]
    found = rows.group_by(PLACE).aggregate(aggregates)
    names = [name if name in PLACE else f"{name}_{dict(aggregates)[name]}" for name in _SPAN.names]
    return pa.table([found[name] for name in names], schema=_SPAN)


def _since(old: list[dict[str, Any]], new: list[dict[str, Any]]) -> int:
    before = {(row["topic"], row["topic_partition"]): row for row in old}
    since = _NEVER
    for row in new:
        known = before.get((row["topic"], row["topic_partition"]))
        if known is None:
            since = min(since, row["at_min"])
            continue
        count = known["of_log"]
        if (
            row["at_min"] <= known["at_max"]
            or count < NOT_DOWNSAMPLED_BELOW <= count + row["of_log"]
        ):
            return _EVER
        since = min(since, known["at_max"])
    return since
