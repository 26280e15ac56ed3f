"""Requests about groups as a whole: ListGroups, DescribeGroups, ConsumerGroupDescribe,
DeleteGroups.

Each group asked for is answered for itself. The driver keeps the answers behind everything appended
so far.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kohort.coordinator import offsets
from kohort.coordinator.classic.group import ClassicGroup
from kohort.coordinator.classic.records import tombstone as classic_tombstone
from kohort.coordinator.consumer.group import ConsumerGroup
from kohort.coordinator.consumer.records import tombstones as consumer_tombstones
from kohort.coordinator.effects import Call, Effects, answered
from kohort.coordinator.groups import Group, OtherGroup
from kohort.errors import ErrorCode
from kohort.terms import GroupId, GroupState, Millis
from kohort.wire.messages import consumer_group_describe
from kohort.wire.messages import describe_groups as classic_describe
from kohort.wire.messages.delete_groups import DeletableGroupResult, DeleteGroupsResponse
from kohort.wire.messages.list_groups import ListedGroup, ListGroupsResponse

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from kohort.coordinator.shard import Shard
    from kohort.records.codec import Record
    from kohort.terms import TopicId
    from kohort.wire.messages.delete_groups import DeleteGroupsRequest
    from kohort.wire.messages.list_groups import ListGroupsRequest

# Read 3, Delete 6, Describe 8, DescribeConfigs 10, AlterConfigs 11, as a bit field (KIP-430)
EVERY_OPERATION = 1 << 3 | 1 << 6 | 1 << 8 | 1 << 10 | 1 << 11

CLASSIC_MEMBER, CONSUMER_MEMBER = 0, 1  # KIP-1099


def list_groups(shard: Shard, call: Call[ListGroupsRequest], now: Millis) -> Effects:  # noqa: ARG001
    """Both filters must match; an empty one lets everything through (KIP-518, KIP-848).

    Names compare without case, states without surrounding blanks too; an unknown name matches
    nothing.
    """
    states = {name.strip().lower() for name in call.request.states_filter}
    types = {name.lower() for name in call.request.types_filter}
    listed = [
        ListedGroup(
            group_id=group.id,
            protocol_type=group.protocol_type,
            group_state=group.state,
            group_type=group.type,
        )
        for group in shard.groups
        if (not states or group.state.lower() in states)
        and (not types or group.type.lower() in types)
    ]
    return answered(call, ListGroupsResponse(groups=listed))


def describe_groups(
    shard: Shard,
    call: Call[classic_describe.DescribeGroupsRequest],
    now: Millis,  # noqa: ARG001
) -> Effects:
    """Classic groups (KIP-40). Up to v5 a group that is not there is described as Dead."""
    described = []
    for group_id in call.request.groups:
        group = shard.groups.get(GroupId(group_id))
        if isinstance(group, ClassicGroup):
            one = _classic_description(group)
            if call.request.include_authorized_operations:
                one.authorized_operations = EVERY_OPERATION
        else:
            one = classic_describe.DescribedGroup(group_id=group_id, group_state=GroupState.DEAD)
            if call.version >= 6:
                one.error_code = ErrorCode.GROUP_ID_NOT_FOUND
                one.error_message = _missing(group_id, group, "classic")
            elif call.request.include_authorized_operations:
                one.authorized_operations = EVERY_OPERATION
        described.append(one)
    return answered(call, classic_describe.DescribeGroupsResponse(groups=described))


def _classic_description(group: ClassicGroup) -> classic_describe.DescribedGroup:
    """What a member said is shown while the protocol it was said for is in force."""
    stable = group.state is GroupState.STABLE
    return classic_describe.DescribedGroup(
        group_id=group.id,
        group_state=group.state,
        protocol_type=group.protocol_type,
        protocol_data=(group.protocol or "") if stable else "",
        members=[
            classic_describe.DescribedGroupMember(
                member_id=member.id,
                group_instance_id=member.instance_id,
                client_id=member.client.id,
                client_host=member.client.host,
                member_metadata=group.metadata_of(member) if stable else b"",
                member_assignment=member.assignment,
            )
            for member in group.members.values()
        ],
    )


def describe_consumer_groups(
    shard: Shard,
    call: Call[consumer_group_describe.ConsumerGroupDescribeRequest],
    now: Millis,  # noqa: ARG001
) -> Effects:
    """Consumer groups (KIP-848): what every member has, and what it is going to have."""
    described = []
    for group_id in call.request.group_ids:
        group = shard.groups.get(GroupId(group_id or ""))
        if not group_id:
            one = consumer_group_describe.DescribedGroup(
                group_id="", error_code=ErrorCode.INVALID_GROUP_ID
            )
        elif isinstance(group, ConsumerGroup):
            one = _consumer_description(shard, group)
            if call.request.include_authorized_operations:
                one.authorized_operations = EVERY_OPERATION
        else:
            one = consumer_group_describe.DescribedGroup(
                group_id=group_id,
                error_code=ErrorCode.GROUP_ID_NOT_FOUND,
                error_message=_missing(group_id, group, "consumer"),
            )
        described.append(one)
    response = consumer_group_describe.ConsumerGroupDescribeResponse(groups=described)
    return answered(call, response)


def _consumer_description(
    shard: Shard, group: ConsumerGroup
) -> consumer_group_describe.DescribedGroup:
    return consumer_group_describe.DescribedGroup(
        group_id=group.id,
        group_state=group.state,
        group_epoch=group.group_epoch,
        assignment_epoch=group.target_epoch,
        assignor_name=group.assignor,
        members=[
            consumer_group_describe.Member(
                member_id=member.id,
                instance_id=member.instance_id,
                rack_id=member.rack_id,
                member_epoch=member.epoch,
                client_id=member.client_id,
                client_host=member.client_host,
                subscribed_topic_names=list(member.subscribed_names),
                subscribed_topic_regex=member.subscribed_regex or "",
                assignment=_assignment(shard, member.assigned, member.revoking),
                target_assignment=_assignment(shard, group.targets.get(member.id, {})),
                member_type=CONSUMER_MEMBER if member.classic is None else CLASSIC_MEMBER,
            )
            for member in group.members.values()
        ],
    )


def _assignment(
    shard: Shard, *parts: Mapping[TopicId, Iterable[int]]
) -> consumer_group_describe.Assignment:
    """Partitions by topic, put together from parts (KAFKA-20431). Topics deleted meanwhile are left
    out.
    """
    together: dict[TopicId, list[int]] = {}
    for part in parts:
        for topic_id, partitions in part.items():
            together.setdefault(topic_id, []).extend(partitions)
    by_id = shard.topics.by_id
    return consumer_group_describe.Assignment(
        topic_partitions=[
            consumer_group_describe.TopicPartitions(
                topic_id=topic_id, topic_name=by_id[topic_id].name, partitions=sorted(partitions)
            )
            for topic_id, partitions in together.items()
            if topic_id in by_id
        ]
    )


def delete_groups(shard: Shard, call: Call[DeleteGroupsRequest], now: Millis) -> Effects:  # noqa: ARG001
    """Delete what is empty, offsets first (KIP-229). A group named twice is answered once."""
    results = []
    records: list[Record] = []
    for group_id in dict.fromkeys(call.request.groups_names):
        code, tombstones = _deletion(shard, GroupId(group_id))
        results.append(DeletableGroupResult(group_id=group_id, error_code=code))
        records += tombstones
    return answered(call, DeleteGroupsResponse(results=results), records)


def _deletion(shard: Shard, group_id: GroupId) -> tuple[ErrorCode, list[Record]]:
    group = shard.groups.get(group_id)
    if group is None:
        return ErrorCode.GROUP_ID_NOT_FOUND, []
    if group.state is not GroupState.EMPTY or isinstance(group, OtherGroup):
        return ErrorCode.NON_EMPTY_GROUP, []
    tombstones = offsets.of_group_deleted(shard, group_id)
    if isinstance(group, ConsumerGroup):
        return ErrorCode.NONE, tombstones + consumer_tombstones(group)
    return ErrorCode.NONE, [*tombstones, classic_tombstone(group_id)]


def _missing(group_id: str, group: Group | None, kind: str) -> str:
    """The text for a group that is not there, or not of the kind asked for (KIP-1043)."""
    if group is None:
        return f"Group {group_id} not found."
    return f"Group {group_id} is not a {kind} group."
