"""What clients could see, and what was done to the world: the only things that checkers judge.

Actors tell facts as they learn them. `sent` in a fact of an answer is the instant at which its
request left, in microseconds.
"""

from typing import NamedTuple


class CommitSent(NamedTuple):
    """A group is about to say how far it has read. Its numbers only grow."""

    group: str
    partition: int
    offset: int


class CommitAcknowledged(NamedTuple):
    group: str
    partition: int
    offset: int


class CommitLost(NamedTuple):
    """No answer came. The commit may still be carried out, behind ones that were sent later on
    another connection.
    """

    group: str
    partition: int
    offset: int


class CommitRead(NamedTuple):
    """An answer to OffsetFetch without an error; -1 says that there is nothing. `floor` is what had
    been acknowledged when the question was sent.
    """

    group: str
    partition: int
    offset: int
    floor: int


Fact = CommitSent | CommitAcknowledged | CommitLost | CommitRead
