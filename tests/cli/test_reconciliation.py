# SPDX-License-Identifier: Apache-2.0
"""Whom a group waits for while it is Reconciling."""

import pytest

from kohort.cli.reconciliation import blocking_members
from kohort.client.admin import GroupDescription, MemberDescription
from kohort.terms import GroupType

HAS = {"orders": (0, 1, 2), "other": (0,)}


def member(name, *, epoch=4, assignment=HAS, target=HAS):
    return MemberDescription(
        name,
        f"client-{name}",
        "/127.0.0.1",
        member_epoch=epoch,
        assignment=assignment,
        target_assignment=target,
    )


def texts(*members, state="Reconciling"):
    where = ("uniform", 0, "127.0.0.1", 9092, 5, 5)
    group = GroupDescription("g", GroupType.CONSUMER, state, "consumer", *where, members)
    return [one.text(group.assignment_epoch) for one in blocking_members(group)]


@pytest.mark.parametrize(
    ("one", "text"),
    [
        (
            member("a", target={"orders": (0,)}),
            "client-a (a) gives up orders:1-2 other:0",
        ),
        (member("b"), "client-b (b) is at epoch 4, and comes to 5"),
    ],
)
def test_who_holds_the_others_up(one, text):
    assert texts(one, member("done", epoch=5)) == [text]


def test_who_only_waits_holds_nobody_up():
    waits = member("c", epoch=5, assignment={}, target=HAS)
    left = member("static", epoch=-2)
    unknown = member("classic", epoch=None, target=None)
    assert texts(waits, left, unknown) == []


def test_a_group_that_is_stable_waits_for_nobody():
    assert texts(member("b"), state="Stable") == []
