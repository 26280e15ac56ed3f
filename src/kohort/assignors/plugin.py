# SPDX-License-Identifier: Apache-2.0
"""Assignors that others have written: nothing they return is believed before it is checked.

They get copies, so they cannot change what the coordinator remembers.
"""

from collections.abc import Iterable, Mapping

from kohort.assignors.subscriptions import (
    Assign,
    Assignment,
    AssignorError,
    Plan,
    Subscription,
)
from kohort.terms import MemberId, TopicId, uuid_text


def assign_by(
    assign: Assign, members: Mapping[MemberId, Subscription], partitions: Mapping[TopicId, int]
) -> Plan:
    """The plan of a plugin assignor, with partitions ascending. Members that it leaves out get
    nothing, and partitions that it leaves out go to nobody.

    Raises AssignorError for a plan that cannot be, and whatever the assignor raises.
    """
    copies = {
        member: Subscription(
            subscription.topics,
            dict(subscription.previous),
            subscription.instance_id,
            subscription.rack,
            alike=subscription.alike,
        )
        for member, subscription in members.items()
    }
    return checked(assign(copies, dict(partitions)), members, partitions)


def checked(
    plan: object, members: Mapping[MemberId, Subscription], partitions: Mapping[TopicId, int]
) -> Plan:
    """The plan, complete and in order. Raises AssignorError where it is none for this group."""
    if not isinstance(plan, Mapping):
        raise AssignorError(f"it has returned {_short(plan)}, expected a dict by member id")
    for member in plan:
        if member not in members:
            raise AssignorError(f"its plan has {_short(member)}, expected members of the group")
    owners: dict[tuple[TopicId, int], MemberId] = {}
    return {
        member: _assignment(member, plan.get(member, {}), indexes, partitions, owners)
        for member, indexes in members.items()
    }


def _assignment(
    member: MemberId,
    given: object,
    subscription: Subscription,
    partitions: Mapping[TopicId, int],
    owners: dict[tuple[TopicId, int], MemberId],
) -> Assignment:
    if not isinstance(given, Mapping):
        raise AssignorError(f"its plan gives {member} {_short(given)}, expected a dict by topic id")
    assignment: Assignment = {}
    topics = frozenset(subscription.topics)
    for topic, indexes in given.items():
        if topic not in topics:
            raise AssignorError(
                f"its plan gives {member} the topic {_named(topic)}, to which it does not subscribe"
            )
        if not isinstance(indexes, Iterable):
            raise AssignorError(
                f"its plan gives {member} {_short(indexes)} of topic {_named(topic)}, expected "
                "numbers of partitions"
            )
        numbers = list(indexes)
        for index in numbers:
            _check_partition(member, topic, index, partitions, owners)
        if numbers:
            assignment[topic] = tuple(sorted(numbers))
    return assignment


def _check_partition(
    member: MemberId,
    topic: TopicId,
    index: object,
    partitions: Mapping[TopicId, int],
    owners: dict[tuple[TopicId, int], MemberId],
) -> None:
    count = partitions[topic]
    if type(index) is not int or not 0 <= index < count:
        raise AssignorError(
            f"its plan gives {member} partition {_short(index)} of topic {_named(topic)}, "
            f"which has {count}"
        )
    owner = owners.get((topic, index))
    if owner is not None:
        raise AssignorError(
            f"its plan gives partition {index} of topic {_named(topic)} to {owner} and to {member}"
        )
    owners[topic, index] = member


def _named(topic: object) -> str:
    return uuid_text(topic) if isinstance(topic, bytes) and len(topic) == 16 else _short(topic)


def _short(value: object) -> str:
    return repr(value)[:80]
