# SPDX-License-Identifier: Apache-2.0
"""What clients could see, and what was done to the world: the only things that checkers judge.

Actors tell facts as they learn them. `sent` is the instant at which the request left whose answer
tells the fact, `at` an instant of the fact itself; both in microseconds.
"""

from typing import NamedTuple

from kohort.sim.access_facts import AccessFact
from kohort.sim.lasting_facts import (
    BrokerStarted,
    ChangeDone,
    ChangeLost,
    ChangeRefused,
    CompactedRead,
    EndSeen,
    ForgedAnswered,
    HeldRead,
    LifetimeSeen,
    LogReloaded,
    MemberDeparted,
    MembersSeen,
    StateRead,
)
from kohort.sim.partition_id import PartitionId as PartitionId  # noqa: PLC0414  (whoever takes facts takes it from here)
from kohort.sim.programs.facts import ProgramFact


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

    place: PartitionId
    value: bytes
    once: bool


class RecordKept(NamedTuple):
    """The record is acknowledged."""

    place: PartitionId
    offset: int
    value: bytes
    sent: int


class RecordRead(NamedTuple):
    place: PartitionId
    offset: int
    value: bytes
    sent: int


class AllRead(NamedTuple):
    """A partition was read from its begin to its end, without an error."""

    place: PartitionId
    values: dict[int, bytes]


class StillUnavailable(NamedTuple):
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
    to: str  # the transactional id, or else the client


class ProducerTaken(NamedTuple):
    """A transactional id is at this producer id and epoch: the answer to InitProducerId, or to an
    end that gives its producer another epoch.
    """

    transactional_id: str
    producer_id: int
    epoch: int
    at: int


class ProducerServed(NamedTuple):
    """A request of a transactional producer was answered without an error."""

    transactional_id: str
    producer_id: int
    epoch: int
    what: str
    sent: int


class SentInTransaction(NamedTuple):
    """A value is about to be produced in a transaction, which has a name of its own."""

    transaction: str
    transactional_id: str
    place: PartitionId
    value: bytes


class PartitionEnrolled(NamedTuple):
    """A partition is about to come into a transaction, whether anything is written to it or not."""

    transactional_id: str
    folder: str


class OffsetsInTransaction(NamedTuple):
    """A transaction is about to take a group on from what the transaction `before` has left; that
    is empty for the first. Its name is the metadata of the offset.
    """

    transaction: str
    transactional_id: str
    group: str
    partition: int
    before: str


class TransactionEnding(NamedTuple):
    """The producer is about to say how its transaction ends. What it has sent in it is acknowledged
    before it commits.
    """

    transaction: str
    commit: bool


class TransactionEnded(NamedTuple):
    """The end is acknowledged."""

    transaction: str
    commit: bool


class CommittedRead(NamedTuple):
    """A reader of committed records has come from an offset to another one, and was given these.
    Each reader of a partition begins at 0 and goes on where it was.
    """

    place: PartitionId
    start: int
    end: int
    values: dict[int, bytes]


class AllCommittedRead(NamedTuple):
    """After everything has come to rest: what readers of committed records get of a partition, and
    where they are stopped, before the end of the log or there.
    """

    place: PartitionId
    values: dict[int, bytes]
    stopped: int
    end: int


class OffsetOfTransaction(NamedTuple):
    """The metadata of a group's offset that no open transaction may change; empty without one.
    `at_rest`: nothing changes it any more.
    """

    group: str
    partition: int
    metadata: str
    at_rest: bool


class TransactionAtEnd(NamedTuple):
    """What state a transactional id is in after everything has come to rest."""

    transactional_id: str
    state: str


class SettingSent(NamedTuple):
    """Something is about to be set for a group. Its values only grow."""

    group: str
    value: int


class SettingLost(NamedTuple):
    """There was no answer, or an error: it may count from some instant on."""

    group: str
    value: int
    at: int


class SettingRead(NamedTuple):
    """What counts for a group. `floor` is what had been acknowledged when the question was sent; 0
    for nothing yet.
    """

    group: str
    value: int
    floor: int
    sent: int


class MemberJoined(NamedTuple):
    """A member is in a group, as a new one. `at` is when it asked: its session counts from before
    the answer, which waits for the disk.
    """

    group: str
    member: str
    at: int


class HeartbeatAccepted(NamedTuple):
    """A heartbeat was answered without an error. `owned` is what the member owned when it sent it,
    with the instant from which on it did.
    """

    group: str
    member: str
    epoch: int
    owned: dict[PartitionId, int]
    sent: int
    at: int


class OwnershipBelief(NamedTuple):
    """A member has been answered, and has reason to believe that it owns these partitions until its
    session ends, counted from when it asked; `session_us` is 0 for the shortest of the run. What it
    is to give up is not among them.
    """

    group: str
    member: str
    owned: frozenset[PartitionId]
    session_us: int
    sent: int
    at: int


class InstanceConfirmed(NamedTuple):
    """A heartbeat of a static member was accepted. `anew`: it is the first since it has joined."""

    group: str
    instance: str
    member: str
    anew: bool
    sent: int
    at: int


class HeartbeatFailed(NamedTuple):
    """A heartbeat was answered with an error that says nothing of the member."""

    group: str
    member: str


class MemberLeft(NamedTuple):
    """A member has told that it leaves, or has started over."""

    group: str
    member: str


class MemberExpelled(NamedTuple):
    """A member that has told nothing of the kind is told that it is unknown."""

    group: str
    member: str
    at: int


class MemberForgotten(NamedTuple):
    """A member of the classic protocol is told at a heartbeat that it is unknown. `heard` is when
    the last one was sent that was accepted.
    """

    group: str
    member: str
    heard: int
    at: int


class MemberCommitSent(NamedTuple):
    """A member is about to say how far it is with a partition that it owns."""

    group: str
    partition: int
    offset: int


class MemberCommitLost(NamedTuple):
    """No answer came. The commit may still be carried out."""

    group: str
    partition: int
    offset: int
    at: int


class MemberCommitted(NamedTuple):
    """The commit of a member is acknowledged."""

    group: str
    partition: int
    offset: int
    at: int


class MemberLooked(NamedTuple):
    """What a group of members has committed; -1 says that there is nothing."""

    group: str
    partition: int
    offset: int
    sent: int


class MemberAtEnd(NamedTuple):
    """What a member has after everything has come to rest. `topics` are the names it reads."""

    group: str
    member: str
    epoch: int
    owned: frozenset[PartitionId]
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
    | StillUnavailable
    | BitFlipped
    | ProducerIdGiven
    | ProducerTaken
    | ProducerServed
    | SentInTransaction
    | PartitionEnrolled
    | OffsetsInTransaction
    | TransactionEnding
    | TransactionEnded
    | CommittedRead
    | AllCommittedRead
    | OffsetOfTransaction
    | TransactionAtEnd
    | SettingSent
    | SettingLost
    | SettingRead
    | ChangeDone
    | ChangeRefused
    | ChangeLost
    | StateRead
    | CompactedRead
    | HeldRead
    | LifetimeSeen
    | MemberDeparted
    | LogReloaded
    | BrokerStarted
    | MembersSeen
    | ForgedAnswered
    | EndSeen
    | MemberJoined
    | HeartbeatAccepted
    | OwnershipBelief
    | InstanceConfirmed
    | HeartbeatFailed
    | MemberLeft
    | MemberExpelled
    | MemberForgotten
    | MemberCommitSent
    | MemberCommitLost
    | MemberCommitted
    | MemberLooked
    | MemberAtEnd
    | TopicsAtEnd
    | ProgramFact
    | AccessFact
)
