# SPDX-License-Identifier: Apache-2.0
"""Runs of partitions as tuples that share their numbers.

A number above 256 is an object of its own in CPython. Cutting every run from one tuple saves most
of the memory of a large plan, and makes comparing two runs a comparison of pointers.
"""

_NUMBERS = [tuple(range(256))]


def run(start: int, end: int) -> tuple[int, ...]:
    """The numbers from `start` (0 or more) to before `end`."""
    numbers = _NUMBERS[0]
    if end > len(numbers):
        numbers = _NUMBERS[0] = (*numbers, *range(len(numbers), max(end, 2 * len(numbers))))
    return numbers[start:end]
