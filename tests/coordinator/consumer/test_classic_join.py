# SPDX-License-Identifier: Apache-2.0
"""JoinGroup in a consumer group."""

import pytest
from tests.coordinator.classics import QUICK, heartbeat, join, leave, newcomer, sync
from tests.coordinator.consumers import Consumer, beat, kinds
from tests.coordinator.desk import Desk
from tests.coordinator.mixed import Classic, go_on, mixed_group, subscribed, together

from kohort.coordinator.consumer import embedded, timers
from kohort.coordinator.consumer.member import MemberState
from kohort.errors import ErrorCode
from kohort.terms import GroupState
from kohort.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from kohort.wire.messages.describe_groups import DescribeGroupsRequest

RANGE = {"range": subscribed()}


def consumers(*members, **settings):
    """A consumer group at rest."""
    desk = Desk(**QUICK, **settings)
    together(desk, *(Consumer(desk, one).join() for one in members or ("new",)))
    desk.written()
    return desk


def refusal(desk, member_id="", **fields):
    answer = join(desk, member_id, **{"protocols": RANGE, **fields}).answer
    assert answer.member_id == ""
    return answer.error_code


@pytest.mark.parametrize(
    ("policy", "joins"),
    [("disabled", False), ("upgrade", True), ("downgrade", True), ("bidirectional", True)],
)
def test_the_policy_decides(policy, joins):
    """K848-117."""
    desk = consumers(group_consumer_migration_policy=policy)
    expected = ErrorCode.MEMBER_ID_REQUIRED if joins else ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert join(desk, protocols=RANGE).answer.error_code == expected


def test_a_new_member_gets_an_id_first_and_nobody_waits_for_it():
    """K848-118."""
    desk = consumers()
    member_id, joined = newcomer(desk, protocols=RANGE)
    assert len(member_id) == 22
    answer = joined.answer
    assert (answer.error_code, answer.generation_id, answer.member_id) == (0, 3, member_id)
    assert (answer.protocol_type, answer.protocol_name) == ("consumer", "range")
    assert (answer.leader, answer.members) == ("", [])
    assert kinds(desk.written()) == [
        *("member", "epoch", "target", "target", "target epoch", "current"),
    ]


def test_an_old_client_joins_at_once():
    desk = consumers()
    answer = join(desk, version=3, protocols={"range": subscribed(version=0)}).answer
    assert (answer.error_code, len(answer.member_id)) == (0, 22)
    assert sync(desk, answer.member_id, 3).answer.assignment[:2] == b"\0\0"


def test_any_id_is_that_of_a_new_member():
    desk = consumers()
    assert join(desk, "mine", protocols=RANGE).answer.member_id == "mine"


def test_who_was_thrown_out_and_says_that_it_owns_something_gives_that_up_at_once():
    """Simulator, seed 5539: its session was over while the disk kept its last answer back. It came
    again as if nothing had happened, and read on while another member had its partition.
    """
    desk = consumers("new", "other")
    owned = {"orders": [0]}
    code = refusal(desk, "mine", protocols={"range": subscribed(owned=owned)})
    assert (code, desk.written()) == (ErrorCode.UNKNOWN_MEMBER_ID, [])
    assert join(desk, "mine", protocols=RANGE).answer.error_code == 0
    assert join(desk, "mine", protocols={"range": subscribed(owned=owned)}).answer.error_code == 0


def test_mixed_groups_are_described_with_the_protocol_of_each_member():
    """K848-118: MemberType is 0 for a classic member and 1 for one of the consumer protocol."""
    desk = Desk(**QUICK)
    (classic,), _ = mixed_group(desk, 1)
    asked = ConsumerGroupDescribeRequest(group_ids=["g"])
    (group,) = desk.told(asked, 1).groups
    assert {one.member_id: one.member_type for one in group.members} == {classic.id: 0, "new": 1}
    (group,) = desk.told(DescribeGroupsRequest(groups=["g"]), 6).groups
    assert group.error_code == ErrorCode.GROUP_ID_NOT_FOUND


@pytest.mark.parametrize(
    "fields",
    [
        {"protocol_type": "connect"},
        {"protocols": {"exotic": subscribed()}},
        {"protocols": {}},
    ],
)
def test_a_protocol_that_the_others_do_not_have_is_refused(fields):
    desk = Desk(**QUICK)
    mixed_group(desk, 1)
    assert refusal(desk, **fields) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_a_group_without_classic_members_takes_any_protocol():
    desk = consumers()
    assert refusal(desk, protocols={}) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert join(desk, "m", protocols={"exotic": subscribed()}).answer.error_code == 0


def test_a_full_group_takes_in_nobody():
    desk = Desk(**QUICK, group_consumer_max_size=2)
    (classic,), _ = mixed_group(desk, 1)
    assert refusal(desk) == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert refusal(desk, "other") == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert join(desk, classic.id, protocols=RANGE).answer.error_code == 0


@pytest.mark.parametrize("metadata", [b"", b"\0\1\0\0\0\1", b"\xff\xff"])
@pytest.mark.parametrize("member", ["m", "new"])
def test_a_subscription_that_lies_is_refused(metadata, member):
    desk = consumers("new", "other")
    code = refusal(desk, member, protocols={"range": metadata})
    assert code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert desk.written() == []


def test_bytes_that_no_record_has_room_for_are_not_read(monkeypatch):
    """A request may have eight times as many: reading them would hold up everybody for long."""
    desk = consumers("new", "other")
    read = []
    monkeypatch.setattr(embedded, "subscription", read.append)
    half = bytes(desk.shard.record_limit() // 2 + 1)
    for protocols in ({"range": half + half}, {"range": half, "sticky": half}):
        assert refusal(desk, "m", protocols=protocols) == ErrorCode.MESSAGE_TOO_LARGE
    assert (read, desk.written()) == ([], [])


def test_a_lying_static_member_takes_nothing_over():
    desk = Desk(**QUICK)
    together(desk, Consumer(desk, "new", instance_id="i").join(), Consumer(desk, "b").join())
    desk.written()
    code = refusal(desk, group_instance_id="i", protocols={"range": b"\0"})
    assert (code, desk.written()) == (ErrorCode.UNKNOWN_SERVER_ERROR, [])


def test_a_static_member_takes_over_from_the_other_protocol():
    """K848-107: even while that one is there, and nobody rebalances."""
    desk = Desk(**QUICK)
    consumer = Consumer(desk, "new", instance_id="i").join()
    other = Consumer(desk, "b").join()
    together(desk, consumer, other)
    classic = Classic(desk, group_instance_id="i").join()
    group = desk.shard.groups.consumer("g")
    assert (classic.owned, group.state) == (consumer.owned, GroupState.STABLE)
    assert beat(desk, "new", 3, instance_id="i").error_code == ErrorCode.FENCED_INSTANCE_ID
    back = Consumer(desk, "newer", instance_id="i").join()
    assert back.owned == consumer.owned
    assert heartbeat(desk, classic.id, 3, group_instance_id="i") == ErrorCode.FENCED_INSTANCE_ID
    together(desk, back, other)
    assert group.classic_members == 0
    assert group.group_epoch == 3


def test_a_static_member_with_an_id_must_be_the_one():
    desk = Desk(**QUICK)
    together(desk, Consumer(desk, "new", instance_id="i").join(), Consumer(desk, "b").join())
    code = refusal(desk, "m", group_instance_id="j")
    assert code == ErrorCode.UNKNOWN_MEMBER_ID
    code = refusal(desk, "m", group_instance_id="j", protocols={"range": b"\0"})
    assert code == ErrorCode.UNKNOWN_MEMBER_ID  # its subscription is read once it may speak
    code = refusal(desk, "m", group_instance_id="i")
    assert code == ErrorCode.FENCED_INSTANCE_ID


def test_a_new_static_member_needs_no_second_join():
    desk = consumers()
    classic = Classic(desk, group_instance_id="i").join()
    assert classic.generation == 3
    assert desk.shard.groups.consumer("g").instances == {"i": classic.id}


def test_a_cooperative_member_gives_up_before_it_receives():
    """Its generation stays until it joins without what it gives up."""
    desk = consumers()
    consumer = Consumer(desk, "new")
    consumer.epoch, consumer.owned = 2, {"orders": [0, 1, 2, 3]}
    classic = Classic(desk, eager=False).join()
    together(desk, classic, consumer)
    owned = classic.owned
    beat(desk, "newer", 0)
    assert heartbeat(desk, classic.id, 3) == ErrorCode.REBALANCE_IN_PROGRESS
    again = join(desk, classic.id, protocols={"range": subscribed(owned=owned)}).answer
    assert again.generation_id == 3
    group = desk.shard.groups.consumer("g")
    assert group.members[classic.id].state is MemberState.UNREVOKED_PARTITIONS
    assert sync(desk, classic.id, 3).answer.error_code == 0
    assert heartbeat(desk, classic.id, 3) == ErrorCode.REBALANCE_IN_PROGRESS
    assert join(desk, classic.id, protocols=RANGE).answer.generation_id == 4


def test_an_eager_member_owns_nothing_when_it_joins():
    desk = consumers()
    classic = Classic(desk).join()
    go_on([classic])
    beat(desk, "newer", 0)
    assert join(desk, classic.id, protocols=RANGE).answer.generation_id == 4


def test_a_member_that_changes_its_protocol_loses_its_pattern_and_its_vote():
    desk = Desk(**QUICK)
    fields = {"subscribed_topic_regex": "ord.*", "server_assignor": "range"}
    consumer = Consumer(desk, "new", instance_id="i", **fields).join()
    together(desk, consumer, Consumer(desk, "b").join())
    assert desk.shard.groups.consumer("g").assignor == "range"
    Classic(desk, group_instance_id="i").join()
    group = desk.shard.groups.consumer("g")
    assert (group.assignor, list(group.expressions), group.resolved) == ("uniform", [], {})


def test_a_member_goes_over_under_its_own_id_and_back():
    desk = consumers("a", "b")
    assert join(desk, "a", protocols=RANGE).answer.generation_id == 3
    group = desk.shard.groups.consumer("g")
    assert group.classic_members == 1
    assert (timers.SYNC, "g", "a") in desk.shard.deadlines
    assert beat(desk, "a", 3).error_code == 0
    assert group.classic_members == 0
    assert (timers.SYNC, "g", "a") not in desk.shard.deadlines
    desk.wait(44_000)
    assert set(group.members) == {"a", "b"}


def test_a_classic_member_leaves_by_the_new_protocol():
    desk = Desk(**QUICK)
    (classic,), _ = mixed_group(desk, 1)
    assert beat(desk, classic.id, -1).error_code == 0
    assert list(desk.shard.groups.consumer("g").members) == ["new"]


def test_a_member_that_never_syncs_is_left_behind():
    desk = consumers()
    classic, _ = newcomer(desk, protocols=RANGE, rebalance_timeout_ms=5_000)
    desk.wait(5_001)
    assert list(desk.shard.groups.consumer("g").members) == ["new"]
    assert sync(desk, classic, 3).answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_who_is_told_to_join_and_does_not_is_left_behind():
    desk = Desk(**QUICK)
    (classic,), _ = mixed_group(desk, 1, rebalance_timeout_ms=5_000)
    beat(desk, "newer", 0)
    for _ in range(6):
        heartbeat(desk, classic.id, 2)  # to be told again gives no more time
        desk.wait(1_000)
    assert set(desk.shard.groups.consumer("g").members) == {"new", "newer"}


def test_leaving_is_by_id_or_by_instance_in_either_protocol():
    desk = Desk(**QUICK)
    Consumer(desk, "new", instance_id="i").join()
    static = Classic(desk, group_instance_id="j").join()
    dynamic = Classic(desk).join()
    left = leave(desk, ("", "i"), ("", "j"), dynamic.id, dynamic.id, (static.id, "x"), "nobody")
    codes = [one.error_code for one in left.members]
    assert codes == [0, 0, 0, 0, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.UNKNOWN_MEMBER_ID]
    assert desk.shard.groups.consumer("g").state is GroupState.EMPTY
