"""Which moments of lag what is new of the ends of topics is about. Needs no Spark.

A sample tells of the time behind the one before it, since it shows whether the end has moved.
"""

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kohort.spark.gold.ends import PLACE, UNTHINNED
from kohort.spark.gold.lag import Times
from kohort.spark.stores import parquet
from kohort.spark.stores.places import Folder
from kohort.spark.tables.manifest import Manifest, Part, Progress

_EVER = np.iinfo(np.int64).min
_NEVER = np.iinfo(np.int64).max


class SampleNews(NamedTuple):
    """In microseconds."""

    times: Times
    """All times of samples, each once."""
    since_us: int
    """Of moments before this one the new samples tell nothing new."""


def sample_news(directory: Folder, manifest: Manifest, before: Progress | None) -> SampleNews:
    """Of the samples of `manifest`, beside those that `before` knew."""
    there = {one.path for one in manifest.end_offsets}
    known = set() if before is None else {*before.samples}
    old = _read(directory, [one for one in manifest.end_offsets if one.path in known])
    new = _read(directory, [one for one in manifest.end_offsets if one.path not in known])
    times = pc.unique(pa.concat_tables([old, new])["at"]).to_numpy()
    if before is None or not known <= there:
        return SampleNews(times, _EVER)
    return SampleNews(times, _since(old, new) if new.num_rows else _NEVER)


def _read(directory: Folder, parts: list[Part]) -> pa.Table:
    tables = [
        parquet.read(directory / part.path, columns=["sampled_at", *PLACE, "origin"])
        for part in parts
    ]
    of_log = pc.equal(pa.array([], pa.string()), "log")
    schema = {"at": pa.int64(), "topic": pa.string(), "topic_partition": pa.int32()}
    empty = pa.table({name: pa.array([], kind) for name, kind in schema.items()})
    found = [empty.append_column("of_log", of_log.cast(pa.int64()))]
    for table in tables:
        at = table["sampled_at"].cast(pa.timestamp("us", "UTC")).cast(pa.int64())
        counted = pc.equal(table["origin"], "log").cast(pa.int64())
        columns = [at, table["topic"].cast(pa.string()), table["topic_partition"], counted]
        found.append(pa.table(columns, names=[*schema, "of_log"]))
    return pa.concat_tables(found)


def _since(old: pa.Table, new: pa.Table) -> int:
    told = [("at", "min"), ("at", "max"), ("of_log", "sum")]
    before = {
        (row["topic"], row["topic_partition"]): row
        for row in old.group_by(PLACE).aggregate(told).to_pylist()
    }
    since = _NEVER
    for row in new.group_by(PLACE).aggregate(told).to_pylist():
        known = before.get((row["topic"], row["topic_partition"]))
        if known is None:
            since = min(since, row["at_min"])
            continue
        count = known["of_log_sum"]
        if row["at_min"] <= known["at_max"] or count < UNTHINNED <= count + row["of_log_sum"]:
            return _EVER
        since = min(since, known["at_max"])
    return since
