# SPDX-License-Identifier: Apache-2.0
"""A classic group by itself: who supports what, the vote, what may follow what."""

import pytest
from tests.coordinator.classics import SUBSCRIBED
from tests.coordinator.desk import START

from kohort.coordinator.classic.group import ClassicGroup
from kohort.coordinator.classic.member import ClassicMember
from kohort.errors import ApiError, Broken, ErrorCode
from kohort.machines.effects import Client
from kohort.terms import GroupId, MemberId


def group_of(*members: dict[str, bytes], protocol_type: str = "consumer") -> ClassicGroup:
    group = ClassicGroup(GroupId("g"), START)
    group.protocol_type = protocol_type
    for number, protocols in enumerate(members):
        group.add(member(f"m{number}", protocols))
    return group


def member(
    member_id: str, protocols: dict[str, bytes], instance_id: str | None = None
) -> ClassicMember:
    return ClassicMember(
        MemberId(member_id),
        instance_id,
        Client("app", "/127.0.0.1"),
        rebalance_timeout_ms=60_000,
        session_timeout_ms=10_000,
        protocols=protocols,
    )


def names(*protocols: str) -> dict[str, bytes]:
    return dict.fromkeys(protocols, SUBSCRIBED)


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        pytest.param([names("range")], "range", id="no choice"),
        pytest.param([names("sticky", "range")], "sticky", id="the first of one"),
        pytest.param([names("sticky", "range"), names("range")], "range", id="common to all"),
        pytest.param([names("a", "b"), names("b", "a"), names("b", "a")], "b", id="most votes"),
        pytest.param(
            [names("x", "a", "b"), names("y", "a", "b"), names("b", "a")],
            "a",
            id="votes go to the first that all support",
        ),
        pytest.param([names("a", "b"), names("b", "a")], "a", id="a tie"),
    ],
)
def test_vote(members, expected):
    assert group_of(*members).vote() == expected


@pytest.mark.parametrize(
    ("preferences", "expected"),
    [
        (["roundrobin", "range"], "range"),
        (["range", "roundrobin"], "range"),
        (["range", "sticky"], "sticky"),
        (["cooperative-sticky", "roundrobin"], "roundrobin"),
        (["cooperative-sticky", "roundrobin", "range", "sticky"], "sticky"),
    ],
)
def test_a_tie_goes_to_the_first_in_the_order_of_upstreams_hash_table(preferences, expected):
    members = [names(first, *set(preferences).difference([first])) for first in preferences]
    assert group_of(*members).vote() == expected
    assert group_of(*reversed(members)).vote() == expected


def test_vote_without_a_common_protocol_is_broken():
    with pytest.raises(Broken, match="no protocol in common"):
        group_of(names("a"), names("b")).vote()


@pytest.mark.parametrize(
    ("members", "protocol_type", "protocols", "expected"),
    [
        pytest.param([], "connect", names("x"), True, id="empty takes any type"),
        pytest.param([], "", names("x"), False, id="empty needs a type"),
        pytest.param([], "connect", {}, False, id="empty needs a protocol"),
        pytest.param([names("a", "b")], "consumer", names("b"), True, id="one in common"),
        pytest.param([names("a")], "consumer", names("b"), False, id="none in common"),
        pytest.param([names("a")], "connect", names("a"), False, id="another type"),
        pytest.param(
            [names("a", "b"), names("b")], "consumer", names("a"), False, id="common to some"
        ),
        pytest.param([names("a")], "consumer", {}, False, id="no protocols"),
    ],
)
def test_supports(members, protocol_type, protocols, expected):
    group = group_of(*members)
    if members:
        group.become_preparing(START)
    assert group.supports(protocol_type, protocols) is expected


def test_support_is_counted_down_again():
    group = group_of(names("a"), names("a", "b"))
    group.become_preparing(START)
    group.remove(MemberId("m0"))
    assert group.supports("consumer", names("b"))
    group.change_protocols(group.members[MemberId("m1")], names("c"))
    assert not group.supports("consumer", names("b"))


def test_the_leader_is_followed_by_the_next_member():
    group = group_of(names("a"), names("a"))
    assert group.leader == "m0"
    group.remove(MemberId("m0"))
    assert group.leader == "m1"
    group.remove(MemberId("m1"))
    assert group.leader is None


def test_illegal_transition_is_broken():
    group = group_of(names("a"))
    with pytest.raises(Broken, match="is Empty, from where it cannot become Stable"):
        group.become_stable(START, {})


def test_one_lying_subscription_makes_every_topic_subscribed():
    group = group_of(names("a"), {"a": b"\0\0\x7f\xff\xff\xff"})
    group.become_preparing(START)
    group.become_completing(START)
    assert group.subscribes_to("orders")
    assert group.subscribes_to("whatever")


def test_identity_of_static_members():
    group = group_of()
    group.add(member("m", names("a"), "i"))
    assert group.check_identity(MemberId("m"), "i").id == "m"
    assert group.check_identity(MemberId("m"), None).id == "m"
    for member_id, instance_id, code in (
        ("x", None, ErrorCode.UNKNOWN_MEMBER_ID),
        ("m", "j", ErrorCode.UNKNOWN_MEMBER_ID),
        ("x", "i", ErrorCode.FENCED_INSTANCE_ID),
    ):
        with pytest.raises(ApiError) as refused:
            group.check_identity(MemberId(member_id), instance_id)
        assert refused.value.code == code
