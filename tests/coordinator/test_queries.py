# SPDX-License-Identifier: Apache-2.0
"""Requests about groups as a whole, each group answered for itself."""

import pytest
from tests.coordinator.classics import QUICK, SUBSCRIBED, commit, join, leave, newcomer, stable
from tests.coordinator.desk import Desk, replay, topic_id, topics

from kohort.coordinator.share_and_streams import ShareOrStreamsGroup
from kohort.errors import ErrorCode
from kohort.records.codec import Unknown
from kohort.records.share_and_streams import (
    RecordPart,
    ShareOrStreamsMemberValue,
    ShareOrStreamsRecord,
)
from kohort.terms import GroupId, GroupType
from kohort.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from kohort.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)
from kohort.wire.messages.delete_groups import DeleteGroupsRequest
from kohort.wire.messages.describe_groups import DescribeGroupsRequest
from kohort.wire.messages.list_groups import ListGroupsRequest


def consumer(desk: Desk, group_id: str, member_id: str = "m", epoch: int = 0, **fields):
    """A heartbeat of a member that subscribes to orders."""
    joining = epoch == 0
    request = ConsumerGroupHeartbeatRequest(
        **{
            "group_id": group_id,
            "member_id": member_id,
            "member_epoch": epoch,
            "rebalance_timeout_ms": 60_000 if joining else -1,
            "subscribed_topic_names": ["orders"] if joining else None,
            "topic_partitions": [] if joining else None,
            **fields,
        }
    )
    answer = desk.told(request, 1)
    assert answer.error_code == 0
    return answer


@pytest.fixture
def desk() -> Desk:
    """A group of every kind and of most states."""
    desk = Desk(**QUICK)
    commit(desk, {("orders", 0): 1}, group_id="offsets")
    stable(desk)
    join(desk, group_id="pending", protocol_type="connect")
    newcomer(desk, group_id="completing", protocol_type="connect")
    consumer(desk, "consumer")
    consumer(desk, "emptied")
    consumer(desk, "emptied", epoch=-1)
    share = ShareOrStreamsGroup(GroupId("share"), GroupType.SHARE)
    share.put(
        ShareOrStreamsRecord(
            share.type, share.id, "m", RecordPart.MEMBER, ShareOrStreamsMemberValue()
        )
    )
    desk.shard.groups.add(share)
    desk.shard.event_log.begin(desk.shard.groups)
    return desk


def listed(desk: Desk, states=(), types=()) -> list[str]:
    request = ListGroupsRequest(states_filter=list(states), types_filter=list(types))
    return [group.group_id for group in desk.told(request, 5).groups]


def test_every_group_is_listed_with_what_it_is(desk):
    """K40-05, K518-06, K848-001."""
    groups = desk.told(ListGroupsRequest(), 5).groups
    assert {
        one.group_id: (one.protocol_type, one.group_state, one.group_type) for one in groups
    } == {
        "offsets": ("", "Empty", "classic"),
        "g": ("consumer", "Stable", "classic"),
        "pending": ("", "Empty", "classic"),
        "completing": ("connect", "CompletingRebalance", "classic"),
        "consumer": ("consumer", "Stable", "consumer"),
        "emptied": ("consumer", "Empty", "consumer"),
        "share": ("share", "Stable", "share"),
    }


@pytest.mark.parametrize(
    ("states", "types", "expected"),
    [
        (["Stable"], [], {"g", "consumer", "share"}),
        ([" sTABLE "], [], {"g", "consumer", "share"}),
        (["Stable", "completingrebalance"], ["classic"], {"g", "completing"}),
        (["nonsense"], [], set()),
        ([""], [], set()),
        (["nonsense", "Empty"], ["consumer"], {"emptied"}),
        ([], ["CONSUMER"], {"consumer", "emptied"}),
        ([], [" consumer"], set()),
        ([], ["nonsense", "share"], {"share"}),
        ([], [""], set()),
        (["Empty"], ["share"], set()),
    ],
)
def test_filters(desk, states, types, expected):
    """K518-07, K518-09, K848-156."""
    assert set(listed(desk, states, types)) == expected


def described(desk: Desk, *groups: str, version: int = 6):
    request = DescribeGroupsRequest(groups=list(groups))
    return desk.told(request, version).groups


def test_a_stable_group_is_described_with_its_protocol(desk):
    """K40-16."""
    (group,) = described(desk, "g")
    assert (group.error_code, group.error_message, group.group_state) == (0, None, "Stable")
    assert (group.protocol_type, group.protocol_data) == ("consumer", "range")
    (member,) = group.members
    assert (member.client_id, member.client_host) == ("app", "/127.0.0.1")
    assert member.member_metadata == SUBSCRIBED
    assert member.member_assignment == member.member_id.encode()


def test_while_it_rebalances_only_the_last_assignments_are_shown(desk):
    """K40-15, K40-17."""
    newcomer(desk)
    (group,) = described(desk, "g")
    assert (group.group_state, group.protocol_data) == ("PreparingRebalance", "")
    assert [one.member_metadata for one in group.members] == [b"", b""]
    assert [one.member_assignment for one in group.members] == [
        group.members[0].member_id.encode(),
        b"",
    ]


def test_while_it_completes_its_protocol_is_not_told(desk):
    """K40-15, K40-17."""
    (group,) = described(desk, "completing")
    assert (group.group_state, group.protocol_type) == ("CompletingRebalance", "connect")
    assert (group.protocol_data, [one.member_metadata for one in group.members]) == ("", [b""])


def test_a_listing_and_a_description_call_a_state_by_one_name(desk):
    """K518-08."""
    newcomer(desk)  # g rebalances
    told = {one.group_id: one.group_state for one in desk.told(ListGroupsRequest(), 5).groups}
    del told["share"]
    consumers = [told.pop(name) for name in ("consumer", "emptied")]
    assert {one.group_id: one.group_state for one in described(desk, *told)} == told
    assert [
        one.group_state for one in consumers_described(desk, "consumer", "emptied")
    ] == consumers
    assert set(told.values()) == {"Empty", "PreparingRebalance", "CompletingRebalance"}


def test_an_empty_group(desk):
    """K40-13."""
    leave(desk, described(desk, "g")[0].members[0].member_id)
    (group,) = described(desk, "g")
    assert (group.group_state, group.protocol_type, group.members) == ("Empty", "consumer", [])


@pytest.mark.parametrize(
    ("group_id", "text"),
    [
        ("none", "Group none not found."),
        ("consumer", "Group consumer is not a classic group."),
        ("share", "Group share is not a classic group."),
    ],
)
def test_groups_that_are_not_classic(desk, group_id, text):
    """K40-13, K40-31."""
    (new,) = described(desk, group_id)
    assert (new.error_code, new.group_state) == (ErrorCode.GROUP_ID_NOT_FOUND, "Dead")
    assert new.error_message == text
    (old,) = described(desk, group_id, version=5)
    assert (old.error_code, old.group_state, old.protocol_type) == (0, "Dead", "")
    assert old.error_message is None


def consumers_described(desk: Desk, *groups: str):
    request = ConsumerGroupDescribeRequest(
        group_ids=list(groups), include_authorized_operations=False
    )
    return desk.told(request, 1).groups


def test_a_consumer_group_is_described_with_what_everybody_has_and_shall_have():
    """K848-006, K848-153."""
    desk = Desk()
    consumer(desk, "g", "a")
    consumer(desk, "g", "b")
    (group,) = consumers_described(desk, "g")
    assert (group.error_code, group.group_state, group.assignor_name) == (
        0,
        "Reconciling",
        "uniform",
    )
    assert (group.group_epoch, group.assignment_epoch) == (3, 3)
    a, b = group.members
    assert (a.member_id, a.member_epoch, a.member_type) == ("a", 2, 1)
    assert (a.client_id, a.client_host, a.instance_id, a.rack_id) == (
        "app",
        "/127.0.0.1",
        None,
        None,
    )
    assert (a.subscribed_topic_names, a.subscribed_topic_regex) == (["orders"], "")
    (has,) = a.assignment.topic_partitions
    assert (has.topic_id, has.topic_name, has.partitions) == (
        topic_id("orders"),
        "orders",
        [0, 1, 2, 3],
    )
    assert b.assignment.topic_partitions == []
    shall = [one.target_assignment.topic_partitions[0].partitions for one in (a, b)]
    assert sorted(shall[0] + shall[1]) == [0, 1, 2, 3]


def test_partitions_that_are_being_revoked_are_still_shown():
    """KAFKA-20431: nobody else may have them yet."""
    desk = Desk()
    consumer(desk, "g", "a")
    consumer(desk, "g", "b")
    owned = [TopicPartitions(topic_id=topic_id("orders"), partitions=[0, 1, 2, 3])]
    consumer(desk, "g", "a", 2, topic_partitions=owned)
    (group,) = consumers_described(desk, "g")
    (has,) = group.members[0].assignment.topic_partitions
    assert has.partitions == [0, 1, 2, 3]


def test_topics_that_were_deleted_are_left_out():
    desk = Desk()
    consumer(desk, "g", "a")
    desk.topics_changed(topics(payments=2))
    (group,) = consumers_described(desk, "g")
    assert group.members[0].assignment.topic_partitions == []
    assert group.members[0].target_assignment.topic_partitions == []


@pytest.mark.parametrize(
    ("group_id", "code", "text"),
    [
        ("", ErrorCode.INVALID_GROUP_ID, None),
        ("none", ErrorCode.GROUP_ID_NOT_FOUND, "Group none not found."),
        ("g", ErrorCode.GROUP_ID_NOT_FOUND, "Group g is not a consumer group."),
        ("share", ErrorCode.GROUP_ID_NOT_FOUND, "Group share is not a consumer group."),
    ],
)
def test_groups_that_are_not_consumer_groups(desk, group_id, code, text):
    """K848-002."""
    (group,) = consumers_described(desk, group_id)
    assert (group.error_code, group.error_message, group.group_id) == (code, text, group_id)
    assert (group.group_state, group.group_epoch, group.members) == ("", 0, [])


def deleted(desk: Desk, *groups: str) -> dict[str, int]:
    results = desk.told(DeleteGroupsRequest(groups_names=list(groups)), 2).results
    assert len(results) == len(set(groups))
    return {one.group_id: one.error_code for one in results}


def test_empty_groups_are_deleted_and_each_is_answered_once(desk):
    """K229-06, K229-07, K229-08, K229-10, K229-11, K229-13."""
    assert deleted(desk, "offsets", "g", "none", "consumer", "emptied", "share", "offsets") == {
        "offsets": 0,
        "g": ErrorCode.NON_EMPTY_GROUP,
        "none": ErrorCode.GROUP_ID_NOT_FOUND,
        "consumer": ErrorCode.NON_EMPTY_GROUP,
        "emptied": 0,
        "share": ErrorCode.NON_EMPTY_GROUP,
    }
    assert deleted(desk, "") == {"": ErrorCode.GROUP_ID_NOT_FOUND}
    remaining = {"g", "pending", "completing", "consumer"}
    assert set(listed(desk)) == {*remaining, "share"}
    desk.restart()
    assert set(listed(desk)) == remaining
    assert deleted(desk, "completing") == {"completing": 0}  # its join phase is forgotten


def test_a_group_that_is_not_deleted_keeps_its_offsets(desk):
    """K229-06, K229-07."""
    (leader,) = [one.member_id for one in described(desk, "g")[0].members]
    caller = {"member_id": leader, "generation_id_or_member_epoch": 1}
    commit(desk, {("orders", 0): 1}, **caller)
    caller = {"member_id": "m", "generation_id_or_member_epoch": 2}
    commit(desk, {("orders", 0): 1}, group_id="consumer", **caller)
    desk.written()
    assert set(deleted(desk, "g", "consumer").values()) == {ErrorCode.NON_EMPTY_GROUP}
    assert desk.written() == []
    assert desk.shard.offsets.holds("g", "orders", 0)
    assert desk.shard.offsets.holds("consumer", "orders", 0)


def test_offsets_go_before_their_group(desk):
    """K229-05."""
    desk.written()
    deleted(desk, "offsets")
    written = desk.written()
    assert [type(record.key).__name__ for record in written] == [
        "OffsetCommitKey",
        "GroupMetadataKey",
    ]
    assert [record.value for record in written] == [None, None]
    assert desk.shard.offsets.of(GroupId("offsets")) == {}


def test_a_consumer_group_goes_by_its_own_tombstones(desk):
    """K229-07."""
    commit(desk, {("orders", 0): 1}, group_id="emptied")
    desk.written()
    deleted(desk, "emptied")
    assert [type(record.key).__name__ for record in desk.written()] == [
        "OffsetCommitKey",
        "ConsumerGroupTargetAssignmentMetadataKey",
        "ConsumerGroupPartitionMetadataKey",
        "ConsumerGroupMetadataKey",
    ]


def test_ids_that_were_given_out_go_with_their_group(desk):
    member_id = join(desk, group_id="pending", protocol_type="connect").answer.member_id
    assert deleted(desk, "pending") == {"pending": 0}
    refused = join(desk, member_id, group_id="pending", protocol_type="connect").answer
    assert refused.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    desk.wait(60_000)


def test_share_groups_of_a_log_are_listed_by_type():
    desk = Desk()
    replay(desk.shard, Unknown(11, b"\0\x0b\0\x05share", b"\0\0"))
    assert listed(desk, types=["share"]) == ["share"]
