"""What people ask: pure functions over silver, one module per noun."""

from kohort.spark.gold.measure import Context, Frames, Measure

MEASURES: tuple[Measure, ...] = ()
"""All of gold, in the order in which it is computed: a measure may use those before it."""

__all__ = ["MEASURES", "Context", "Frames", "Measure"]
