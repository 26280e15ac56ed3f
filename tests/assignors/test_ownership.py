# SPDX-License-Identifier: Apache-2.0
"""Claims on what members had before."""

import pytest

from kohort.assignors import ASSIGNORS, AssignorError, Subscription
from kohort.assignors.ownership import Claims, joined

TOPIC = b"\x01" * 16
OTHER = b"\x02" * 16


@pytest.mark.parametrize("had", [(), (0,), (4,), (0, 1, 2), (1, 3), (0, 1, 2, 3, 4)])
def test_a_first_claim_is_kept_as_the_same_object(had):
    claims = Claims({TOPIC: 5})
    previous = {TOPIC: had} if had else {}
    assert claims.keep("A", previous, {TOPIC}) is previous
    assert claims.free(TOPIC) == tuple(one for one in range(5) if one not in had)


@pytest.mark.parametrize(
    ("second", "kept"),
    [((1, 2), (2,)), ((0, 1), ()), ((1, 4), (4,)), ((2, 3), (2, 3)), ((4, 2, 0), (2, 4))],
)
def test_a_second_claim_gives_way(second, kept):
    claims = Claims({TOPIC: 5})
    claims.keep("A", {TOPIC: (0, 1)}, {TOPIC})
    assert claims.keep("B", {TOPIC: second}, {TOPIC}) == ({TOPIC: kept} if kept else {})


def test_what_looks_like_a_run_is_looked_at():
    claims = Claims({TOPIC: 9})
    claims.keep("A", {TOPIC: (0, 7, 2)}, {TOPIC})
    assert claims.free(TOPIC) == (1, 3, 4, 5, 6, 8)


@pytest.mark.parametrize("had", [(5,), (4, 5), (-1,), (-1, 0), (0, 9)])
def test_a_partition_that_the_topic_does_not_have_is_an_error(had):
    with pytest.raises(AssignorError, match=r"member A had partition (5|-1|9) of topic"):
        Claims({TOPIC: 5}).keep("A", {TOPIC: had}, {TOPIC})


def test_what_is_not_wanted_is_let_go():
    previous = {TOPIC: (0, 1), OTHER: (1,)}
    claims = Claims({TOPIC: 2, OTHER: 2})
    assert claims.keep("A", previous, {OTHER}) == {OTHER: (1,)}
    assert previous == {TOPIC: (0, 1), OTHER: (1,)}
    assert claims.free(TOPIC) == (0, 1)
    assert claims.free(OTHER) == (0,)


def test_two_members_that_both_had_all_share_it():
    for topics in [(TOPIC,), (TOPIC, OTHER)]:
        members = {
            "A": Subscription((TOPIC,), {TOPIC: (0, 1, 2, 3)}),
            "B": Subscription(topics, {TOPIC: (0, 1, 2, 3)}),
        }
        plan = ASSIGNORS["uniform"](members, {TOPIC: 4, OTHER: 0})
        assert plan == {"A": {TOPIC: (0, 1)}, "B": {TOPIC: (2, 3)}}


def test_a_member_that_keeps_all_keeps_its_mapping():
    members = {
        "A": Subscription((TOPIC,), {TOPIC: (0, 1)}),
        "B": Subscription((TOPIC,), {TOPIC: (2,)}),
    }
    plan = ASSIGNORS["uniform"](members, {TOPIC: 4})
    assert plan["A"] is members["A"].previous
    assert plan["B"] == {TOPIC: (2, 3)}
    assert members["B"].previous == {TOPIC: (2,)}


@pytest.mark.parametrize(
    ("mine", "more", "both"),
    [
        ((), (3, 4), (3, 4)),
        ((1,), (3, 4), (1, 3, 4)),
        ((4,), (1, 5), (1, 4, 5)),
        ((4,), (), (4,)),
    ],
)
def test_joined(mine, more, both):
    assert joined(mine, more) == both
