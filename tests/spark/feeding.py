# SPDX-License-Identifier: Apache-2.0
"""A source of made-up rows, which can be cut, grown and made anew at will."""

from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.compute as pc

from kohort.pipeline.columns.decode import decode
from kohort.pipeline.columns.record_positions import ArrowRows
from kohort.pipeline.schemas import DECODED
from kohort.pipeline.sources.log_position import Identity, Plan, Position, Settings
from kohort.spark.sources.source import Ends

IDENTITY = Identity("c-1", "t-1")


_PLACE = ("offset", "timestamp")


class Fed:
    """Keeps the contract of `Source` for RAW rows by partition."""

    def __init__(self, rows, *, identity=IDENTITY, samples=None, settings=None):
        self.rows = dict(rows)
        self.cut = {}
        self.samples = samples
        self._identity = identity
        self._settings = settings or Settings()

    def identity(self):
        return self._identity

    def plan(self, since, *, from_time=None, to_time=None):
        ranges = {}
        for partition, rows in self.rows.items():
            places = zip(*(rows.column(name).to_pylist() for name in _PLACE), strict=True)
            offsets = [offset for offset, at in places if to_time is None or at < to_time]
            start = self.cut.get(partition, since[partition].next if partition in since else 0)
            if offsets and offsets[-1] >= start:
                ranges[partition] = (start, offsets[-1] + 1)
        positions = dict(since) | {one: Position(end) for one, end in self.cut.items()}
        positions |= {one: Position(end) for one, (_, end) in ranges.items()}
        return Plan(ranges, self.cut, (), positions)

    def frame(self, spark, plan):
        chosen = []
        for partition, (start, end) in plan.ranges.items():
            rows = self.rows[partition]
            mask = [start <= one < end for one in rows.column("offset").to_pylist()]
            chosen.append(decode(ArrowRows(rows.filter(pa.array(mask)))))
        return spark.createDataFrame(pa.Table.from_batches(chosen, DECODED.arrow))

    def few_or_none(self, plan):
        return None

    def late_rows(self, spark, since, known, files=()):
        return None

    def files(self):
        return ()

    def changes(self, plan):
        return ()

    def positions(self, following):
        return {one: Position(end) for one, end in following.items()}

    def ends(self, since=None):
        samples = self.samples
        return Ends(
            datetime.now(UTC),
            lambda spark: None if samples is None else spark.createDataFrame(samples),
        )

    def settings(self):
        return self._settings


class FedDecoded(Fed):
    """The same of decoded rows."""

    def frame(self, spark, plan):
        chosen = []
        for partition, (start, end) in plan.ranges.items():
            offset = pc.field("offset")
            chosen.append(self.rows[partition].filter((offset >= start) & (offset < end)))
        # Of a table with an empty chunk Spark loses what stands behind it.
        return spark.createDataFrame(pa.concat_tables(chosen).combine_chunks())
