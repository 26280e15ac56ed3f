# SPDX-License-Identifier: Apache-2.0
"""A log that ends before the offset it was read to: was its tail cut, or is it an older copy?

Both look the same until something is written in place of the missing records. So the records that
are there are compared with those that were read. Where they differ, offsets were used again, and
the rows that were read no longer count. Where they do not differ, nothing that was read is wrong,
and nothing is hidden: reading stays where it was, and its fingerprints tell as soon as other
records stand there.
"""

from collections.abc import Mapping
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from kohort.pipeline.format.writer import Writer
from kohort.pipeline.sources.log_position import Note, Plan
from kohort.spark.sources.planning import cut_note
from kohort.spark.sources.source import Source
from kohort.spark.tables import spark_reader

_PLACE = ["partition", "offset"]
_SAID = ("timestamp", "key", "value")


def older_copies(spark: SparkSession, writer: Writer, log: Source, plan: Plan) -> dict[int, int]:
    """Partitions whose logs merely end earlier than they were read to, and where they end."""
    since = writer.manifest.positions
    ends = {
        index: plan.positions[index].next
        for index in plan.cut
        if index in since and plan.positions[index].next < since[index].next
    }
    again = {index: plan.ranges[index] for index in ends if index in plan.ranges}
    if not again:
        return ends
    there = log.frame(spark, plan._replace(ranges=again, cut={}, notes=()))
    read = spark_reader.rows(spark, writer.directory, writer.manifest).where(_within(again))
    differing = _differing(there, read).select("partition").distinct().collect()
    return {index: end for index, end in ends.items() if index not in {row[0] for row in differing}}


def without_older_copies(plan: Plan, writer: Writer, older: Mapping[int, int]) -> Plan:
    """The plan without the cuts of older copies: the rows read of those stay as they are."""
    since = writer.manifest.positions
    taken_back = {cut_note(index, plan.cut[index], since[index].next) for index in older}
    notes = tuple(note(index, end, since[index].next) for index, end in sorted(older.items()))
    return Plan(
        {index: span for index, span in plan.ranges.items() if index not in older},
        {index: offset for index, offset in plan.cut.items() if index not in older},
        (*(known for known in plan.notes if known not in taken_back), *notes),
        plan.positions | {index: since[index] for index in older},
    )


def note(partition: int, end: int, following: int) -> Note:
    """The note about an older copy."""
    text = (
        f"the log of partition {partition} ends at offset {end} and was read to {following} before:"
        " it is an older copy, or its tail was lost; nothing that was read is hidden, and reading "
        f"goes on at {following}"
    )
    return Note(partition, end, text)


def _differing(current: DataFrame, earlier: DataFrame) -> DataFrame:
    """Rows that stand at the same offset and say something else."""
    sides = [
        rows.where(F.col("error").isNull()).select(
            *_PLACE, F.struct(*(F.col(name) for name in _SAID)).alias(side)
        )
        for side, rows in (("one", current), ("other", earlier))
    ]
    return sides[0].join(sides[1], _PLACE).where(~F.col("one").eqNullSafe(F.col("other")))


def _within(ranges: Mapping[int, tuple[int, int]]) -> Column:
    return reduce(
        Column.__or__,
        (
            (F.col("partition") == index) & F.col("offset").between(start, end - 1)
            for index, (start, end) in ranges.items()
        ),
    )
