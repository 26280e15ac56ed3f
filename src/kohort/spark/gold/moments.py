# SPDX-License-Identifier: Apache-2.0
"""What was true at each of some moments: rows that hold until the next one are looked up by number.

The moments are few and known when a query is made. So the number of the first moment at which a row
holds is a tree of comparisons, and no row is compared with a list.
"""

from collections.abc import Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812


def first_moment(at: str, moments: Sequence[int]) -> Column:
    """The number of the first of the ascending moments that is not before `at`, which is SQL, all
    in microseconds; how many there are, if all are.
    """
    return F.expr(_tree(at, moments, 0, len(moments)))  # as columns, a thousand calls to the JVM


def _tree(at: str, moments: Sequence[int], low: int, high: int) -> str:
    if low == high:
        return str(low)
    middle = (low + high) // 2
    before, behind = _tree(at, moments, low, middle), _tree(at, moments, middle + 1, high)
    return f"if({at} <= {moments[middle]}L, {before}, {behind})"


def time_of(moment: Column, moments: Sequence[int]) -> Column:
    """The moment of a number, in microseconds."""
    times = ", ".join(f"{at}L" for at in moments)
    return F.element_at(F.expr(f"array({times})"), moment + 1)


def not_below_zero(number: Column) -> Column:
    """The number, or 0 if it is below; null stays null, which `greatest` would turn into 0."""
    return F.when(number < 0, F.lit(0)).otherwise(number)


def numbers(first: Column, end: Column) -> Column:
    """A row for each number from `first` up to `end`, which is left out."""
    return F.explode(F.when(first < end, F.sequence(first, end - 1)))
