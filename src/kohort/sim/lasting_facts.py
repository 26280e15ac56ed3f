# SPDX-License-Identifier: Apache-2.0
"""Facts about what lasts, or must not: things that are changed and looked at, what expires, what is
cleaned, who has left, and how far a log goes. See `facts.py`.
"""

from typing import NamedTuple

from kohort.sim.partition_id import PartitionId


class ChangeDone(NamedTuple):
    """It is acknowledged that a thing has a value. One actor changes it, and looks at it."""

    thing: str
    value: str


class ChangeRefused(NamedTuple):
    """An error says that a thing has not got this value: it has the one that it had."""

    thing: str
    value: str


class ChangeLost(NamedTuple):
    """No answer came. The change may still be carried out."""

    thing: str
    value: str
    at: int


class StateRead(NamedTuple):
    """The value that a thing has."""

    thing: str
    value: str
    sent: int


class CompactedRead(NamedTuple):
    """A compacted partition was read from its begin to its end. `last` has of each key the offset
    of a record that was acknowledged, and counts, before that.
    """

    place: PartitionId
    last: dict[bytes, int]
    values: dict[int, bytes]


class HeldRead(NamedTuple):
    """The same, while a transaction was open that has ended in order later; `opened` is what was
    acknowledged in it. Readers of committed records came to `stopped`.
    """

    place: PartitionId
    opened: dict[int, bytes]
    values: dict[int, bytes]
    stopped: int


class LifetimeSeen(NamedTuple):
    """Whether something is there that must live until an instant, and must be gone by another."""

    thing: str
    there: bool
    sent: int
    at: int
    lives_until: int
    gone_by: int


class MemberDeparted(NamedTuple):
    """It is acknowledged that a member has left. Nobody comes back by its member id. A classic
    group remembers that only until it is read from its log again, unless it came to rest without
    the member: Kafka writes nothing when a member leaves such a group.
    """

    group: str
    member: str
    at: int
    for_good: bool


class BrokerStarted(NamedTuple):
    """The next life of the broker begins."""

    at: int


class LogReloaded(NamedTuple):
    """The broker goes on, and what a partition of the group log tells of is read from it again: a
    write to it has failed.
    """

    at: int


class MembersSeen(NamedTuple):
    """A group is described: the ids of its members."""

    group: str
    members: tuple[str, ...]
    sent: int


class ForgedAnswered(NamedTuple):
    """A batch that may not be an honest one is answered. Of those that must be refused no records
    may count.
    """

    kind: str
    code: int
    records: int


class EndSeen(NamedTuple):
    """Where a partition ends, and how many records it may have at most."""

    place: PartitionId
    end: int
    at_most: int
