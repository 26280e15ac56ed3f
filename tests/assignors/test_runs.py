# SPDX-License-Identifier: Apache-2.0
"""Runs share their numbers, however far they reach."""

import pytest

from kohort.assignors.runs import run


@pytest.mark.parametrize(
    ("start", "end"), [(0, 0), (0, 1), (3, 9), (250, 300), (0, 5000), (70_000, 70_003), (7, 7)]
)
def test_a_run_is_its_numbers(start, end):
    assert run(start, end) == tuple(range(start, end))


def test_numbers_are_shared():
    first, second = run(4000, 4003), run(3999, 4002)
    assert first[0] is second[1]
    assert run(4000, 9000)[0] == first[0]
