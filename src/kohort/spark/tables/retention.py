# SPDX-License-Identifier: Apache-2.0
"""Which of the oldest rows must stay when history is dropped: those that later rows build on.

It is what the broker's own cleaner would leave, with all older rows below its points. The last
record of each key stays, whatever came later: it holds at the beginning of the kept rows. A
committed offset counts from when its transaction ended well, and keeps the marker that says so. An
aborted one goes, with its marker; an open one stays. A tombstone goes unless its key has come back,
since nothing is left for it to remove.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from kohort.pipeline.schemas import KINDS, MARKER, QUARANTINE, TOMBSTONE
from kohort.spark.gold.commits import ended

_PLACE = ["partition", "offset"]
_KEY = ["partition", "key"]
_NO_PRODUCER = -1


def kept(old: DataFrame, young: DataFrame) -> DataFrame:
    """The decoded rows at the beginning of each partition that stay; `young` are all later rows."""
    rows = old.where(F.col("kind") != QUARANTINE).withColumn("key", _key())
    is_marker = F.col("kind") == MARKER
    in_transaction = F.col("kind").isin(KINDS[0], KINDS[1]) & (F.col("producer_id") != _NO_PRODUCER)
    of_transactions = ended(
        rows.where(in_transaction).select(*_KEY, "offset", "producer_id"), rows.where(is_marker)
    )
    committed = of_transactions.where("end.commits")
    pending = of_transactions.where("end is null")
    at_once = rows.where(~in_transaction & ~is_marker)
    removed = F.when(F.col("kind") == TOMBSTONE, F.col("offset"))
    last = (
        at_once.select(*_KEY, "offset", removed.alias("removed"))
        .unionByName(committed.select(*_KEY, "offset"), allowMissingColumns=True)
        .groupBy(*_KEY)
        .agg(F.max("offset").alias("last"), F.max("removed").alias("removed"))
    )
    is_gone = F.coalesce(F.col("last") == F.col("removed"), F.lit(col=False))
    back = young.where(F.col("kind") != QUARANTINE).select("partition", _key().alias("key"))
    holds = last.where(~is_gone).unionByName(last.where(is_gone).join(back, _KEY, "left_semi"))
    places = holds.select("partition", F.col("last").alias("offset"))
    markers = committed.join(places, _PLACE, "left_semi").select(
        "partition", F.col("end.offset").alias("offset")
    )
    still = F.coalesce(F.col("removed") < F.col("offset"), F.lit(col=True))
    open_ones = pending.join(last, _KEY, "left").where(still).select(*_PLACE)
    stays = places.unionByName(markers).unionByName(open_ones)
    return old.where(F.col("kind") != QUARANTINE).join(stays, _PLACE, "left_semi")


def _key() -> Column:
    """Keys of both types of committed offsets name the same thing."""
    newer = F.concat(F.lit(b"\0\1"), F.substring("key", 3, 1 << 30))
    return F.when(F.col("type") == 0, newer).otherwise(F.col("key"))
