# SPDX-License-Identifier: Apache-2.0
"""Who had which partitions before, checked, so that no partition is ever planned twice."""

from collections.abc import Container, Mapping
from itertools import compress

from kohort.assignors.runs import run
from kohort.assignors.subscriptions import Assignment, AssignorError
from kohort.terms import MemberId, TopicId, uuid_text

FLIPPED = bytes([1]) + bytes(255)  # 0 becomes 1 and everything else 0


class Claims:
    """The partitions of the subscribed topics that somebody had before.

    Another broker may have written the log that a plan comes from, so claims are checked: the first
    claim of a partition stands, later ones are dropped.
    """

    __slots__ = ("counts", "taken")

    def __init__(self, counts: Mapping[TopicId, int]) -> None:
        self.counts = counts
        self.taken: dict[TopicId, bytearray] = {}

    def keep(
        self, member: MemberId, previous: Assignment, wanted: Container[TopicId]
    ) -> Assignment:
        """What the member may keep of what it had: the same object if that is all of it.

        Raises AssignorError for a partition that the topic does not have (topics never shrink).
        """
        had = previous
        all_taken = self.taken
        for topic, before in previous.items():
            mine: tuple[int, ...] = ()
            if before and topic in wanted:
                taken = all_taken.get(topic)
                if taken is None:
                    taken = all_taken[topic] = bytearray(self.counts[topic])
                # Most of what members have are runs, and a run is looked up and marked at once.
                first = before[0]
                size = len(before)
                end = first + size
                if (
                    before[-1] == end - 1
                    and first >= 0
                    and end <= len(taken)
                    and taken.find(1, first, end) < 0
                    and before == run(first, end)
                ):
                    taken[first:end] = b"\x01" * size
                    continue
                mine = self.claim(member, topic, before)
                if mine == before:
                    continue
            if had is previous:
                had = dict(previous)
            if mine:
                had[topic] = mine
            else:
                del had[topic]
        return had

    def claim(self, member: MemberId, topic: TopicId, before: tuple[int, ...]) -> tuple[int, ...]:
        """Claim partitions one by one: those of `before` that are still free, ascending."""
        taken = self.taken[topic]
        mine = []
        for partition in before:
            if not 0 <= partition < len(taken):
                raise AssignorError(
                    f"member {member} had partition {partition} of topic {uuid_text(topic)}, "
                    f"which has {len(taken)} partitions",
                )
            if not taken[partition]:
                taken[partition] = 1
                mine.append(partition)
        return tuple(sorted(mine))

    def free(self, topic: TopicId) -> tuple[int, ...]:
        """The partitions of the topic that nobody had, ascending."""
        taken = self.taken.get(topic)
        if taken is None:
            return run(0, self.counts[topic])
        if not taken.count(0):
            return ()
        numbers = run(0, len(taken))
        return tuple(compress(numbers, taken.translate(FLIPPED)))


def joined(mine: tuple[int, ...], more: tuple[int, ...]) -> tuple[int, ...]:
    """Both together, ascending."""
    if not mine:
        return more
    if more and more[0] > mine[-1]:
        return (*mine, *more)
    return tuple(sorted((*mine, *more)))
