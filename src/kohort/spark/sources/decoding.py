# SPDX-License-Identifier: Apache-2.0
"""Raw rows of any source as decoded rows, in Spark's workers."""

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import DataFrame

from kohort.pipeline.columns.decode import decode
from kohort.pipeline.columns.record_positions import ArrowRows
from kohort.pipeline.schemas import DECODED, RAW
from kohort.spark.engine.frames import conform, struct_of
from kohort.spark.engine.worker import settle


def decode_frame(raw: DataFrame) -> DataFrame:
    """A frame of raw rows, of whatever source, as decoded rows."""
    return conform(RAW, raw).mapInArrow(_decode_all, struct_of(DECODED))


def _decode_all(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    settle()
    for rows in batches:
        yield decode(ArrowRows(rows.cast(RAW.arrow)))
