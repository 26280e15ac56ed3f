# SPDX-License-Identifier: Apache-2.0
"""Plans of plugin assignors: complete, in order, and possible, or refused with what is wrong."""

from collections.abc import Mapping
from typing import Any

import pytest

from kohort.assignors import AssignorError, Subscription, assign_by
from kohort.terms import MemberId, TopicId, uuid_text

A, B = MemberId("a"), MemberId("b")
ORDERS, OTHERS = TopicId(b"o" * 16), TopicId(b"x" * 16)
PARTITIONS = {ORDERS: 3, OTHERS: 1}


def members() -> dict[MemberId, Subscription]:
    return {A: Subscription((ORDERS,), {ORDERS: (0,)}), B: Subscription((ORDERS, OTHERS))}


def returning(plan: Any) -> Any:
    return lambda *_: plan


def test_a_plan_is_made_complete_and_put_in_order() -> None:
    plan = {B: {ORDERS: [2, 0], OTHERS: ()}}
    assert assign_by(returning(plan), members(), PARTITIONS) == {A: {}, B: {ORDERS: (0, 2)}}


@pytest.mark.parametrize(
    ("plan", "why"),
    [
        (None, "it has returned None, expected a dict by member id"),
        ([A], "expected a dict by member id"),
        ({"c": {}}, "its plan has 'c', expected members of the group"),
        ({A: [0]}, "its plan gives a [0], expected a dict by topic id"),
        ({A: {OTHERS: [0]}}, f"gives a the topic {uuid_text(OTHERS)}, to which it does not"),
        ({A: {"orders": [0]}}, "gives a the topic 'orders', to which it does not subscribe"),
        ({A: {ORDERS: 1}}, "expected numbers of partitions"),
        ({A: {ORDERS: [3]}}, f"gives a partition 3 of topic {uuid_text(ORDERS)}, which has 3"),
        ({A: {ORDERS: [-1]}}, "partition -1"),
        ({A: {ORDERS: ["0"]}}, "partition '0'"),
        ({A: {ORDERS: [True]}}, "partition True"),
        ({A: {ORDERS: [0]}, B: {ORDERS: [0]}}, "gives partition 0 of topic "),
        ({A: {ORDERS: [1, 1]}}, "to a and to a"),
    ],
)
def test_a_plan_that_cannot_be_is_refused(plan: Any, why: str) -> None:
    with pytest.raises(AssignorError) as refused:
        assign_by(returning(plan), members(), PARTITIONS)
    assert why in str(refused.value)


def test_what_the_coordinator_remembers_cannot_be_changed() -> None:
    given, counts = members(), dict(PARTITIONS)

    def spoils(known: Mapping[MemberId, Any], partitions: Any) -> Any:
        for one in known.values():
            one.previous.clear()
            one.topics = ()
        partitions.clear()
        return {}

    assign_by(spoils, given, counts)
    assert (given, counts) == (members(), PARTITIONS)
