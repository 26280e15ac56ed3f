# SPDX-License-Identifier: Apache-2.0
"""Assignors: functions from subscriptions to a plan.

They are pure: no clock, no randomness, no memory. What they need to remember is an argument, such
as the target that each member had before. To add one, write its module and its row in ASSIGNORS.
Packages bring others, by entry points of the group `kohort.assignors`.
"""

from kohort.assignors import range as range_assignor
from kohort.assignors import uniform
from kohort.assignors.plugin import assign_by
from kohort.assignors.subscriptions import (
    Assign,
    Assignment,
    AssignorError,
    Plan,
    Subscription,
)

ASSIGNORS: dict[str, Assign] = {
    "uniform": uniform.assign,  # the first is the default
    "range": range_assignor.assign,
}

__all__ = [
    "ASSIGNORS",
    "Assign",
    "Assignment",
    "AssignorError",
    "Plan",
    "Subscription",
    "assign_by",
]
