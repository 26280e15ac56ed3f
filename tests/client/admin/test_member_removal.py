# SPDX-License-Identifier: Apache-2.0
"""Members removed by an administrator: what is sent, and what each outcome says."""

import pytest
from tests.client.scripted import CLOSE, ScriptedCluster, asynchronous, in_turn

from kohort.client.admin import AdminClient, MemberToRemove
from kohort.client.admin.member_removal import MANY, REASON, REASONS
from kohort.errors import ErrorCode
from kohort.wire.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberResponse,
)


def left(codes=None):
    """A coordinator that lets them go, or answers these codes by id. It fills in the member ids of
    instances, as ours does, and changes the order.
    """

    def answer(asked):
        members = [
            MemberResponse(
                member_id=one.member_id or "filled-in",
                group_instance_id=one.group_instance_id,
                error_code=(codes or {}).get(one.group_instance_id or one.member_id, 0),
            )
            for one in reversed(asked.request.members)
        ]
        return LeaveGroupResponse(members=members)

    return answer


@pytest.mark.parametrize(
    ("newest", "reason"), [(5, REASON), (4, None), (3, None)], ids=["v5", "v4", "v3"]
)
@asynchronous
async def test_members_are_named_by_either_id_and_answered_under_what_was_given(newest, reason):
    """K848-192."""
    by_id = MemberToRemove("m-1")
    both = MemberToRemove("m-2", "i-2")
    answers = {LeaveGroupRequest: left({"i-1": 25, "i-2": 82})}
    async with ScriptedCluster(2, answers) as scripted, scripted.admin() as admin:
        scripted.offer("LeaveGroup", f"0-{newest}")
        scripted.coordinators = {"g": 1}
        result = await admin.remove_members("g", ["i-1", by_id, both])
    assert list(result) == ["i-1", by_id, both]
    assert result[by_id] is None
    assert result.failed["i-1"].code is ErrorCode.UNKNOWN_MEMBER_ID
    assert result.failed["i-1"].message == "group g has no instance i-1"
    assert result.failed[both].code is ErrorCode.FENCED_INSTANCE_ID
    assert result.failed[both].message == (
        "group g has another member under instance i-2 as member m-2"
    )
    (asked,) = scripted.sent("LeaveGroup")
    assert [
        (one.member_id, one.group_instance_id, one.reason) for one in asked.request.members
    ] == [("", "i-1", reason), ("m-1", None, reason), ("m-2", "i-2", reason)]


@asynchronous
async def test_a_broker_that_is_too_old_is_named_and_a_reason_never_dropped_in_silence():
    async with (
        ScriptedCluster(1, {LeaveGroupRequest: left()}) as scripted,
        scripted.admin() as admin,
    ):
        scripted.offer("LeaveGroup", "0-2")
        refused = await admin.remove_members("g", "i")
        assert MANY.purpose in refused.failed["i"].message
    async with (
        ScriptedCluster(1, {LeaveGroupRequest: left()}) as scripted,
        scripted.admin() as admin,
    ):
        scripted.offer("LeaveGroup", "0-4")
        refused = await admin.remove_members("g", "i", reason="because")
        assert f"{REASONS.purpose} needs v5 (KIP-800" in refused.failed["i"].message
        assert scripted.sent("LeaveGroup") == []
        assert (await admin.remove_members("g", "i")).all() == {"i": None}


@asynchronous
async def test_a_member_that_is_given_twice_alike_is_asked_for_once():
    async with ScriptedCluster(1, {LeaveGroupRequest: left()}) as scripted, scripted.admin() as it:
        given = ["host-7", "host-7", MemberToRemove("host-7"), MemberToRemove("host-7")]
        result = await it.remove_members("g", given)
    assert result.all() == {"host-7": None, MemberToRemove("host-7"): None}
    (asked,) = scripted.sent("LeaveGroup")
    assert len(asked.request.members) == 2


@asynchronous
async def test_only_those_that_are_left_are_asked_for_again():
    answers = {LeaveGroupRequest: in_turn(left({"i-2": 16}), left({"i-2": 14}), left())}
    async with ScriptedCluster(1, answers) as scripted, scripted.admin() as admin:
        result = await admin.remove_members("g", ["i-1", "i-2"])
    assert result.all() == {"i-1": None, "i-2": None}
    asked = [
        [one.group_instance_id for one in each.request.members]
        for each in scripted.sent("LeaveGroup")
    ]
    assert asked == [["i-1", "i-2"], ["i-2"], ["i-2"]]


@asynchronous
async def test_a_removal_that_may_have_happened_says_so():
    answers = {LeaveGroupRequest: in_turn(left({"i": 15}), left({"i": 25}), lambda _: CLOSE)}
    async with ScriptedCluster(1, answers) as scripted, scripted.admin() as admin:
        result = await admin.remove_members("g", "i")
        assert "may have been removed by the attempt before" in result.failed["i"].message
        result = await admin.remove_members("g", "i")
        assert result.failed["i"].code is ErrorCode.NETWORK_EXCEPTION
    assert len(scripted.sent("LeaveGroup")) == 3


@asynchronous
async def test_the_refusal_of_a_group_is_that_of_each_member():
    answers = {LeaveGroupRequest: lambda _: LeaveGroupResponse(error_code=30)}
    async with ScriptedCluster(1, answers) as scripted, scripted.admin() as admin:
        result = await admin.remove_members("g", ["i-1", "i-2"])
        assert list(await admin.remove_members("g", [])) == []  # none is none, and never all
    assert [error.message for error in result.failed.values()] == [
        "User:ANONYMOUS is not authorized for group g"
    ] * 2


@pytest.mark.parametrize(
    ("call", "kind", "why"),
    [
        (lambda it: it.remove_members(3), TypeError, "group_id is 3, expected a text"),
        (lambda it: it.remove_members("g", 3), TypeError, "members is 3, expected instance ids"),
        (lambda it: it.remove_members("g", [3]), TypeError, "members has 3, expected an instance"),
        (lambda it: it.remove_members("g", ""), ValueError, "members has '', expected an id that"),
        (
            lambda it: it.remove_members("g", MemberToRemove()),
            ValueError,
            "members has MemberToRemove(member_id='', instance_id=None), expected an id that",
        ),
        (
            lambda it: it.remove_members("g", ["host-7", "m", MemberToRemove("old", "host-7")]),
            ValueError,
            "members has 'host-7' and MemberToRemove(member_id='old', instance_id='host-7'), expec",
        ),
        (
            lambda it: it.remove_members("g", [MemberToRemove("m"), MemberToRemove("m", "")]),
            ValueError,
            "members has MemberToRemove(member_id='m', instance_id=None) and MemberToRemove(mem",
        ),
        (
            lambda it: it.remove_members("g", MemberToRemove(3)),
            TypeError,
            "the member id in members is 3, expected a text",
        ),
        (lambda it: it.remove_members("g", reason=3), TypeError, "reason is 3, expected a text"),
        (
            lambda it: it.remove_members("g", reason="x" * 256),
            ValueError,
            "reason has 256 characters, expected 255 at most (KIP-800)",
        ),
    ],
)
@asynchronous
async def test_what_makes_no_sense_is_named_before_anybody_is_asked(call, kind, why):
    async with AdminClient("127.0.0.1:1") as admin:
        with pytest.raises(kind) as raised:
            await call(admin)
    assert str(raised.value).startswith(why)
