"""What people ask: pure functions over silver, one module per noun."""

from kohort.spark.gold.assignments import assignments
from kohort.spark.gold.group_state import group_state
from kohort.spark.gold.measure import Context, Frames, Measure
from kohort.spark.gold.members import members
from kohort.spark.schemas.membership import ASSIGNMENTS, GROUP_STATE, MEMBERS

MEASURES: tuple[Measure, ...] = (
    Measure(GROUP_STATE, group_state),
    Measure(MEMBERS, members),
    Measure(ASSIGNMENTS, assignments),
)
"""All of gold, in the order in which it is computed: a measure may use those before it."""

__all__ = ["MEASURES", "Context", "Frames", "Measure"]
