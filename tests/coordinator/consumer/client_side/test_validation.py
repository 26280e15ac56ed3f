# SPDX-License-Identifier: Apache-2.0
"""What is wrong with an assignment, in words."""

import pytest
from tests.coordinator.assigning import part
from tests.coordinator.desk import topic_id

from kohort.coordinator.consumer.client_side import validation
from kohort.coordinator.consumer.client_side.computation import Basis

ORDERS, PAYMENTS = topic_id("orders"), topic_id("payments")
BASIS = Basis(
    7,
    {"a": {ORDERS, PAYMENTS}, "b": {ORDERS}},
    {ORDERS: 3, PAYMENTS: 1},
    {ORDERS: "orders", PAYMENTS: "payments"},
    {},
    {"a": (0, 3), "b": (-1, -1)},
)
ROOM = 10_000

FINE = [
    [],
    [part("a", {}, b"", 1)],
    [part("a", {"orders": [0, 2], "payments": [0]}, b"", 3), part("b", {"orders": [1]})],
    [part("a", {"orders": [2, 1, 0]}, b"m", 3), part("b", {}, b"m", -1)],
    [part("b", {}, b"", 9)],  # nothing is said to a classic member: it needs no version
    [part("a", {"orders": []})],
]
WRONG = {
    "member c is not in the group of epoch 7": [part("c", {"orders": [0]})],
    "member a is named twice": [part("a", {"orders": [0]}), part("a", {"orders": [1]})],
    "topic id bm93aGVyZS4uLi4uLi4uLg of member a is not known": [part("a", {"nowhere": [0]})],
    "member b does not subscribe to topic payments": [part("b", {"payments": [0]})],
    "partition 3 of topic orders is given to a, there are 3": [part("a", {"orders": [3]})],
    "partition -1 of topic orders is given to a, there are 3": [part("a", {"orders": [-1]})],
    "partition 1 of topic orders is given to a and to b": [
        part("a", {"orders": [1]}),
        part("b", {"orders": [0, 1]}),
    ],
    "partition 1 of topic orders is given to a and to a": [part("a", {"orders": [1, 1]})],
    "member a reads metadata of versions 0 to 3, not 4": [part("a", {}, b"m", 4)],
    "member a reads metadata of versions 0 to 3, not 9": [part("a", {}, b"", 9)],
    "member b reads metadata of versions -1 to -1, not 0": [part("b", {}, b"m", 0)],
    "the part of member a takes 10065 bytes, a record has room for 10000": [
        part("a", {}, bytes(10_001), 1)
    ],
}


@pytest.mark.parametrize("members", FINE, ids=range(len(FINE)))
def test_what_is_fine(members):
    """K848-062."""
    assert validation.describe_problems(members, BASIS, ROOM) == ""


@pytest.mark.parametrize("why", WRONG)
def test_what_is_wrong(why):
    """K848-062."""
    assert validation.describe_problems(WRONG[why], BASIS, ROOM) == why


def test_all_that_is_wrong_is_said_as_far_as_there_is_room():
    """K848-062."""
    members = [part("a", {"orders": [3, 4], "nowhere": [0]}), part("c", {})]
    told = validation.describe_problems(members, BASIS, ROOM).split("; ")
    assert len(told) == 4
    many = validation.describe_problems(
        [part("a", {"orders": list(range(3, 100_003))})], BASIS, 10**7
    )
    assert many.endswith("; and 99980 more")
    assert len(many) < 2000
