# SPDX-License-Identifier: Apache-2.0
"""Who may be asked to compute."""

from dataclasses import replace

import pytest
from tests.coordinator.consumer.client_side.test_selection import classic, member

from kohort.coordinator.consumer.client_side.computation import fit

THERE = [replace(member(name, "x:1-2"), epoch=3) for name in "cab"]


@pytest.mark.parametrize(
    ("others", "late", "able"),
    [
        ([], (), ["a", "b", "c"]),
        ([], ("a", "c"), ["b"]),
        ([replace(member("d", "x:1-9"), epoch=0)], (), ["a", "b", "c"]),
        ([replace(member("d", "x:1-9"), epoch=-2)], (), ["a", "b", "c"]),
        ([replace(member("d", "y"), epoch=3)], (), ["a", "b", "c"]),
        ([replace(classic("d", x=None), epoch=3)], (), ["a", "b", "c"]),
        ([replace(classic("d", x="ab"), epoch=3)], (), []),
        ([replace(member("d", "x:3-9"), epoch=3)], (), []),
        (
            [replace(member("d", "x:3-9"), epoch=3), replace(member("e", "x:0-3"), epoch=3)],
            (),
            ["e"],
        ),
        ([replace(member("d", "x:0-9"), epoch=3)], (), ["d"]),
    ],
)
def test_who_is_fit(others, late, able):
    """K848-058, K848-065, K848-070."""
    assert fit([*THERE, *others], "x", late) == able


def test_nobody_is_fit_for_what_nobody_offers():
    assert fit(THERE, "z", ()) == []
