# SPDX-License-Identifier: Apache-2.0
"""What an explanation looks at, and what one is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tests.prove.differential.comparing import Difference
from tests.prove.differential.steps import Step

PICKS = tuple(
    path + part
    for path in (
        *("assignment", "groups[].members[].assignment"),
        "groups[].members[].target_assignment",
    )
    for part in (
        *(".topic_partitions[]", ".topic_partitions[].topic_id"),
        *(".topic_partitions[].topic_name", ".topic_partitions[].partitions[]"),
    )
)
"""What an assignor has chosen."""


@dataclass(frozen=True)
class Occasion:
    """All that an explanation may look at. The answers have been made alike."""

    step: Step
    request: dict[str, Any]
    kafka: Any
    kohort: Any
    difference: Difference
    before: Sequence[Any] = ()  # what was told of the steps before
    by_range: bool = False  # no other assignor is there


@dataclass(frozen=True)
class Explanation:
    name: str
    reason: str
    apis: tuple[str, ...]
    paths: tuple[str, ...]  # none: whatever differs
    when: Callable[[Occasion], bool]
    goes_on: bool = False

    def covers(self, occasion: Occasion) -> bool:
        return (
            occasion.step.api in self.apis
            and (not self.paths or occasion.difference.path in self.paths)
            and self.when(occasion)
        )


def codes(one: Occasion) -> tuple[Any, Any]:
    return one.difference.kafka, one.difference.kohort
