# SPDX-License-Identifier: Apache-2.0
"""Range: each topic is cut into one run per subscriber, the first ones longer by a partition.

Topics with the same size and the same subscribers are cut at the same places, so a member that
reads two of them has matching partitions. What members had before, and their racks, do not count.
"""

from collections.abc import Mapping

from kohort.assignors.runs import run
from kohort.assignors.subscriptions import (
    Plan,
    Subscribers,
    Subscription,
    by_subscription,
    java_sorted,
)
from kohort.terms import MemberId, TopicId


def assign(
    members: Mapping[MemberId, Subscription],
    partitions: Mapping[TopicId, int],
) -> Plan:
    """The plan. It depends on the ids of members and instances, not on the input's order."""
    plan: Plan = {member: {} for member in members}
    subscriptions = by_subscription(members, partitions)
    in_order = ordered(members)
    readers: dict[TopicId, list[int]] = {}
    for index, subscription in enumerate(subscriptions):
        for topic in subscription.topics:
            readers.setdefault(topic, []).append(index)

    # Topics of the same size with the same readers are cut once.
    together: dict[tuple[tuple[int, ...], int], list[TopicId]] = {}
    for topic, ids in readers.items():
        together.setdefault((tuple(ids), partitions[topic]), []).append(topic)

    merged: dict[tuple[int, ...], list[MemberId]] = {}
    for (indices, count), topics in together.items():
        subscribers = merged.get(indices)
        if subscribers is None:
            subscribers = merge([subscriptions[index] for index in indices], in_order)
            merged[indices] = subscribers
        length, longer = divmod(count, len(subscribers))
        start = 0
        for rank in range(len(subscribers) if length else longer):
            end = start + length + (rank < longer)
            mine = dict.fromkeys(topics, run(start, end))
            member = subscribers[rank]
            if plan[member]:
                plan[member].update(mine)
            else:
                plan[member] = mine
            start = end
    return plan


def ordered(members: Mapping[MemberId, Subscription]) -> list[MemberId]:
    """Static members by instance id, then dynamic ones by member id.

    A static member that restarts has a new member id; its instance id keeps its place.
    """
    static: dict[str, MemberId] = {}
    dynamic: list[str] = []
    for member, subscription in members.items():
        if subscription.instance_id is None:
            dynamic.append(member)
        else:
            static[subscription.instance_id] = member
    return [
        *(static[instance] for instance in java_sorted(static)),
        *map(MemberId, java_sorted(dynamic)),
    ]


def merge(subscriptions: list[Subscribers], in_order: list[MemberId]) -> list[MemberId]:
    """The members of these subscriptions, in the order of the whole group."""
    subscribers = {member for subscription in subscriptions for member in subscription.members}
    if len(subscribers) == len(in_order):
        return in_order
    return [member for member in in_order if member in subscribers]
