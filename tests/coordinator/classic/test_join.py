# SPDX-License-Identifier: Apache-2.0
"""JoinGroup: which group, is there room, is the caller known, and when it is answered."""

import pytest
from tests.coordinator.classics import (
    QUICK,
    SUBSCRIBED,
    commit,
    heartbeat,
    join,
    join_request,
    leave,
    newcomer,
    stable,
    sync,
)
from tests.coordinator.consumers import beat
from tests.coordinator.desk import Desk

from kohort.errors import ErrorCode
from kohort.records.schemas import GroupMetadataKey
from kohort.sim.checkers.replay import differences
from kohort.terms import GroupId, GroupState
from kohort.wire.codec import decode, encode
from kohort.wire.messages.join_group import JoinGroupResponse


def group_in(desk: Desk):
    return desk.shard.groups.classic(GroupId("g"))


@pytest.mark.parametrize(
    ("member_id", "fields", "code", "echoed"),
    [
        ("", {"group_id": ""}, ErrorCode.INVALID_GROUP_ID, ""),
        ("", {"session_timeout_ms": 5_999}, ErrorCode.INVALID_SESSION_TIMEOUT, ""),
        ("who", {"session_timeout_ms": 1_800_001}, ErrorCode.INVALID_SESSION_TIMEOUT, "who"),
        ("who", {}, ErrorCode.UNKNOWN_MEMBER_ID, "who"),
        ("", {"protocols": {}}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL, ""),
        ("", {"protocol_type": ""}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL, ""),
    ],
)
def test_refusals_of_a_group_that_is_not_there(member_id, fields, code, echoed):
    desk = Desk()
    answer = join(desk, member_id, **fields).answer
    assert (answer.error_code, answer.member_id, answer.generation_id) == (code, echoed, -1)
    assert (answer.leader, answer.members, answer.protocol_type) == ("", [], None)


@pytest.mark.parametrize(
    ("member_id", "fields", "code", "echoed"),
    [
        ("who", {}, ErrorCode.UNKNOWN_MEMBER_ID, "who"),
        ("", {"protocols": {"other": b""}}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL, ""),
        ("who", {"protocols": {"other": b""}}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "who"),
        ("", {"protocol_type": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL, ""),
    ],
)
def test_refusals_of_a_group_with_members(member_id, fields, code, echoed):
    desk = Desk(**QUICK)
    stable(desk)
    answer = join(desk, member_id, **fields).answer
    assert (answer.error_code, answer.member_id) == (code, echoed)
    assert group_in(desk).state is GroupState.STABLE


def test_a_new_member_comes_back_with_the_id_it_is_given():
    desk = Desk(**QUICK)
    first = join(desk).answer
    assert first.error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert first.member_id == "app-00000000-0000-0000-0000-000000000001"
    second = join(desk, first.member_id).answer
    assert (second.error_code, second.generation_id) == (0, 1)
    assert second.leader == second.member_id == first.member_id
    assert (second.protocol_type, second.protocol_name) == ("consumer", "range")
    assert [(one.member_id, one.metadata) for one in second.members] == [
        (first.member_id, SUBSCRIBED)
    ]


def test_a_client_that_gives_itself_an_endless_name():
    desk = Desk(**QUICK)
    asked = desk.ask(join_request(), 3, client="x" * 32_767)
    assert len(asked.answer.member_id) == 1037


def test_an_id_that_is_not_used_in_time_is_forgotten():
    desk = Desk(**QUICK)
    member_id = join(desk).answer.member_id
    desk.wait(10_000)
    assert join(desk, member_id).answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("version", range(4))
def test_before_v4_a_new_member_is_let_in_at_once(version):
    desk = Desk(**QUICK)
    answer = join(desk, version=version).answer
    assert (answer.error_code, answer.generation_id) == (0, 1)
    assert answer.member_id.startswith("app-")


def test_v0_has_no_rebalance_timeout_and_takes_the_session_timeout():
    desk = Desk(**QUICK)
    join(desk, version=0, rebalance_timeout_ms=-1)
    assert group_in(desk).rebalance_timeout_ms == 10_000


@pytest.mark.parametrize("fields", [{}, {"protocols": {}}])
def test_a_group_exists_from_its_first_join_even_a_refused_one(fields):
    desk = Desk(**QUICK)
    assert join(desk, **fields).answer.error_code != 0
    (record,) = desk.log
    assert record.key == GroupMetadataKey(group="g")
    assert (record.value.protocol_type, record.value.generation) == ("", 0)
    assert (record.value.leader, record.value.members) == (None, [])
    desk.restart()
    assert group_in(desk).state is GroupState.EMPTY


def test_a_refused_session_timeout_makes_no_group():
    desk = Desk()
    join(desk, session_timeout_ms=1)
    assert desk.log == []
    assert len(desk.shard.groups) == 0


def test_a_group_that_only_holds_offsets_can_be_joined_and_keeps_them():
    desk = Desk(**QUICK)
    commit(desk, {("orders", 0): 5})
    desk.written()
    stable(desk)
    assert [record.value.generation for record in desk.written()] == [1]
    assert desk.shard.offsets.holds(GroupId("g"), "orders", 0)


# -- the initial delay (KIP-134)


def test_the_first_member_waits_for_others():
    desk = Desk(group_initial_rebalance_delay_ms=1500)
    _, alone = newcomer(desk)
    desk.wait(1499)
    assert alone.answer is None
    desk.wait(1)
    assert alone.answer.generation_id == 1


@pytest.mark.parametrize(
    ("rebalance_timeout_ms", "second_after_ms", "complete_after_ms"),
    [
        pytest.param(60_000, 800, 3000, id="the delay begins again"),
        pytest.param(2000, 1000, 2000, id="never beyond the rebalance timeout"),
        pytest.param(1000, 1000, 1500, id="a timeout shorter than the delay"),
    ],
)
def test_a_second_member_prolongs_the_delay(
    rebalance_timeout_ms, second_after_ms, complete_after_ms
):
    desk = Desk(group_initial_rebalance_delay_ms=1500)
    _, first = newcomer(desk, rebalance_timeout_ms=rebalance_timeout_ms)
    desk.wait(second_after_ms)
    _, second = newcomer(desk, rebalance_timeout_ms=rebalance_timeout_ms)
    desk.wait(complete_after_ms - second_after_ms - 1)
    assert (first.answer, second.answer) == (None, None)
    desk.wait(1)
    assert (first.answer.generation_id, second.answer.generation_id) == (1, 1)
    assert [len(first.answer.members), len(second.answer.members)] == [2, 0]


def test_a_group_left_by_all_during_the_delay_becomes_empty():
    desk = Desk(group_initial_rebalance_delay_ms=1500)
    member_id, joining = newcomer(desk)
    leave(desk, member_id)
    assert joining.answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert joining.answer.member_id == ""
    desk.wait(1500)
    assert group_in(desk).state is GroupState.EMPTY
    assert (desk.log[-1].value.generation, desk.log[-1].value.members) == (1, [])


# -- rebalances


def test_a_rebalance_waits_for_all_members():
    desk = Desk(**QUICK)
    (first,) = stable(desk)
    second, joining = newcomer(desk)
    assert group_in(desk).state is GroupState.PREPARING_REBALANCE
    assert heartbeat(desk, first, 1) == ErrorCode.REBALANCE_IN_PROGRESS
    again = join(desk, first)
    assert (again.answer.generation_id, joining.answer.generation_id) == (2, 2)
    assert {one.member_id for one in again.answer.members} == {first, second}
    assert joining.answer.members == []
    assert joining.answer.leader == first


def test_a_rebalance_waits_for_ids_that_were_given_out():
    desk = Desk(**QUICK)
    (first,) = stable(desk)
    second, joining = newcomer(desk)
    third = join(desk).answer.member_id
    again = join(desk, first)
    assert (again.answer, joining.answer) == (None, None)
    join(desk, third)
    assert again.answer.generation_id == 2
    assert {one.member_id for one in again.answer.members} == {first, second, third}


def test_who_is_late_is_left_behind_and_the_leader_replaced():
    desk = Desk(**QUICK)
    (first,) = stable(desk, session_timeout_ms=100_000)
    second, joining = newcomer(desk)
    desk.wait(59_999)
    assert joining.answer is None
    desk.wait(1)
    assert (joining.answer.generation_id, joining.answer.leader) == (2, second)
    assert list(group_in(desk).members) == [second]
    assert heartbeat(desk, first, 2) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_follower_with_nothing_new_is_told_the_generation():
    desk = Desk(**QUICK)
    leader, follower = stable(desk, 2)
    generation = group_in(desk).generation
    answer = join(desk, follower).answer
    assert (answer.error_code, answer.generation_id, answer.members) == (0, generation, [])
    assert answer.leader == leader
    assert group_in(desk).state is GroupState.STABLE


@pytest.mark.parametrize(
    "protocols",
    [
        pytest.param({"range": SUBSCRIBED + b"!"}, id="other bytes"),
        pytest.param({"range": SUBSCRIBED, "sticky": b""}, id="one more"),
    ],
)
def test_a_follower_that_has_changed_starts_a_rebalance(protocols):
    desk = Desk(**QUICK)
    _, follower = stable(desk, 2)
    assert join(desk, follower, protocols=protocols).answer is None
    assert group_in(desk).state is GroupState.PREPARING_REBALANCE


def test_many_rebalances_leave_no_deadlines_behind():
    """A client names the timeout of a rebalance, and may name weeks."""
    desk = Desk(**QUICK)
    long = {"rebalance_timeout_ms": (1 << 31) - 1}
    leader, joined = newcomer(desk, **long)
    for _ in range(200):
        sync(desk, leader, joined.answer.generation_id, {leader: b"x"})
        joined = join(desk, leader, **long)
        desk.wait(100)

    deadlines = desk.shard.deadlines
    assert joined.answer.generation_id == 201
    assert len(deadlines._heap) <= 2 * len(deadlines)  # growth shows nowhere else


def test_a_leader_that_joins_again_always_starts_a_rebalance():
    desk = Desk(**QUICK)
    (leader,) = stable(desk)
    answer = join(desk, leader).answer
    assert (answer.generation_id, len(answer.members)) == (2, 1)


def test_joining_again_before_the_leader_has_synced():
    desk = Desk(**QUICK)
    (leader,) = stable(desk)
    follower, joined = newcomer(desk)
    join(desk, leader)
    assert join(desk, follower).answer.members == []
    assert len(join(desk, leader).answer.members) == 2
    waiting = sync(desk, follower, 2)
    changed = join(desk, follower, protocols={"range": b"", "x": b""})
    assert waiting.answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert changed.answer is None
    assert joined.answer.generation_id == 2
    assert group_in(desk).state is GroupState.PREPARING_REBALANCE


def test_a_second_join_of_one_member_answers_the_first():
    desk = Desk(**QUICK)
    stable(desk)
    member_id, lost = newcomer(desk)
    again = join(desk, member_id)
    assert lost.answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert lost.answer.member_id == member_id
    assert again.answer is None
    assert group_in(desk).parked_joins == 1


@pytest.mark.parametrize(
    "metadata", [b"\xff\xff junk", b"\0\0\xff\xff\xff\xff", b"\0\0\x7f\xff\xff\xff", b"", b"\0"]
)
def test_a_subscription_that_lies_does_not_hang_the_group(metadata):
    """Apache Kafka 4.3.1 never answers the first three."""
    desk = Desk(**QUICK)
    stable(desk, protocols={"range": metadata})
    assert group_in(desk).state is GroupState.STABLE


# -- group.max.size


def test_a_full_group_refuses_newcomers_and_serves_its_members():
    desk = Desk(**QUICK, group_max_size=2)
    leader, follower = stable(desk, 2)
    for version in (3, 9):
        refused = join(desk, version=version).answer
        assert (refused.error_code, refused.member_id) == (ErrorCode.GROUP_MAX_SIZE_REACHED, "")
    assert join(desk, follower).answer.error_code == 0
    assert heartbeat(desk, leader, group_in(desk).generation) == 0


def test_while_joins_are_awaited_only_those_who_wait_count():
    """So newcomers may push out the member that was there."""
    desk = Desk(**QUICK, group_max_size=2)
    (old,) = stable(desk, session_timeout_ms=100_000)
    first, second = join(desk, version=3), join(desk, version=3)
    assert join(desk, version=3).answer.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    refused = join(desk, old).answer
    assert (refused.error_code, refused.member_id) == (ErrorCode.GROUP_MAX_SIZE_REACHED, "")
    assert first.answer is None
    desk.wait(60_000)
    assert first.answer.generation_id == second.answer.generation_id == 2
    assert old not in group_in(desk).members


def test_a_member_that_waits_already_may_ask_again_in_a_full_group():
    desk = Desk(**QUICK, group_max_size=1)
    (old,) = stable(desk)
    again = join(desk, old, protocols={"range": b""})
    assert again.answer.generation_id == 2


# -- groups of another kind


def test_a_classic_join_takes_over_an_empty_consumer_group_and_its_offsets():
    """K848-026."""
    desk = Desk(**QUICK)
    beat(desk, "m", 0)
    commit(desk, {("orders", 0): 5}, member_id="m", generation_id_or_member_epoch=2)
    beat(desk, "m", -1)
    desk.written()
    refused = join(desk, "who").answer
    assert (refused.error_code, refused.member_id) == (ErrorCode.UNKNOWN_MEMBER_ID, "who")
    assert desk.written() == []
    _, joined = newcomer(desk)
    assert joined.answer.generation_id == 1
    assert [type(record.key).__name__ for record in desk.written()] == [
        "ConsumerGroupTargetAssignmentMetadataKey",
        "ConsumerGroupPartitionMetadataKey",
        "ConsumerGroupMetadataKey",
        "GroupMetadataKey",
    ]
    assert desk.shard.offsets.holds(GroupId("g"), "orders", 0)
    desk.restart()
    assert group_in(desk).state is GroupState.EMPTY


def test_a_consumer_group_with_members_refuses_a_classic_join():
    """K848-002, where no group migrates."""
    desk = Desk(**QUICK, group_consumer_migration_policy="disabled")
    beat(desk, "m", 0)
    for member_id in ("", "m"):
        refused = join(desk, member_id).answer
        code = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        assert (refused.error_code, refused.member_id) == (code, "")
    assert sync(desk, "m", 2).answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert heartbeat(desk, "m", 2) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_consumer_takes_over_an_empty_classic_group():
    desk = Desk(**QUICK, group_consumer_migration_policy="disabled")
    (leader,) = stable(desk)
    leave(desk, leader)
    expected = join(desk).answer.member_id
    assert beat(desk, "m", 0).error_code == 0
    assert group_in(desk) is None
    assert join(desk, expected).answer.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    desk.wait(20_000)
    desk.restart()
    assert list(desk.shard.groups.consumer(GroupId("g")).members) == ["m"]


def test_a_member_that_says_more_than_a_record_can_hold_is_refused():
    """Its group goes on; without this one batch of the log had 240 MB."""
    desk = Desk(**QUICK)
    stable(desk, 2)
    large = {"range": bytes(1 << 20)}
    answer = join(desk, protocols=large).answer
    assert answer.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    many = {f"p{number}": bytes(200_000) for number in range(6)} | {"range": SUBSCRIBED}
    assert join(desk, protocols=many).answer.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    names = {"n" * 30_000 + str(number): b"" for number in range(40)} | {"range": SUBSCRIBED}
    assert join(desk, protocols=names).answer.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert desk.shard.groups.classic(GroupId("g")).state is GroupState.STABLE
    assert join(desk).answer.error_code == ErrorCode.MEMBER_ID_REQUIRED


def test_members_that_together_say_too_much_are_refused_from_the_first_too_many():
    desk = Desk(**QUICK)
    third = {"range": bytes(400_000)}
    codes = []
    for _ in range(3):
        member_id = join(desk, protocols=third).answer.member_id
        asked = join(desk, member_id, protocols=third)
        codes.append(asked.answer.error_code if asked.answer else 0)
    assert codes[0] == 0
    assert codes[-1] == ErrorCode.GROUP_MAX_SIZE_REACHED


@pytest.mark.parametrize(
    "fields", [{"protocols": {"sticky": b""}}, {"protocol_type": "connect"}, {"protocols": {}}]
)
@pytest.mark.parametrize("member", ["own", "who"])
def test_who_is_refused_for_its_protocols_is_named(member, fields):
    """As upstream names it: a client that asks for several members can tell which was refused."""
    desk = Desk(**QUICK)
    leader = stable(desk, 2)[0]
    member_id = leader if member == "own" else member
    refused = join(desk, member_id, **fields).answer
    assert refused.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert refused.member_id == member_id


def test_who_names_no_group_is_named():
    desk = Desk(**QUICK)
    refused = join(desk, "who", group_id="").answer
    assert (refused.error_code, refused.member_id) == (ErrorCode.INVALID_GROUP_ID, "who")


@pytest.mark.parametrize(("version", "told"), [(6, ""), (7, None), (9, None)])
def test_a_protocol_without_a_name_has_none_from_version_7_on(version, told):
    desk = Desk(**QUICK)
    answer = join(desk, version=3, protocols={"": b""}).answer
    assert answer.error_code == 0
    again = join(desk, answer.member_id, version=version, protocols={"": b""}).answer
    on_the_wire = decode(JoinGroupResponse, version, encode(again, version))
    assert (on_the_wire.error_code, on_the_wire.protocol_name) == (0, told)


def test_a_member_is_described_as_the_client_that_first_joined():
    """K40-18 reads as if a rejoin changed it; Apache Kafka 4.3.1 keeps the first, and so do we."""
    desk = Desk(**QUICK)
    (leader,) = stable(desk)
    desk.ask(join_request(leader), 9, client="another")
    member = group_in(desk).members[leader]
    assert (member.client.id, member.join) == ("app", None)


def test_a_rebalance_timeout_of_minus_one_is_that_of_the_session_as_after_a_restart():
    """So a member is read back whose record has none."""
    desk = Desk(group_initial_rebalance_delay_ms=0)
    stable(desk, rebalance_timeout_ms=-1)
    group = desk.shard.groups.classic("g")
    assert [one.rebalance_timeout_ms for one in group.members.values()] == [10_000]
    assert list(differences(desk.shard, desk.beside().shard)) == []
