"""What every member of a group is meant to have: computed whole, written as what has changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kohort.assignors import AssignorError, Plan, Subscription
from kohort.coordinator.consumer.records import target_epoch_record, target_record
from kohort.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from kohort.assignors import Assignment
    from kohort.coordinator.consumer.group import ConsumerGroup
    from kohort.coordinator.consumer.member import Member
    from kohort.coordinator.shard import Shard
    from kohort.coordinator.topics import Topics
    from kohort.records.codec import Record
    from kohort.terms import Millis, TopicId


@dataclass(frozen=True, slots=True)
class Target:
    """A target of one epoch: that of the member who asked, and the records that make it known."""

    epoch: int
    of_member: Assignment
    records: tuple[Record, ...] = ()


def is_due(shard: Shard, group: ConsumerGroup, epoch: int, now: Millis) -> bool:
    """Whether a target of this epoch is to be computed now: one is needed, and the last was not
    made a moment ago (KIP-1263).
    """
    interval_ms = shard.config.group_consumer_assignment_interval_ms
    return epoch > group.target_epoch and (
        not group.target_time or not interval_ms or now - group.target_time >= interval_ms
    )


def compute(shard: Shard, group: ConsumerGroup, member: Member, epoch: int, now: Millis) -> Target:
    """The target of an epoch, with `member` as this heartbeat leaves it. Raises ApiError."""
    before = group.members.get(member.id)
    name = group.assignor_with((before,) if before else (), (member,))
    plan = _assign(shard, group, member, name)
    records = []
    for member_id, assignment in plan.items():
        known = group.targets.get(member_id)  # None is written even when there is nothing for it
        if known is not assignment and known != assignment:
            records.append(target_record(group.id, member_id, assignment))
    records.append(target_epoch_record(group.id, epoch, now))
    return Target(epoch, plan[member.id], tuple(records))


def _assign(shard: Shard, group: ConsumerGroup, member: Member, name: str) -> Plan:
    topics_of: dict[tuple[str, ...], tuple[TopicId, ...]] = {}
    subscriptions = {}
    for one in {**group.members, member.id: member}.values():
        names = group.names_of(one)
        topics = topics_of.get(names)
        if topics is None:  # members that read the same share one tuple
            topics = topics_of[names] = topic_ids(names, shard.topics)
        previous = _existing(group.targets.get(one.id, {}), shard.topics)
        subscriptions[one.id] = Subscription(topics, previous, one.instance_id, one.rack_id)
    by_id = shard.topics.by_id
    partitions = {
        topic: by_id[topic].partitions for topics in topics_of.values() for topic in topics
    }
    try:
        return shard.assignors[name](subscriptions, partitions)
    except AssignorError as error:
        raise ApiError(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            f"assignor {name} has no assignment for group {group.id}: {error}",
        ) from error


def _existing(previous: Assignment, topics: Topics) -> Assignment:
    """A previous target without partitions that the cluster does not have: a log may come from
    another cluster, where the topic was larger, and an assignor must not stumble over it.
    """
    by_id = topics.by_id
    gone = [
        topic
        for topic, indexes in previous.items()
        if topic in by_id and indexes and indexes[-1] >= by_id[topic].partitions
    ]
    if not gone:
        return previous
    return {
        topic: tuple(one for one in indexes if topic not in gone or one < by_id[topic].partitions)
        for topic, indexes in previous.items()
    }


def topic_ids(names: tuple[str, ...], topics: Topics) -> tuple[TopicId, ...]:
    """The ids of those topics that exist, each once."""
    by_name = topics.by_name
    return tuple(dict.fromkeys(by_name[name].id for name in names if name in by_name))
