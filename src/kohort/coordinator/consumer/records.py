# SPDX-License-Identifier: Apache-2.0
"""The records about a consumer group, a function for each (KIP-848)."""

from collections.abc import Collection, Iterator

from kohort.coordinator.consumer.member import Held, Member
from kohort.coordinator.consumer.target import Attachment, Target
from kohort.records import schemas
from kohort.records.codec import Record
from kohort.records.schemas import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    TopicPartition,
    TopicPartitions,
)
from kohort.terms import GroupId, MemberId, Millis


def member_record(group_id: GroupId, member: Member) -> Record:
    """What a member has said about itself."""
    return Record(
        ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member.id),
        ConsumerGroupMemberMetadataValue(
            instance_id=member.instance_id,
            rack_id=member.rack_id,
            client_id=member.client_id,
            client_host=member.client_host,
            subscribed_topic_names=list(member.subscribed_names),
            subscribed_topic_regex=member.subscribed_regex,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            server_assignor=member.server_assignor,
            classic_member_metadata=member.classic,
            client_assignors=[
                schemas.ClientAssignor(
                    name=assignor.name,
                    minimum_version=assignor.minimum,
                    maximum_version=assignor.maximum,
                    reason=assignor.reason,
                    metadata_version=assignor.version,
                    metadata=assignor.metadata,
                )
                for assignor in member.client_assignors
            ],
        ),
    )


def epoch_record(group_id: GroupId, epoch: int, metadata_hash: int) -> Record:
    """A new target is needed."""
    return Record(
        ConsumerGroupMetadataKey(group_id=group_id),
        ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash),
    )


def target_record(group_id: GroupId, member_id: MemberId, target: Target) -> Record:
    """What a member is meant to have."""
    return Record(
        ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id),
        ConsumerGroupTargetAssignmentMemberValue(
            topic_partitions=[
                TopicPartition(topic_id=topic, partitions=list(partitions))
                for topic, partitions in target.partitions.items()
            ],
            attachment=_attached(target.attachment),
        ),
    )


def target_epoch_record(
    group_id: GroupId, epoch: int, time: Millis, computation: schemas.Computation | None = None
) -> Record:
    """The targets are complete for this epoch, and how they came about where members offer
    assignors.
    """
    return Record(
        ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id),
        ConsumerGroupTargetAssignmentMetadataValue(
            assignment_epoch=epoch, assignment_timestamp=time, computation=computation
        ),
    )


def current_record(group_id: GroupId, member: Member) -> Record:
    """What a member has."""
    return Record(
        ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.id),
        ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=member.epoch,
            previous_member_epoch=member.previous_epoch,
            state=member.state,
            assigned_partitions=_with_epochs(member.assigned),
            partitions_pending_revocation=_with_epochs(member.revoking),
            attachment=_attached(member.attachment),
        ),
    )


def regex_record(
    group_id: GroupId, expression: str, topics: Collection[str], time: Millis
) -> Record:
    """The topics that an expression names. The version is that of the image which they were found
    in. Ours have none; 0 makes any other broker look again.
    """
    return Record(
        ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=expression),
        ConsumerGroupRegularExpressionValue(topics=list(topics), version=0, timestamp=time),
    )


def regex_tombstone(group_id: GroupId, expression: str) -> Record:
    """Nobody subscribes by this expression any more."""
    key = ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=expression)
    return Record(key, None)


def member_tombstones(group_id: GroupId, member_id: MemberId) -> Iterator[Record]:
    """The end of a member. What it has goes first: a member that is gone may hold nothing."""
    yield _current_tombstone(group_id, member_id)
    yield _target_tombstone(group_id, member_id)
    yield _member_tombstone(group_id, member_id)


def tombstones(
    group_id: GroupId, members: Collection[MemberId], expressions: Collection[str]
) -> list[Record]:
    """The end of a group, in the order in which replay wants it."""
    return [
        *(_current_tombstone(group_id, member_id) for member_id in members),
        *(_target_tombstone(group_id, member_id) for member_id in members),
        Record(ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), None),
        *(_member_tombstone(group_id, member_id) for member_id in members),
        *(regex_tombstone(group_id, expression) for expression in expressions),
        Record(ConsumerGroupPartitionMetadataKey(group_id=group_id), None),
        Record(ConsumerGroupMetadataKey(group_id=group_id), None),
    ]


def _current_tombstone(group_id: GroupId, member_id: MemberId) -> Record:
    key = ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id)
    return Record(key, None)


def _target_tombstone(group_id: GroupId, member_id: MemberId) -> Record:
    key = ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)
    return Record(key, None)


def _member_tombstone(group_id: GroupId, member_id: MemberId) -> Record:
    return Record(ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None)


def _with_epochs(held: Held) -> list[TopicPartitions]:
    return [
        TopicPartitions(
            topic_id=topic,
            partitions=list(partitions),
            assignment_epochs=list(partitions.values()),
        )
        for topic, partitions in held.items()
    ]


def _attached(attachment: Attachment | None) -> schemas.Attachment | None:
    if attachment is None:
        return None
    return schemas.Attachment(
        error=attachment.error,
        metadata_version=attachment.version,
        metadata=attachment.metadata,
        assignor=attachment.assignor,
    )
