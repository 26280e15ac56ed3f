"""What clients could see, and what was done to the world: the only things that checkers judge.

Actors tell facts as they learn them. `sent` is the instant at which the request left whose answer
tells the fact, `at` an instant of the fact itself; both in microseconds.
"""

from typing import NamedTuple

Place = tuple[bytes, int]
"""A partition: the id of its topic, and its index."""


class CommitSent(NamedTuple):
    """A group is about to say how far it has read. Its numbers only grow."""

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
    at: int


class CommitRead(NamedTuple):
    """An answer to OffsetFetch without an error; -1 says that there is nothing. `floor` is what had
    been acknowledged when the question was sent.
    """

    group: str
    partition: int
    offset: int
    floor: int
    sent: int


class CommitsDeleted(NamedTuple):
    """It is acknowledged that a group, or its offset of a partition, is deleted."""

    group: str
    partition: int


class TopicMade(NamedTuple):
    """The creation of a topic is acknowledged."""

    topic_id: bytes
    name: str
    at: int


class TopicDoubtful(NamedTuple):
    """Somebody has asked for a deletion: from now on the topic may be gone."""

    topic_id: bytes


class TopicDeleted(NamedTuple):
    """The deletion of a topic is acknowledged."""

    topic_id: bytes
    at: int


class TopicsSeen(NamedTuple):
    """An answer to Metadata about all topics: id to name."""

    topics: dict[bytes, str]
    sent: int


class RecordSent(NamedTuple):
    """A value is about to be produced. `once` says that it must not be there twice."""

    place: Place
    value: bytes
    once: bool


class RecordKept(NamedTuple):
    """The record is acknowledged."""

    place: Place
    offset: int
    value: bytes
    sent: int


class RecordRead(NamedTuple):
    place: Place
    offset: int
    value: bytes
    sent: int


class AllRead(NamedTuple):
    """A partition was read from its begin to its end, without an error."""

    place: Place
    values: dict[int, bytes]


class NotServed(NamedTuple):
    """After everything has come to rest a partition or a group still gets an error. `folder` is
    where it is kept.
    """

    folder: str
    code: int


class BitFlipped(NamedTuple):
    """A bit of a file in this folder is another one."""

    folder: str


class ProducerIdGiven(NamedTuple):
    producer_id: int
    epoch: int
    asked_for: bool  # a new epoch of an id that the producer had


class Joined(NamedTuple):
    """A member is in a group, as a new one. `at` is when it asked: its session counts from before
    the answer, which waits for the disk.
    """

    group: str
    member: str
    at: int


class Accepted(NamedTuple):
    """A heartbeat was answered without an error. `owned` is what the member owned when it sent it,
    with the instant from which on it did.
    """

    group: str
    member: str
    epoch: int
    owned: dict[Place, int]
    sent: int
    at: int


class Named(NamedTuple):
    """A heartbeat of a static member was accepted. `anew`: it is the first since it has joined."""

    group: str
    instance: str
    member: str
    anew: bool
    sent: int
    at: int


class NotTaken(NamedTuple):
    """A heartbeat was answered with an error that says nothing of the member."""

    group: str
    member: str


class Left(NamedTuple):
    """A member has told that it leaves, or has started over."""

    group: str
    member: str


class Expelled(NamedTuple):
    """A member that has told nothing of the kind is told that it is unknown."""

    group: str
    member: str
    at: int


class MemberAtEnd(NamedTuple):
    """What a member has after everything has come to rest. `topics` are the names it reads."""

    group: str
    member: str
    epoch: int
    owned: frozenset[Place]
    topics: tuple[str, ...]


class TopicsAtEnd(NamedTuple):
    """By name: the id of a topic and the number of its partitions."""

    topics: dict[str, tuple[bytes, int]]


Fact = (
    CommitSent
    | CommitLost
    | CommitRead
    | CommitsDeleted
    | TopicMade
    | TopicDoubtful
    | TopicDeleted
    | TopicsSeen
    | RecordSent
    | RecordKept
    | RecordRead
    | AllRead
    | NotServed
    | BitFlipped
    | ProducerIdGiven
    | Joined
    | Accepted
    | Named
    | NotTaken
    | Left
    | Expelled
    | MemberAtEnd
    | TopicsAtEnd
)
