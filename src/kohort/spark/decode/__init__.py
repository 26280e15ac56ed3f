"""From raw rows to typed ones: what the records of the group log say."""

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import DataFrame

from kohort.spark.decode.records import decode_row
from kohort.spark.schemas import DECODED, KINDS, RAW
from kohort.spark.schemas.rows import COMMIT_COLUMNS, KEY_COLUMNS

_COMMIT_NAMES = [
    *("partition", "offset", "timestamp", "producer_id", "producer_epoch", "transactional"),
    *(column.name for column in KEY_COLUMNS[:3]),
    *("type", "value_version"),
    *(column.name for column in COMMIT_COLUMNS),
]
OFFSET_COMMITS = pa.schema([DECODED.arrow.field(name) for name in _COMMIT_NAMES])
"""What `offset_commits` gives."""

_COMMITS = {KINDS[0], KINDS[1]}


def decode(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Raw rows as decoded rows, one for one. Whatever cannot be read is of kind quarantine."""
    decoded = [decode_row(row) for row in rows.to_pylist()]
    return _as_batch(decoded, DECODED.arrow)


def offset_commits(rows: pa.RecordBatch) -> pa.RecordBatch:
    """The committed offsets among raw rows, and nothing else: see OFFSET_COMMITS."""
    decoded = [row for row in map(decode_row, rows.to_pylist()) if row["kind"] in _COMMITS]
    return _as_batch(decoded, OFFSET_COMMITS)


def decode_frame(raw: DataFrame) -> DataFrame:
    """A frame of raw rows, of whatever source, as decoded rows."""
    return RAW.conform(raw).mapInArrow(_decode_all, DECODED.spark)


def _decode_all(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for rows in batches:
        yield decode(rows.cast(RAW.arrow))


def _as_batch(rows: list[dict[str, object]], schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [pa.array([row.get(field.name) for row in rows], field.type) for field in schema],
        schema=schema,
    )
