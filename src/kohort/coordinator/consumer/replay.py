# SPDX-License-Identifier: Apache-2.0
"""From the log to a consumer group: what each record makes true, live and while loading.

Live, a record that does not fit is Broken. While loading, compaction may have removed earlier
records (KAFKA-17306, KAFKA-19862), so each record is taken at its word.
"""

from collections.abc import Iterable
from dataclasses import replace

from kohort.assignors import Assignment
from kohort.coordinator.classic.group import ClassicGroup
from kohort.coordinator.consumer import timers
from kohort.coordinator.consumer.client_side.offers import ClientAssignor
from kohort.coordinator.consumer.client_side.selection import classic_offers
from kohort.coordinator.consumer.group import ConsumerGroup
from kohort.coordinator.consumer.member import Held, Member, MemberState
from kohort.coordinator.consumer.target import Attachment, Target
from kohort.coordinator.state import State
from kohort.errors import Broken
from kohort.records import schemas
from kohort.records.schemas import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupPartitionMetadataValue,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    TopicPartition,
    TopicPartitions,
)
from kohort.terms import GroupId, MemberId, Millis, TopicId

NO_EPOCH = -1


def epoch(
    state: State, key: ConsumerGroupMetadataKey, value: ConsumerGroupMetadataValue | None
) -> None:
    """The group's epoch. The tombstone of this record is the last one about a group."""
    if value is not None:
        group = _made(state, key.group_id)
        group.group_epoch = value.epoch
        group.metadata_hash = value.metadata_hash
        group.metadata_stale = False
        return
    known = state.groups.consumer(GroupId(key.group_id))
    if known is None:
        return
    if not state.loading and (known.members or known.targets or known.target_epoch != NO_EPOCH):
        raise Broken(
            f"group {known.id} is deleted with {len(known.members)} members and target epoch "
            f"{known.target_epoch}, expected neither",
        )
    state.groups.remove(known.id)
    timers.end_computation(state, known.id)


def partition_metadata(
    state: State,
    key: ConsumerGroupPartitionMetadataKey,
    value: ConsumerGroupPartitionMetadataValue | None,
) -> None:
    """What brokers up to 4.0 wrote in the place of today's hash. It tells nothing new."""
    if value is not None:
        _made(state, key.group_id)


def member(
    state: State,
    key: ConsumerGroupMemberMetadataKey,
    value: ConsumerGroupMemberMetadataValue | None,
) -> None:
    """What a member says about itself. Its tombstone is the last one about the member."""
    member_id = MemberId(key.member_id)
    if value is None:
        _drop(state, GroupId(key.group_id), member_id)
        return
    group = _made(state, key.group_id)
    known = group.members.get(member_id) or Member(member_id)
    classic = value.classic_member_metadata
    described = replace(
        known,
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        subscribed_names=tuple(value.subscribed_topic_names),
        subscribed_regex=value.subscribed_topic_regex or "",
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        server_assignor=value.server_assignor,
        classic=classic,
        classic_offers=None if classic is None else classic_offers(classic),
        client_assignors=tuple(
            ClientAssignor(
                assignor.name,
                assignor.minimum_version,
                assignor.maximum_version,
                assignor.reason,
                assignor.metadata_version,
                assignor.metadata,
            )
            for assignor in value.client_assignors
        ),
    )
    group.put(described, tolerant=state.loading)
    if known.classic is not None and described.classic is None:
        timers.end_classic(state, group, member_id)


def _drop(state: State, group_id: GroupId, member_id: MemberId) -> None:
    group = state.groups.consumer(group_id)
    known = None if group is None else group.members.get(member_id)
    if group is None or known is None:
        return
    if not state.loading and (known.epoch != NO_EPOCH or member_id in group.targets):
        raise Broken(
            f"member {member_id} of group {group_id} is deleted at epoch {known.epoch}, "
            "expected its assignment and its target to be deleted before",
        )
    group.drop(member_id)
    timers.end(state, group, member_id)
    computation = state.computations.get(group_id)
    if computation is not None and computation.member_id == member_id:
        timers.end_computation(state, group_id)


def target_epoch(
    state: State,
    key: ConsumerGroupTargetAssignmentMetadataKey,
    value: ConsumerGroupTargetAssignmentMetadataValue | None,
) -> None:
    """The epoch that the targets were computed for, and when."""
    if value is not None:
        group = _made(state, key.group_id)
        group.target_epoch = value.assignment_epoch
        group.target_time = Millis(value.assignment_timestamp)
        group.made_by = value.computation
        computation = state.computations.get(group.id)
        if computation is not None and computation.ends_with(value.assignment_epoch):
            timers.end_computation(state, group.id)
        return
    known = state.groups.consumer(GroupId(key.group_id))
    if known is None:
        return
    if known.targets and not state.loading:
        raise Broken(f"the target of group {known.id} is deleted before those of its members")
    known.target_epoch = NO_EPOCH


def target(
    state: State,
    key: ConsumerGroupTargetAssignmentMemberKey,
    value: ConsumerGroupTargetAssignmentMemberValue | None,
) -> None:
    """The target of a member."""
    member_id = MemberId(key.member_id)
    if value is not None:
        _made(state, key.group_id).targets[member_id] = Target(
            _assignment(value.topic_partitions), _attached(value.attachment)
        )
        return
    known = state.groups.consumer(GroupId(key.group_id))
    if known is not None:
        known.targets.pop(member_id, None)


def current(
    state: State,
    key: ConsumerGroupCurrentMemberAssignmentKey,
    value: ConsumerGroupCurrentMemberAssignmentValue | None,
) -> None:
    """What a member has. A member that is not known yet is described by a later record."""
    member_id = MemberId(key.member_id)
    if value is not None:
        group = _made(state, key.group_id)
        moved = replace(
            group.members.get(member_id) or Member(member_id),
            epoch=value.member_epoch,
            previous_epoch=value.previous_member_epoch,
            state=MemberState(value.state),
            assigned=_held(value.assigned_partitions, value.member_epoch),
            revoking=_held(value.partitions_pending_revocation, value.member_epoch),
            attachment=_attached(value.attachment),
        )
        group.put(moved, tolerant=state.loading)
        timers.end_revocation(state, group, moved)
        return
    group_or_none = state.groups.consumer(GroupId(key.group_id))
    known = None if group_or_none is None else group_or_none.members.get(member_id)
    if group_or_none is not None and known is not None:
        nothing = replace(
            known,
            epoch=NO_EPOCH,
            previous_epoch=NO_EPOCH,
            state=MemberState.STABLE,
            assigned={},
            revoking={},
            attachment=None,
        )
        group_or_none.put(nothing, tolerant=state.loading)


def regular_expression(
    state: State,
    key: ConsumerGroupRegularExpressionKey,
    value: ConsumerGroupRegularExpressionValue | None,
) -> None:
    """The topics that an expression was found to name."""
    if value is not None:
        group = _made(state, key.group_id)
        group.resolved[key.regular_expression] = tuple(value.topics)
        return
    known = state.groups.consumer(GroupId(key.group_id))
    if known is not None:
        known.resolved.pop(key.regular_expression, None)


def _made(state: State, name: str) -> ConsumerGroup:
    """The group; its first record makes it, also from a group that only held offsets."""
    group_id = GroupId(name)
    known = state.groups.get(group_id)
    if isinstance(known, ConsumerGroup):
        return known
    if isinstance(known, ClassicGroup) and known.members and not state.loading:
        raise Broken(
            f"classic group {group_id} has {len(known.members)} members, "
            "expected none when it becomes a consumer group",
        )
    group = ConsumerGroup(group_id, state.settings_of(group_id))
    state.groups.add(group)
    group.number = state.groups.made
    return group


def _assignment(topics: Iterable[TopicPartition]) -> Assignment:
    return {TopicId(topic.topic_id): tuple(sorted(set(topic.partitions))) for topic in topics}


def _attached(attachment: schemas.Attachment | None) -> Attachment | None:
    if attachment is None:
        return None
    return Attachment(
        attachment.error, attachment.metadata_version, attachment.metadata, attachment.assignor
    )


def _held(topics: Iterable[TopicPartitions], member_epoch: int) -> Held:
    """Partitions, ascending, with epochs; the member's epoch in records of brokers before 4.3."""
    held: Held = {}
    for topic in topics:
        epochs = topic.assignment_epochs or [member_epoch] * len(topic.partitions)
        held[TopicId(topic.topic_id)] = dict(sorted(zip(topic.partitions, epochs, strict=False)))
    return held
