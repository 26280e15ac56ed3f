"""Who had which partitions before, checked, so that no partition is ever planned twice."""

from collections.abc import Mapping, Sequence

from kohort.assignors.subscriptions import AssignorError
from kohort.terms import MemberId, TopicId, uuid_text


class Claims:
    """The partitions of the subscribed topics that somebody had before.

    A plan that became a log record may have been written by somebody else, so claims are checked:
    the first claim of a partition stands, later ones are dropped.
    """

    __slots__ = ("counts", "taken")

    def __init__(self, counts: Mapping[TopicId, int]) -> None:
        self.counts = counts
        self.taken: dict[TopicId, bytearray] = {}

    def claim(self, member: MemberId, topic: TopicId, previous: tuple[int, ...]) -> tuple[int, ...]:
        """What the member may keep of what it had: the same object if that is all of it.

        Raises AssignorError for a partition that the topic does not have (topics never shrink).
        """
        if not previous:
            return previous
        taken = self.taken.get(topic)
        if taken is None:
            taken = self.taken[topic] = bytearray(self.counts[topic])
        first = previous[0]
        end = previous[-1] + 1
        size = len(previous)
        whole = size == 1 or (end - first == size and previous == tuple(range(first, end)))
        if whole and first >= 0 and end <= len(taken) and taken.find(1, first, end) < 0:
            taken[first:end] = b"\x01" * size
            return previous
        mine = []
        for partition in previous:
            if not 0 <= partition < len(taken):
                raise AssignorError(
                    f"member {member} had partition {partition} of topic {uuid_text(topic)}, "
                    f"which has {len(taken)} partitions",
                )
            if not taken[partition]:
                taken[partition] = 1
                mine.append(partition)
        return previous if len(mine) == size else tuple(sorted(mine))

    def free(self, topic: TopicId) -> Sequence[int]:
        """The partitions of the topic that nobody had, ascending."""
        taken = self.taken.get(topic)
        if taken is None:
            return range(self.counts[topic])
        if not taken.count(0):
            return ()
        return [partition for partition, claimed in enumerate(taken) if not claimed]


def joined(mine: tuple[int, ...], more: Sequence[int]) -> tuple[int, ...]:
    """Both together, ascending."""
    if not mine:
        return tuple(more)
    if more and more[0] > mine[-1]:
        return (*mine, *more)
    return tuple(sorted((*mine, *more)))
