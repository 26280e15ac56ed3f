# SPDX-License-Identifier: Apache-2.0
"""A directory of tables without a pipeline: rows that a test has written, published at once."""

import pyarrow as pa
from tests.pipeline.format.test_tables import written
from tests.spark.rows import golden

from kohort.pipeline.format.catalog import known_tables
from kohort.pipeline.format.manifest import Gold, HistoryChunk, ObservedHistory, Part
from kohort.pipeline.format.writer import Writer
from kohort.pipeline.schemas import END_OFFSETS, LAG_HISTORY, STATUS_HISTORY
from kohort.pipeline.stores import parquet


def publish(directory, rows, **told):
    """Tables of gold and of the past, and samples of ends: a table by name, of rows or of a table
    of Arrow. What is told else stands in the manifest.
    """
    with Writer(directory) as writer:
        gold = dict(writer.manifest.gold)
        samples, past = writer.manifest.end_offsets, writer.manifest.past
        for name, contents in rows.items():
            table = known_tables()[name]
            part = write(writer, table, contents)
            if table is END_OFFSETS:
                samples = (*samples, part)
            elif table is LAG_HISTORY:
                stretch = HistoryChunk(part=part, step_us=0, first_us=0, last_us=0)
                past = ObservedHistory(lag=(stretch,), status=past.status, as_of_us=0)
            elif table is STATUS_HISTORY:
                past = ObservedHistory(lag=past.lag, status=(part,), as_of_us=0)
            else:
                gold[name] = Gold(columns="", parts=(part,))
        writer.publish(writer.manifest.with_(gold=gold, end_offsets=samples, past=past, **told))
    return directory


def write(writer, table, contents, partitions=None):
    """A part of a table, which no manifest names yet."""
    place = f"{table.layer}/{table.name}/{writer.new_name('')}"
    if table is END_OFFSETS:
        place = f"end_offsets/{writer.new_name('')}"
    (writer.directory / place).mkdir(parents=True)
    rows = contents
    if not isinstance(rows, pa.Table):
        rows = pa.Table.from_pylist(contents, schema=table.arrow)
    parquet.write(rows.cast(table.arrow), writer.directory / place / "part-0.parquet")
    return Part(path=place, rows=rows.num_rows, partitions=partitions)


def add_log(directory, name="1-written"):
    """The records of a real broker's log as an increment."""
    with Writer(directory) as writer:
        one = written(writer, golden(name))
        writer.publish(writer.manifest.with_(increments=(*writer.manifest.increments, one)))
    return directory


def grow_old(monkeypatch):
    """From now on a flip removes the files that it replaces."""
    monkeypatch.setattr("kohort.pipeline.format.writer.GRACE_MS", -1)
