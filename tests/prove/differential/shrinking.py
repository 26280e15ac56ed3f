# SPDX-License-Identifier: Apache-2.0
"""The shortest sequence that still shows a difference, as far as so many tries find."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

One = TypeVar("One")


async def shortest(
    steps: list[One], shows: Callable[[list[One]], Awaitable[bool]], tries: int
) -> list[One]:
    """Leave out runs of steps, long ones first, as long as `shows` holds for what is left.

    `steps` itself has shown it; `shows` is asked at most `tries` times.
    """
    size = max(1, len(steps) // 2)
    while tries > 0:
        start, smaller = 0, False
        while start < len(steps) and tries > 0:
            left = [*steps[:start], *steps[start + size :]]
            tries -= 1
            if left and await shows(left):
                steps, smaller = left, True
            else:
                start += size
        if size == 1 and not smaller:
            break
        size = max(1, size // 2)
    return steps
