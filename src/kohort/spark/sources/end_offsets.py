# SPDX-License-Identifier: Apache-2.0
"""Samples of where the partitions of user topics end, as frames of Spark (see `sampling`)."""

from collections.abc import Iterator
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from kohort.pipeline.schemas import END_OFFSETS
from kohort.pipeline.sources.samples import NOTHING, Since
from kohort.pipeline.sources.sampling import is_short, sample, sample_cluster, sample_folders
from kohort.pipeline.sources.user_topics import folders
from kohort.security.settings import NO_SECURITY, Security
from kohort.spark.engine import small_runs
from kohort.spark.engine.frames import struct_of
from kohort.spark.sources.source import Ends

_TASKS = 64


def from_folders(
    spark: SparkSession, directory: str, since: Since = NOTHING, planned_ms: int | None = None
) -> DataFrame | pa.Table | None:
    """END_OFFSETS rows of all user topics that lie beside the group log; None where none do.

    The folders are listed here. The executors walk them, one task a partition, each time that the
    frame is used. Where there is little to walk it is done here, and the rows are a table. See
    `sample` for what is in the rows. Offsets before `since` are not walked again.
    """
    found = folders(directory)
    if not found:
        return None
    most = small_runs.DRIVER_WALK_BYTES, small_runs.DRIVER_WALK_FOLDERS
    if small_runs.are_open() and is_short(found, since, *most):
        return sample_folders(directory, since, planned_ms)

    def walk(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for index in batch.column(0).to_pylist():
                yield sample(found[index], since, planned_ms)

    numbers = spark.range(0, len(found), 1, min(len(found), _TASKS))
    return numbers.mapInArrow(walk, struct_of(END_OFFSETS))


def from_cluster(bootstrap: str, security: Security = NO_SECURITY) -> Ends:
    """END_OFFSETS rows of now: the driver asks before this returns. See `sample_cluster`.

    The result names the very moment of the samples, so they count at that moment.
    """
    samples = sample_cluster(bootstrap, security)
    at = pc.max(samples.column("sampled_at")).as_py() or datetime.now(UTC)
    return Ends(at, lambda _: samples)
