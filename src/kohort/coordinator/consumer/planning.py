"""What every member of a group should have: computed for all, written where it has changed."""

from dataclasses import dataclass

from kohort.assignors import Assignment, AssignorError, Plan, Subscription
from kohort.coordinator.consumer.group import ConsumerGroup
from kohort.coordinator.consumer.member import Member
from kohort.coordinator.consumer.records import target_epoch_record, target_record
from kohort.coordinator.consumer.target import NOTHING, Target
from kohort.coordinator.state import State
from kohort.coordinator.topics import Topics
from kohort.errors import ApiError, ErrorCode
from kohort.java import hash_order, text_hash
from kohort.records.codec import Record
from kohort.terms import Millis, TopicId


@dataclass(frozen=True, slots=True)
class Computed:
    """The targets of an epoch: the target of the member that asked, and the records that publish
    all of them.
    """

    epoch: int
    of_member: Target
    records: tuple[Record, ...]


def plan(
    state: State, group: ConsumerGroup, member: Member, epoch: int, now: Millis
) -> Computed | None:
    """The targets of an epoch, with `member` as this heartbeat leaves it. None when the present
    targets stand: they are of that epoch, or were computed a moment ago (KIP-1263).

    Raises ApiError where the assignor has no plan.
    """
    interval_ms = group.settings.assignment_interval_ms
    if epoch <= group.target_epoch:
        return None
    # A time ahead of the clock is none: the clock was set back, or the log is from elsewhere.
    if group.target_time and 0 <= now - group.target_time < interval_ms:
        return None
    return _compute(state, group, member, epoch, now)


def _compute(
    state: State, group: ConsumerGroup, member: Member, epoch: int, now: Millis
) -> Computed:
    before = group.members.get(member.id)
    name = group.assignor_with((before,) if before else (), (member,))
    records = []
    targets = {}
    for member_id, assignment in _assign(state, group, member, name).items():
        known = group.targets.get(member_id)  # None is written even when there is nothing for it
        if known is not None and _is_as(known, assignment):
            targets[member_id] = known
            continue
        targets[member_id] = target = Target(assignment)
        records.append(target_record(group.id, member_id, target))
    records.append(target_epoch_record(group.id, epoch, now))
    return Computed(epoch, targets[member.id], tuple(records))


def _is_as(known: Target, assignment: Assignment) -> bool:
    """Whether a target is what a server-side assignor would give with this assignment."""
    same = known.partitions is assignment or known.partitions == assignment
    return same and not known.metadata and not known.error


def _assign(state: State, group: ConsumerGroup, member: Member, name: str) -> Plan:
    topics_of: dict[tuple[str, ...], tuple[TopicId, ...]] = {}
    subscriptions = {}
    members = {**group.members, member.id: member}
    # An assignor's result depends on the order of members, so the order is upstream's.
    for member_id in hash_order(members, text_hash):
        one = members[member_id]
        names = group.names_of(one)
        topics = topics_of.get(names)
        if topics is None:  # members that read the same share one tuple
            topics = topics_of[names] = topic_ids(names, state.topics)
        previous = _existing(group.targets.get(member_id, NOTHING).partitions, state.topics)
        subscriptions[member_id] = Subscription(topics, previous, one.instance_id, one.rack_id)
    if len(topics_of) > 1 and len(set(map(frozenset, topics_of))) > 1:
        for subscription in subscriptions.values():
            subscription.alike = False
    by_id = state.topics.by_id
    partitions = {
        topic: by_id[topic].partitions for topics in topics_of.values() for topic in topics
    }
    try:
        return state.assignors[name](subscriptions, partitions)
    except AssignorError as error:
        raise ApiError(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            f"assignor {name} has no assignment for group {group.id}: {error}",
        ) from error


def _existing(previous: Assignment, topics: Topics) -> Assignment:
    """A previous target without partitions that the cluster does not have. A log may come from
    another cluster, where the topic was larger, and an assignor must not fail on it.
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
