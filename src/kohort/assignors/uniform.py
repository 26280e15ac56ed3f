"""Uniform: loads as equal as subscriptions allow, and as little movement as that permits.

Balance comes first, stickiness second; topics are not lined up with one another, and racks do not
count. Here is the case in which all members subscribe to the same topics: loads differ by at most
one, members keep what they had up to their share, and nothing else moves. `uniform_mixed` has the
other case.
"""

from collections.abc import Mapping, Sequence

from kohort.assignors.ownership import Claims, joined
from kohort.assignors.subscriptions import (
    Assignment,
    AssignorError,
    Plan,
    Subscribers,
    Subscription,
    by_subscription,
    topic_order,
)
from kohort.assignors.uniform_mixed import assign_mixed
from kohort.terms import MemberId, TopicId

Chunk = tuple[TopicId, Sequence[int]]
"""Partitions of one topic that are free, ascending."""


def assign(
    members: Mapping[MemberId, Subscription],
    partitions: Mapping[TopicId, int],
) -> Plan:
    """Members that already hold more than the others keep that extra partition; a fresh one goes
    last.
    """
    if not members:
        return {}
    subscriptions = by_subscription(members, partitions)
    if len(subscriptions) > 1:
        return assign_mixed(members, subscriptions, partitions)
    return assign_same(members, subscriptions[0], partitions)


def assign_same(
    members: Mapping[MemberId, Subscription],
    subscribers: Subscribers,
    partitions: Mapping[TopicId, int],
) -> Plan:
    """Keep up to each member's share, then deal what is free to those below theirs."""
    counts = {topic: partitions[topic] for topic in subscribers.topics}
    claims = Claims(counts)
    share, extras = divmod(sum(counts.values()), len(members))
    plan: Plan = {}
    wanting: list[tuple[MemberId, int]] = []
    released: list[Chunk] = []
    remaining = len(members)
    for member, subscription in members.items():
        had = still_wanted(claims, member, subscription.previous)
        kept = sum(map(len, had.values())) if had else 0
        quota = share + (extras > 0)
        if kept > quota:
            had = cut(had, quota, released)
            kept = quota
        # An extra stays with a member that holds it. Otherwise it is handed on, as long as there
        # are members left to take it (KAFKA-18688): so an even plan never moves.
        if extras:
            if kept > share or remaining <= extras:
                extras -= 1
            else:
                quota = share
        remaining -= 1
        plan[member] = had
        if kept < quota:
            wanting.append((member, quota - kept))

    free = [(topic, chunk) for topic in subscribers.topics if (chunk := claims.free(topic))]
    deal(plan, wanting, [*free, *released])
    return plan


def still_wanted(claims: Claims, member: MemberId, previous: Assignment) -> Assignment:
    """What the member had of topics that are still subscribed; the same object if that is all."""
    had = previous
    for topic, before in previous.items():
        mine = claims.claim(member, topic, before) if topic in claims.counts else ()
        if mine is not before or not mine:
            if had is previous:
                had = dict(previous)
            if mine:
                had[topic] = mine
            else:
                del had[topic]
    return had


def cut(had: Assignment, quota: int, released: list[Chunk]) -> Assignment:
    """The first `quota` partitions in the order of topics; the rest is added to `released`."""
    kept: Assignment = {}
    for topic in sorted(had, key=topic_order):
        mine = had[topic]
        if len(mine) <= quota:
            kept[topic] = mine
            quota -= len(mine)
        else:
            if quota:
                kept[topic] = mine[:quota]
            released.append((topic, mine[quota:]))
            quota = 0
    return kept


def deal(plan: Plan, wanting: list[tuple[MemberId, int]], free: list[Chunk]) -> None:
    """Fill the members that are below their share, one after the other, from the head of `free`."""
    index = 0
    start = 0
    for member, want in wanting:
        mine = dict(plan[member])
        missing = want
        while missing and index < len(free):
            topic, chunk = free[index]
            part = chunk[start : start + missing]
            mine[topic] = joined(mine.get(topic, ()), part)
            missing -= len(part)
            start += len(part)
            if start == len(chunk):
                index += 1
                start = 0
        if missing:
            raise AssignorError(
                f"member {member} should get {missing} partitions more than are free"
            )
        plan[member] = mine
    if index < len(free):
        raise AssignorError(
            f"{sum(len(chunk) for _, chunk in free[index:]) - start} partitions are left over"
        )
