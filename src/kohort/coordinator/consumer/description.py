# SPDX-License-Identifier: Apache-2.0
"""What ConsumerGroupDescribe says about a member, and about who computes for a group."""

from collections.abc import Iterable, Mapping

from kohort.coordinator.consumer.client_side.selection import Choice
from kohort.coordinator.consumer.member import Member
from kohort.coordinator.consumer.target import Attachment, Target
from kohort.machines.topics import Topics
from kohort.records.schemas import Computation
from kohort.terms import TopicId
from kohort.wire.messages import consumer_group_describe as describe

_Partitions = Mapping[TopicId, Iterable[int]]

_CLASSIC_MEMBER, _CONSUMER_MEMBER = 0, 1  # KIP-1099


def of_member(member: Member, target: Target, topics: Topics) -> describe.Member:
    """What the member has, and what it is going to have."""
    has = _named(topics, _together(member.assigned, member.revoking))
    has.attachment = _attached(member.attachment)
    should_have = _named(topics, target.partitions)
    should_have.attachment = _attached(target.attachment)
    return describe.Member(
        member_id=member.id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=list(member.subscribed_names),
        subscribed_topic_regex=member.subscribed_regex or "",
        assignment=has,
        target_assignment=should_have,
        member_type=_CONSUMER_MEMBER if member.classic is None else _CLASSIC_MEMBER,
        client_assignors=[]
        if not member.client_assignors
        else [
            describe.ClientAssignor(
                name=assignor.name,
                minimum_version=assignor.minimum,
                maximum_version=assignor.maximum,
                reason=assignor.reason,
                metadata_version=assignor.version,
                metadata_bytes=assignor.metadata,
            )
            for assignor in member.client_assignors
        ],
    )


def of_client_side(choice: Choice, made_by: Computation | None) -> describe.ClientSide | None:
    """Who computes, and how the last target came about; None where no member offers an assignor.
    Who is computing just now, no group knows.
    """
    if choice.version is None and not choice.why:
        return None
    # What made the broker compute this time, although the members have one assignor in common.
    last_why = "" if made_by is None else made_by.why
    return describe.ClientSide(
        selected=choice.name,
        last_reason=0 if made_by is None else made_by.reason,
        last_error=0 if made_by is None else made_by.error,
        why=choice.why or last_why,
    )


def _attached(attachment: Attachment | None) -> describe.Attachment | None:
    if attachment is None:
        return None
    return describe.Attachment(
        error=attachment.error,
        metadata_version=attachment.version,
        metadata_bytes=attachment.metadata,
        assignor_name=attachment.assignor,
    )


def _together(one: _Partitions, other: _Partitions) -> _Partitions:
    if not other:
        return one
    return {
        topic_id: (*one.get(topic_id, ()), *other.get(topic_id, ()))
        for topic_id in {**one, **other}
    }


def _named(topics: Topics, partitions_by_id: _Partitions) -> describe.Assignment:
    """Partitions by topic name (KAFKA-20431). Deleted topics are left out."""
    by_id = topics.by_id
    return describe.Assignment(
        topic_partitions=[
            describe.TopicPartitions(
                topic_id=topic_id, topic_name=by_id[topic_id].name, partitions=sorted(partitions)
            )
            for topic_id, partitions in partitions_by_id.items()
            if topic_id in by_id
        ]
    )
