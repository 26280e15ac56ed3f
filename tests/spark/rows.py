# SPDX-License-Identifier: Apache-2.0
"""Raw and decoded rows for tests: made up, or of a real broker's logs."""

import tempfile
from functools import lru_cache
from pathlib import Path

import pyarrow as pa
from tests import golden_logs

from kohort.pipeline.columns.decode import decode
from kohort.pipeline.columns.record_positions import ArrowRows
from kohort.pipeline.columns.segments import parse
from kohort.pipeline.schemas import RAW
from kohort.records import codec
from kohort.spark.tables.silver import views

GROUP_LOG = "__consumer_offsets"
FIRST = 1_790_000_000_000
"""The time, in milliseconds, of the first made-up record; each next one is a second later."""

_PLAIN = {
    "producer_id": -1,
    "producer_epoch": -1,
    "transactional": False,
    "control": False,
    "error": None,
}


def raw(entries, partition=0):
    """RAW rows in the order given. An entry is one of

    - a `kohort.records.codec.Record`, at the next offset and a second after the entry before it,
    - (timestamp in ms, Record) or (offset, timestamp in ms, Record),
    - (offset, key, value) or (offset, key, value, timestamp in ms), as bytes,
    - a dict: any columns of RAW, the rest as above; `record` stands for key and value,
      `ms` for the timestamp.
    """
    rows = []
    offset, ms = 0, FIRST
    for entry in entries:
        given = _as_dict(entry)
        offset, ms = given.pop("offset", offset), given.pop("ms", ms)
        record = given.pop("record", None)
        if record is not None:
            given["key"], given["value"] = codec.encode(record)
        timestamp = ms * 1000 if ms is not None else None
        where = {"partition": partition, "offset": offset, "timestamp": timestamp}
        rows.append({**_PLAIN, **where, **given})
        offset, ms = offset + 1, (FIRST if ms is None else ms) + 1000
    return pa.RecordBatch.from_pylist(rows, schema=RAW.arrow)


def _as_dict(entry):
    if isinstance(entry, dict):
        return dict(entry)
    if isinstance(entry, codec.Record):
        return {"record": entry}
    if isinstance(entry[-1], codec.Record):
        names = ("ms", "record") if len(entry) == 2 else ("offset", "ms", "record")
        return dict(zip(names, entry, strict=True))
    return dict(zip(("offset", "key", "value", "ms"), entry, strict=False))


@lru_cache(maxsize=4)
def golden(name, topic=GROUP_LOG):
    """RAW rows of a folder of tests/data/logs: all partitions of a topic, one after the other."""
    with tempfile.TemporaryDirectory() as directory:
        folder = golden_logs.unpack(name, Path(directory))
        parsed = [
            parse(path.read_bytes(), int(place.name.rpartition("-")[2])).rows
            for place in golden_logs.partitions(folder)
            if place.name.rpartition("-")[0] == topic
            for path in sorted(place.glob("*.log"))
        ]
    return pa.Table.from_batches(parsed, RAW.arrow).combine_chunks().to_batches()[0]


def topic_of(line):
    """The topic of a line of `golden_logs.dump`."""
    return line["file"].partition("/")[0].rpartition("-")[0]


def partition_of(line):
    """Its partition."""
    return int(line["file"].partition("/")[0].rpartition("-")[2])


def decoded_frame(spark, rows):
    """RAW rows as a cached frame of decoded rows."""
    return spark.createDataFrame(pa.Table.from_batches([decode(ArrowRows(rows))])).cache()


def frames(spark, rows):
    """Every table of bronze and silver over RAW rows."""
    return views(decoded_frame(spark, rows))
