# SPDX-License-Identifier: Apache-2.0
"""ListGroups, DescribeGroups, ConsumerGroupDescribe, DeleteGroups: requests about whole groups.

Each group is answered by itself. The driver holds the answers back until everything appended so far
is durable.
"""

from kohort.coordinator import group_settings
from kohort.coordinator.descriptions import Description, Descriptions
from kohort.coordinator.group import Group
from kohort.coordinator.offsets import delete as offsets
from kohort.coordinator.state import State
from kohort.errors import ApiError, ErrorCode
from kohort.machines.effects import Call, Effects, GroupEvent, Reply, answered
from kohort.records.causes import Cause
from kohort.records.codec import Record
from kohort.terms import GroupId, GroupState, Millis
from kohort.wire.messages import consumer_group_describe as consumer
from kohort.wire.messages import describe_groups as classic
from kohort.wire.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from kohort.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse

_TELLS_ERRORS = 6  # the first version of DescribeGroups that does


def list_groups(state: State, call: Call[ListGroupsRequest], _now: Millis) -> Effects:
    """Both filters must match; an empty one lets everything through (KIP-518, KIP-848).

    Names compare without case, states without surrounding blanks too; an unknown name matches
    nothing.
    """
    states = frozenset({name.strip().lower() for name in call.request.states_filter})
    types = frozenset({name.lower() for name in call.request.types_filter})
    return answered(call, ListGroupsResponse(groups=state.listings.of(state.groups, states, types)))


def describe_groups(
    state: State, call: Call[classic.DescribeGroupsRequest], _now: Millis
) -> Effects:
    """Classic groups (KIP-40). Up to v5 a group that is not there is described as Dead."""
    described: list[Description | classic.DescribedGroup] = []
    for group_id in call.request.groups:
        try:
            group = _known(state, group_id)
            described.append(state.descriptions.of_classic(group, call.version))
        except ApiError as error:
            dead = classic.DescribedGroup(group_id=group_id, group_state=GroupState.DEAD)
            if call.version >= _TELLS_ERRORS:
                dead.error_code, dead.error_message = error.code, error.message
            described.append(dead)
    return answered(call, Descriptions(described))


def describe_consumer_groups(
    state: State, call: Call[consumer.ConsumerGroupDescribeRequest], _now: Millis
) -> Effects:
    """Consumer groups (KIP-848): what every member has, and what it is going to have."""
    described: list[Description | consumer.DescribedGroup] = []
    for group_id in call.request.group_ids:
        if not group_id:
            error = ErrorCode.INVALID_GROUP_ID
            described.append(consumer.DescribedGroup(group_id="", error_code=error))
            continue
        computation = state.computations.get(GroupId(group_id))
        computing = None if computation is None else computation.member_id
        try:
            group = _known(state, group_id)
            described.append(
                state.descriptions.of_consumer(group, call.version, state.topics, computing)
            )
        except ApiError as error:
            refusal = consumer.DescribedGroup(
                group_id=group_id, error_code=error.code, error_message=error.message
            )
            described.append(refusal)
    return answered(call, Descriptions(described))


def delete_groups(state: State, call: Call[DeleteGroupsRequest], _now: Millis) -> Effects:
    """Delete what is empty, offsets first (KIP-229). A group named twice is answered once."""
    results = []
    records: list[Record] = []
    events: list[GroupEvent] = []
    for name in dict.fromkeys(call.request.groups_names):
        code = ErrorCode.NONE
        try:
            group = _known(state, name)
            group.check_delete()
            records += [
                *offsets.of_group_deleted(state, group.id),
                *group_settings.ended(state, group.id),
                *group.tombstones(),
            ]
            events.append(GroupEvent(group.id, "an administrator deletes it", Cause.DELETED))
        except ApiError as error:
            code = error.code
        results.append(DeletableGroupResult(group_id=name, error_code=code))
    return Effects(records, [Reply(call.token, DeleteGroupsResponse(results=results))], events)


def _known(state: State, group_id: str) -> Group:
    group = state.groups.get(GroupId(group_id))
    if group is None:
        raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
    return group
