# SPDX-License-Identifier: Apache-2.0
"""What people ask: pure functions over silver, one module per noun."""

from kohort.pipeline.schemas.membership import ASSIGNMENTS, GROUP_STATE, MEMBERS, REBALANCES
from kohort.pipeline.schemas.progress import (
    COMMIT_RATES,
    COMMITS,
    DELETABLE_GROUPS,
    LAG,
    OFFSETS,
    STATUS,
)
from kohort.spark.gold.commits import commits, offsets
from kohort.spark.gold.deletable_groups import deletable_groups
from kohort.spark.gold.group_state import group_state
from kohort.spark.gold.lag import lag
from kohort.spark.gold.measure import Context, Frames, Measure
from kohort.spark.gold.membership import assignments, members, rebalances
from kohort.spark.gold.rates import commit_rates
from kohort.spark.gold.status import status

MEASURES: tuple[Measure, ...] = (
    Measure(GROUP_STATE, group_state),
    Measure(MEMBERS, members),
    Measure(ASSIGNMENTS, assignments, whole=True),  # names of topics come from other groups too
    Measure(REBALANCES, rebalances, whole=True),
    Measure(COMMITS, commits),
    Measure(OFFSETS, offsets),
    Measure(COMMIT_RATES, commit_rates),
    Measure(LAG, lag, whole=True),
    Measure(STATUS, status, whole=True),
    Measure(DELETABLE_GROUPS, deletable_groups, whole=True),
)
"""All of gold, in the order in which it is computed: a measure may use those before it."""

__all__ = ["MEASURES", "Context", "Frames", "Measure"]
