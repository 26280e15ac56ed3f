# SPDX-License-Identifier: Apache-2.0
"""The records of a group, in the order in which the coordinator wrote them."""

from pyspark.sql import Column, Window, WindowSpec
from pyspark.sql import functions as F  # noqa: N812

from kohort.history.events import CLASSIC, CURRENT, EPOCH, MEMBER, TARGET, TARGET_EPOCH

GROUP = ("partition", "group_id")

__all__ = [
    "CLASSIC",
    "CURRENT",
    "EPOCH",
    "GROUP",
    "MEMBER",
    "TARGET",
    "TARGET_EPOCH",
    "is_known",
    "so_far",
]


def is_known(condition: Column) -> Column:
    """Whether a condition holds for sure: false where it is unknown."""
    return F.coalesce(condition, F.lit(False))


def so_far(*key: str) -> WindowSpec:
    """All that was written about a group, or something within it, up to a record, and the record
    itself.
    """
    order = Window.partitionBy(*GROUP, *key).orderBy("offset")
    return order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
