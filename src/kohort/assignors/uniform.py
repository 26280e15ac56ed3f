# SPDX-License-Identifier: Apache-2.0
"""Uniform: loads as equal as subscriptions allow, and as little movement as that permits.

Balance comes first, stickiness second; topics are not aligned with one another, and racks do not
count. This module has the case in which all members subscribe to the same topics: loads differ by
at most one, members keep what they had up to their share, and nothing else moves. `uniform_mixed`
has the other case.
"""

from collections.abc import Mapping

from kohort.assignors.ownership import Claims, joined
from kohort.assignors.subscriptions import (
    Assignment,
    AssignorError,
    Plan,
    Subscribers,
    Subscription,
    by_subscription,
)
from kohort.assignors.uniform_mixed import assign_mixed
from kohort.java import copied_table, hash_order, id_hash
from kohort.terms import NO_TOPIC_ID, MemberId, TopicId

Chunk = tuple[TopicId, tuple[int, ...]]
"""Partitions of one topic that are free, in the order in which they are dealt."""

NO_CHUNK: Chunk = (NO_TOPIC_ID, ())


def assign(
    members: Mapping[MemberId, Subscription],
    partitions: Mapping[TopicId, int],
) -> Plan:
    """Members that hold an extra partition keep it; another extra goes to one of the last."""
    if not members:
        return {}
    subscriptions = by_subscription(members, partitions)
    if len(subscriptions) > 1 or not next(iter(members.values())).alike:
        return assign_mixed(members, subscriptions, partitions)
    return assign_same(members, subscriptions[0], partitions)


def assign_same(
    members: Mapping[MemberId, Subscription],
    subscribers: Subscribers,
    partitions: Mapping[TopicId, int],
) -> Plan:
    """Let each member keep up to its share, then deal what is free to those below theirs."""
    counts = {topic: partitions[topic] for topic in subscribers.topics}
    claims = Claims(counts)
    share, extras = divmod(sum(counts.values()), len(members))
    plan: Plan = {}
    wanting: list[tuple[MemberId, int]] = []
    released: list[Chunk] = []
    remaining = len(members)
    for member, subscription in members.items():
        had = subscription.previous
        kept = 0
        if had:
            had = claims.keep(member, had, counts)
            for mine in had.values():
                kept += len(mine)
        quota = share + 1 if extras else share
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

    # Upstream copies them into a hash set, whose order within a bucket is by chance.
    topics = hash_order(subscribers.topics, id_hash, copied_table(len(subscribers.topics)))
    free = [(topic, chunk) for topic in topics if (chunk := claims.free(topic))]
    deal(plan, wanting, [*free, *released])
    return plan


def cut(had: Assignment, quota: int, released: list[Chunk]) -> Assignment:
    """The first `quota` partitions in the order of upstream's hash tables, topics and numbers; the
    rest is added to `released`.
    """
    kept: Assignment = {}
    for topic in hash_order(had, id_hash):
        mine = had[topic]
        if len(mine) <= quota:
            kept[topic] = mine
            quota -= len(mine)
        else:
            tabled = hash_order(mine, int)
            if quota:
                kept[topic] = tuple(sorted(tabled[:quota]))
            released.append((topic, tuple(tabled[quota:])))
            quota = 0
    return kept


def deal(plan: Plan, wanting: list[tuple[MemberId, int]], free: list[Chunk]) -> None:
    """Fill the members that are below their share, one after the other, from the head of `free`."""
    chunks = iter(free)
    topic, chunk = next(chunks, NO_CHUNK)
    start = 0
    for member, want in wanting:
        mine = plan[member]
        end = start + want
        if not mine and end <= len(chunk):
            plan[member] = {topic: tuple(sorted(chunk[start:end]))}
            start = end
            continue
        mine = dict(mine)
        missing = want
        while missing:
            if start == len(chunk):
                topic, chunk = next(chunks, NO_CHUNK)
                start = 0
                if not chunk:
                    raise AssignorError(f"member {member} should get {missing} more than are free")
            part = chunk[start : start + missing]
            mine[topic] = joined(mine.get(topic, ()), tuple(sorted(part)))
            missing -= len(part)
            start += len(part)
        plan[member] = mine
    left = len(chunk) - start + sum(len(part) for _, part in chunks)
    if left:
        raise AssignorError(f"{left} partitions are left over")
