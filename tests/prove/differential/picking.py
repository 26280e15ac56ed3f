# SPDX-License-Identifier: Apache-2.0
"""How a sequence is put together: requests that are picked, some more often than others."""

from __future__ import annotations

from collections.abc import Callable

from tests.prove.differential.drawing import ACTORS, Draw
from tests.prove.differential.steps import Step


def _length(draw: Draw) -> int:
    return draw.random.randint(10, 34)


def pick(draw: Draw, *weighted: tuple[int, Callable[[], Step | list[Step]]]) -> list[Step]:
    (chosen,) = draw.random.choices(
        [one for _, one in weighted], weights=[weight for weight, _ in weighted]
    )
    step = chosen()
    return step if isinstance(step, list) else [step]


def several(draw: Draw, *weighted: tuple[int, Callable[[], Step | list[Step]]]) -> list[Step]:
    steps: list[Step] = []
    length = _length(draw)
    while len(steps) < length:
        steps += pick(draw, *weighted)
    return steps[:40]


def looks(draw: Draw) -> list[tuple[int, Callable[[], Step | list[Step]]]]:
    """What anybody may ask about groups."""
    return [
        (2, lambda: draw.commit_from_outside(draw.stored_group("g1", "simple"))),
        (3, lambda: draw.fetch_offsets(draw.one(*ACTORS), "g1", "simple")),
        (2, lambda: draw.delete_offsets("g1", "simple")),
        (1, lambda: draw.delete_groups("g1", "simple")),
        (3, lambda: draw.describe_groups("g1", "simple")),
        (2, lambda: draw.describe_consumers("g1")),
        (2, draw.list_groups),
        (1, lambda: draw.find_coordinator("g1")),
    ]
