# SPDX-License-Identifier: Apache-2.0
"""What a log restores of classic groups."""

from tests.coordinator.classics import SUBSCRIBED, heartbeat
from tests.coordinator.desk import START, Desk

from kohort.coordinator.classic.records import creation_record, tombstone
from kohort.errors import ErrorCode
from kohort.records.codec import Record
from kohort.records.schemas import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from kohort.terms import GroupId, GroupState, GroupType, MemberId


def value(**fields) -> GroupMetadataValue:
    one = MemberMetadata(
        member_id="m-1",
        group_instance_id="i-1",
        client_id="app",
        client_host="/127.0.0.1",
        rebalance_timeout=-1,
        session_timeout=10_000,
        subscription=SUBSCRIBED,
        assignment=b"all",
    )
    return GroupMetadataValue(
        **{
            "protocol_type": "consumer",
            "generation": 7,
            "protocol": "range",
            "leader": "m-1",
            "current_state_timestamp": 5,
            "members": [one],
            **fields,
        }
    )


def test_the_log_restores_a_group_with_its_static_members():
    desk = Desk()
    desk.write(Record(GroupMetadataKey(group="g"), value()), live=False)
    desk.restart()
    group = desk.shard.groups.classic(GroupId("g"))
    assert (group.type, group.state, group.generation) == (GroupType.CLASSIC, GroupState.STABLE, 7)
    assert (group.leader, group.protocol, group.state_timestamp) == ("m-1", "range", 5)
    one = group.members[MemberId("m-1")]
    assert one.rebalance_timeout_ms == one.session_timeout_ms == 10_000  # value v0 has only one
    assert one.assignment == b"all"
    assert group.instances == {"i-1": "m-1"}
    assert group.subscribes_to("orders")
    assert not group.subscribes_to("payments")
    assert heartbeat(desk, "m-1", 7) == ErrorCode.NONE
    assert heartbeat(desk, "m-1", 7, group_instance_id="i-1") == ErrorCode.NONE


def test_a_restored_member_has_one_session_to_show_up():
    desk = Desk()
    desk.write(Record(GroupMetadataKey(group="g"), value()), live=False)
    desk.restart()
    desk.wait(9_999)
    assert heartbeat(desk, "m-1", 7) == ErrorCode.NONE
    desk.wait(10_000)
    assert heartbeat(desk, "m-1", 7) == ErrorCode.UNKNOWN_MEMBER_ID
    assert desk.shard.groups.classic(GroupId("g")).state is GroupState.EMPTY
    assert desk.log[-1].value.members == []


def test_a_protocol_of_null_is_tolerated():
    desk = Desk()
    desk.write(Record(GroupMetadataKey(group="g"), value(protocol=None, leader=None)), live=False)
    desk.restart()
    assert desk.shard.groups.classic(GroupId("g")).subscribes_to("anything")


def test_groups_above_a_lowered_limit_rebalance_after_loading():
    desk = Desk(group_max_size=1)
    desk.write(
        Record(
            GroupMetadataKey(group="g"),
            value(
                members=[
                    *value().members,
                    MemberMetadata(
                        member_id="m-2",
                        client_id="app",
                        client_host="/127.0.0.1",
                        session_timeout=10_000,
                        subscription=SUBSCRIBED,
                        assignment=b"",
                    ),
                ]
            ),
        ),
        live=False,
    )
    desk.restart()
    assert desk.shard.groups.classic(GroupId("g")).state is GroupState.PREPARING_REBALANCE


def test_tombstones_end_groups_and_may_name_none():
    desk = Desk()
    desk.write(
        tombstone(GroupId("other")),
        creation_record(GroupId("g"), START),
        creation_record(GroupId("h"), START),
        tombstone(GroupId("g")),
        live=False,
    )
    desk.restart()
    assert [group.id for group in desk.shard.groups] == ["h"]
