# SPDX-License-Identifier: Apache-2.0
"""Static members of classic groups: what the scenarios do not tell (KIP-345)."""

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
    sync,
)
from tests.coordinator.desk import Desk

from kohort.errors import ErrorCode
from kohort.records.consumer_protocol import ConsumerProtocolSubscription, encode
from kohort.terms import GroupId, GroupState
from kohort.wire.messages.describe_groups import DescribeGroupsRequest


def group_in(desk):
    return desk.shard.groups.classic(GroupId("g"))


def at_rest(desk, *instances, **fields):
    """A group of static members at rest, by instance id; each is assigned its instance id."""
    for instance_id in instances:
        join(desk, group_instance_id=instance_id, **fields)
        for known, member_id in list(group_in(desk).instances.items()):
            if known != instance_id:
                join(desk, member_id, group_instance_id=known, **fields)
    group = group_in(desk)
    assigned = {one: known.encode() for known, one in group.instances.items()}
    sync(desk, group.leader, group.generation, assigned)
    for member_id in assigned:
        assert sync(desk, member_id, group.generation).answer.error_code == 0
    assert group.state is GroupState.STABLE
    return dict(group.instances)


@pytest.mark.parametrize("version", range(5, 10))
def test_a_static_member_need_not_come_back_with_an_id(version):
    """K848-106: its id begins with the instance id, and describe shows both."""
    desk = Desk(**QUICK)
    answer = join(desk, version=version, group_instance_id="i").answer
    assert answer.error_code == 0
    assert answer.member_id.startswith("i-")
    described = desk.told(DescribeGroupsRequest(groups=["g"]), 5)
    (member,) = described.groups[0].members
    assert (member.member_id, member.group_instance_id) == (answer.member_id, "i")


def test_commits_are_checked_by_instance_id():
    """Nobody else loses anything by a restart, and the old client can do no harm (K848-109)."""
    desk = Desk(**QUICK)
    (old,) = at_rest(desk, "i").values()
    new = join(desk, group_instance_id="i").answer.member_id
    for member_id, instance_id, code in (
        (old, "i", ErrorCode.FENCED_INSTANCE_ID),
        (old, None, ErrorCode.UNKNOWN_MEMBER_ID),
        (new, "j", ErrorCode.UNKNOWN_MEMBER_ID),
        (new, "i", ErrorCode.NONE),
        (new, None, ErrorCode.NONE),
    ):
        caller = {"member_id": member_id, "group_instance_id": instance_id}
        caller["generation_id_or_member_epoch"] = 1
        assert commit(desk, {("orders", 0): 1}, **caller) == {("orders", 0): code}


def test_the_group_remembers_what_the_successor_said():
    """Also what it subscribes to and where it is, as after a restart of the broker."""
    desk = Desk(**QUICK)
    at_rest(desk, "i")
    metadata = encode(ConsumerProtocolSubscription(topics=["payments"], owned_partitions=[]))
    request = join_request(group_instance_id="i", protocols={"range": metadata})
    desk.ask(request, 9, client="another")
    (member,) = group_in(desk).members.values()
    assert member.client.id == "another"
    assert group_in(desk).topics == {"payments"}
    desk.restart()
    assert group_in(desk).topics == {"payments"}
    (again,) = group_in(desk).members.values()
    assert (again.id, again.client, again.assignment) == (member.id, member.client, b"i")


def test_a_restart_with_none_of_the_old_protocols_does_not_wait_for_the_old_self():
    """It is that member, with what it brings now; upstream waits for the end of the old session."""
    desk = Desk(**QUICK)
    at_rest(desk, "i")
    other = {"group_instance_id": "i", "protocols": {"sticky": SUBSCRIBED}}
    assert join(desk, **other).answer.protocol_name == "sticky"
    join(desk, "", group_instance_id="j", protocols={"sticky": SUBSCRIBED})
    third = {**other, "protocols": {"range": SUBSCRIBED}}
    assert join(desk, **third).answer.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.parametrize("synced", [True, False])
def test_a_successor_has_as_much_time_to_sync(synced):
    """Whose client had not synced yet must, or it is left behind."""
    desk = Desk(**QUICK)
    lasting = {"session_timeout_ms": 300_000}
    join(desk, group_instance_id="i", **lasting)
    member_id = group_in(desk).instances["i"]
    join(desk, group_instance_id="j", **lasting)
    join(desk, member_id, group_instance_id="i", **lasting)
    generation = group_in(desk).generation
    sync(desk, member_id, generation, {})
    new = join(desk, group_instance_id="j", **lasting).answer.member_id
    if synced:
        assert sync(desk, new, generation, group_instance_id="j").answer.error_code == 0
    desk.wait(60_001)
    assert (group_in(desk).state is GroupState.STABLE) == synced
    assert ("j" in group_in(desk).instances) == synced


def test_who_is_static_and_does_not_join_again_stays_as_long_as_its_session():
    desk = Desk(**QUICK)
    long = {"session_timeout_ms": 90_000}
    members = at_rest(desk, "i", "j", **long)
    leader = next(iter(members))
    asked = join(desk, members[leader], group_instance_id=leader, **long)
    desk.wait(60_000)  # the rebalance timeout
    assert asked.answer.error_code == 0
    assert {one.group_instance_id for one in asked.answer.members} == {"i", "j"}
    assert set(group_in(desk).instances) == {"i", "j"}
    desk.wait(90_000)
    assert "j" not in group_in(desk).instances


@pytest.mark.parametrize("timeout_ms", [-(1 << 31), 0, 1])
def test_members_that_name_no_time_for_joining_keep_nobody_busy(timeout_ms):
    """Nobody has joined, and all may stay: looking again at once would find the same, for ever."""
    desk = Desk(**QUICK)
    at_rest(desk, "i", "j")
    member_id, _ = (
        join(desk, group_instance_id=one, rebalance_timeout_ms=timeout_ms).answer.member_id
        for one in ("i", "j")
    )
    leave(desk, ("", "j"))
    began = desk.now
    for _ in range(10):
        desk.now = max(desk.now, desk.driver.wake_at())
        desk.driver.turn(desk.now)
    assert desk.now - began > 1000
    assert group_in(desk).state is GroupState.PREPARING_REBALANCE
    assert join(desk, member_id, group_instance_id="i").answer.error_code == 0


def test_an_id_that_was_given_out_is_not_for_static_members():
    """Its owner asked for it without an instance id (upstream fails here)."""
    desk = Desk(**QUICK)
    at_rest(desk, "i")
    pending = join(desk).answer.member_id
    for instance_id, code in (
        ("i", ErrorCode.FENCED_INSTANCE_ID),
        ("j", ErrorCode.UNKNOWN_MEMBER_ID),
    ):
        assert join(desk, pending, group_instance_id=instance_id).answer.error_code == code
    assert set(group_in(desk).instances) == {"i"}
    assert join(desk, pending).answer is None


def test_a_full_group_takes_back_who_holds_an_instance_id():
    """It takes no place beside itself (KAFKA-20601): a rolling restart ends nobody."""
    desk = Desk(group_max_size=1, **QUICK)
    (member_id,) = at_rest(desk, "i").values()
    answer = join(desk, group_instance_id="i").answer
    assert answer.error_code == ErrorCode.NONE
    assert heartbeat(desk, member_id, 1, group_instance_id="i") == ErrorCode.FENCED_INSTANCE_ID
    assert heartbeat(desk, answer.member_id, 1, group_instance_id="i") == ErrorCode.NONE
    other = join(desk, group_instance_id="j").answer
    assert other.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED


def test_a_static_and_a_dynamic_member_side_by_side():
    """A dynamic one has no instance id to remove it by, not even an empty one."""
    desk = Desk(**QUICK)
    member_id, _ = newcomer(desk)
    join(desk, group_instance_id="")
    join(desk, member_id)
    assert set(group_in(desk).instances) == {""}
    assert leave(desk, "").members[0].error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert leave(desk, ("", "")).members[0].error_code == ErrorCode.NONE


def test_a_group_too_large_for_the_log_begins_again_rather_than_to_lose_a_member(monkeypatch):
    """The outcome of the next rebalance is refused where it does not fit, with an answer."""
    desk = Desk(**QUICK)
    at_rest(desk, "i")
    monkeypatch.setattr(desk.shard, "record_limit", lambda: 200)
    longer = {"range": SUBSCRIBED, "other": b"x" * 100}
    asked = join(desk, group_instance_id="i", protocols=longer)
    assert asked.answer.error_code == 0
    assert group_in(desk).state is GroupState.COMPLETING_REBALANCE
    assert not asked.answer.skip_assignment
