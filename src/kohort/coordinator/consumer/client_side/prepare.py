# SPDX-License-Identifier: Apache-2.0
"""ConsumerGroupPrepareAssignment: what the member that was asked computes from (KIP-848).

It may ask several times: what it was told last is what its answer is held against. Nothing is
written, and as with all that is read, the answer waits until what it tells is durable.
"""

from dataclasses import replace

from kohort.coordinator.consumer import planning
from kohort.coordinator.consumer.client_side import choosing
from kohort.coordinator.consumer.client_side.computation import Basis
from kohort.coordinator.consumer.client_side.offers import CLASSIC_VERSION, ClientAssignor
from kohort.coordinator.consumer.client_side.selection import offered_by
from kohort.coordinator.consumer.group import ConsumerGroup, unknown_member
from kohort.coordinator.consumer.member import Member
from kohort.coordinator.state import State
from kohort.errors import ApiError, ErrorCode
from kohort.machines.effects import Call, Effects, answered
from kohort.terms import GroupId, MemberId, Millis
from kohort.wire.messages import consumer_group_prepare_assignment as wire
from kohort.wire.messages.consumer_group_install_assignment import (
    ConsumerGroupInstallAssignmentRequest,
)


def prepare(
    state: State, call: Call[wire.ConsumerGroupPrepareAssignmentRequest], _now: Millis
) -> Effects:
    """Tell the member that was asked about everybody. Raises ApiError."""
    group, member = claimed(state, call.request)
    computation = choosing.outstanding(state, group, member)
    given = planning.assignor_input(state, group, member)
    offers = {
        member_id: offered_by(group.members[member_id]).get(computation.assignor)
        for member_id in given.members
    }
    basis = Basis(
        group.group_epoch,
        {member_id: frozenset(member.topics) for member_id, member in given.members.items()},
        given.partitions,
        {topic_id: state.topics.by_id[topic_id].name for topic_id in given.partitions},
        planning.instances_of(given),
        {member_id: _reads(offer) for member_id, offer in offers.items()},
    )
    state.computations[group.id] = replace(computation, basis=basis)
    response = wire.ConsumerGroupPrepareAssignmentResponse(
        group_epoch=group.group_epoch,
        assignor_name=computation.assignor,
        members=[
            wire.Member(
                member_id=member_id,
                member_epoch=group.members[member_id].epoch,
                instance_id=member.instance_id,
                rack_id=member.rack,
                subscribed_topic_ids=list(member.topics),
                assignor=_assignor_of(offers[member_id]),
                topic_partitions=[
                    wire.TopicPartition(topic_id=topic_id, partitions=list(partitions))
                    for topic_id, partitions in member.previous.items()
                ],
            )
            for member_id, member in given.members.items()
        ],
        topics=[
            wire.TopicMetadata(
                topic_id=topic_id,
                topic_name=basis.names[topic_id],
                num_partitions=count,
            )
            for topic_id, count in given.partitions.items()
        ],
        metadata_version=computation.version,
    )
    return answered(call, response)


def claimed(
    state: State,
    request: wire.ConsumerGroupPrepareAssignmentRequest | ConsumerGroupInstallAssignmentRequest,
) -> tuple[ConsumerGroup, Member]:
    """The group and the member of a request. Raises ApiError: INVALID_GROUP_ID, GROUP_ID_NOT_FOUND,
    UNKNOWN_MEMBER_ID, STALE_MEMBER_EPOCH.
    """
    if not request.group_id:
        raise ApiError(ErrorCode.INVALID_GROUP_ID, "GroupId can't be empty.")
    if not request.member_id.strip():
        raise ApiError(ErrorCode.INVALID_REQUEST, "MemberId can't be empty.")
    group_id, member_id = GroupId(request.group_id), MemberId(request.member_id)
    group = state.groups.consumer(group_id)
    if group is None:
        text = "is not a consumer group" if group_id in state.groups else "not found"
        raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} {text}.")
    member = group.members.get(member_id)
    if member is None:
        raise unknown_member(group_id, member_id)
    if request.member_epoch != member.epoch:
        raise ApiError(
            ErrorCode.STALE_MEMBER_EPOCH,
            f"member {member_id} is at epoch {member.epoch}, request says {request.member_epoch}",
        )
    return group, member


def _reads(offer: ClientAssignor | None) -> tuple[int, int]:
    """The versions that a member reads. Who does not have the assignor reads nothing."""
    return (1, 0) if offer is None else (offer.minimum, offer.maximum)


def _assignor_of(offer: ClientAssignor | None) -> wire.Assignor:
    if offer is None:
        return wire.Assignor(metadata_version=CLASSIC_VERSION)
    return wire.Assignor(
        reason=offer.reason, metadata_version=offer.version, metadata_bytes=offer.metadata
    )
