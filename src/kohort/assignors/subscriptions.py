# SPDX-License-Identifier: Apache-2.0
"""What an assignor is given, what it returns, and the orders by which upstream sorts.

Members with equal subscriptions are handled together: a group of ten thousand members has few
distinct subscriptions, and work per subscription keeps an assignor fast.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from kohort.errors import KohortError
from kohort.terms import MemberId, TopicId, java_order, uuid_text

Assignment = dict[TopicId, tuple[int, ...]]
Plan = dict[MemberId, Assignment]


class AssignorError(KohortError):
    """No plan can be made of this input. The group keeps the target that it has."""


@dataclass(slots=True)
class Subscription:
    """What one member wants, and the target that it had until now.

    `topics` holds only topics that exist. Members with equal subscriptions should share one tuple:
    equal tuples are found by identity first. `previous` is the target of the last plan, ascending
    and without repeats in each topic; an assignor may return the same mapping, so nobody may change
    it. `alike` says that all members of the group subscribe to the same names; names that do not
    exist count too, though they are not in `topics`.
    """

    topics: tuple[TopicId, ...]
    previous: Assignment = field(default_factory=dict)
    instance_id: str | None = None
    rack: str | None = None
    alike: bool = True


Assign = Callable[[Mapping[MemberId, Subscription], Mapping[TopicId, int]], Plan]
"""From members (in order) and the number of partitions of each topic to a plan for every member.

Raises AssignorError.
"""


def java_sorted(texts: Iterable[str]) -> list[str]:
    """The texts in Java's order. ASCII texts, as ids nearly always are, need no keys."""
    every = list(texts)
    if all(map(str.isascii, every)):
        every.sort()
    else:
        every.sort(key=java_order)
    return every


def topic_order(topic: TopicId) -> tuple[int, int]:
    """A sort key: upstream compares ids as two signed 64-bit halves, the high one first."""
    return (
        int.from_bytes(topic[:8], "big", signed=True),
        int.from_bytes(topic[8:], "big", signed=True),
    )


class Subscribers:
    """All members of one subscription, in the order in which the group has them."""

    __slots__ = ("members", "topics")

    def __init__(self, topics: list[TopicId]) -> None:
        self.topics = topics
        self.members: list[MemberId] = []


def by_subscription(
    members: Mapping[MemberId, Subscription],
    partitions: Mapping[TopicId, int],
) -> list[Subscribers]:
    """The distinct subscriptions with their members, topics in upstream's order of ids.

    Raises AssignorError for a topic that `partitions` does not know.
    """
    alike: dict[int, Subscribers] = {}
    distinct: dict[tuple[TopicId, ...], Subscribers] = {}
    for member, subscription in members.items():
        topics = subscription.topics
        # Hashing a tuple of a thousand ids for each member would cost more than the plan.
        subscribers = alike.get(id(topics))
        if subscribers is None:
            subscribers = distinct.get(topics)
            if subscribers is None:
                ordered = sorted(set(topics), key=topic_order)
                for topic in ordered:
                    if topic not in partitions:
                        raise AssignorError(
                            f"member {member} subscribes to topic {uuid_text(topic)}, "
                            "which the cluster does not have",
                        )
                subscribers = distinct.setdefault(tuple(ordered), Subscribers(ordered))
                distinct[topics] = subscribers
            alike[id(topics)] = subscribers
        subscribers.members.append(member)
    return list({id(subscription): subscription for subscription in distinct.values()}.values())
