# SPDX-License-Identifier: Apache-2.0
"""What applications that use our Consumer and Producer are given, and what they are told.

Topics of programs are never deleted, so a partition is named by its topic. `client` is one life of
one application. Times are microseconds.
"""

from typing import NamedTuple

Part = tuple[str, int]
"""A partition: the name of its topic, and its index."""


class PartitionsAssigned(NamedTuple):
    """The listener is told that these begin. `session_us` is how long the group takes a silent
    member to be there; None where the broker's setting counts.
    """

    client: str
    group: str
    parts: tuple[Part, ...]
    committed_only: bool  # it reads committed records
    session_us: int | None
    at: int


class PartitionsUnassigned(NamedTuple):
    """The listener is told that these end; `lost` says that others may have them already."""

    client: str
    parts: tuple[Part, ...]
    lost: bool
    at: int


class RecordHandedOut(NamedTuple):
    """The application gets a record."""

    client: str
    group: str
    part: Part
    offset: int
    value: bytes
    at: int


class RecordProcessed(NamedTuple):
    """The application has processed a record, and is about to say so."""

    group: str
    part: Part
    offset: int


class ConsumerSeek(NamedTuple):
    """The application goes on from another place."""

    client: str
    part: Part
    offset: int


class PartitionPause(NamedTuple):
    """The application wants nothing of a partition for a while, or wants it again."""

    client: str
    part: Part
    on: bool


class CommitRefused(NamedTuple):
    """A commit of the application was refused, as by a group that does not count it any more."""

    client: str
    at: int


class ClientGone(NamedTuple):
    """The process has ended, or is gone."""

    client: str


class GroupOffset(NamedTuple):
    """How far a group has committed, when all is over; -1 says that there is nothing."""

    group: str
    part: Part
    offset: int


class FinalPositions(NamedTuple):
    """Long after all has become calm: what an application has, and the next offset it would get.
    `inside`: it is a member of its group, if it is to be one.
    """

    client: str
    group: str
    topics: tuple[str, ...]  # that it reads
    positions: dict[Part, int]
    inside: bool = True


class SendCalled(NamedTuple):
    """`send` was called; `number` counts those of a client."""

    client: str
    number: int
    topic: str
    value: bytes


class RecordDelivered(NamedTuple):
    """The delivery says where a record is; offset -1: it was there already."""

    client: str
    number: int
    part: Part
    offset: int
    value: bytes


class DeliveryRefused(NamedTuple):
    """The record is refused; `maybe` says that the log may have it."""

    client: str
    value: bytes
    maybe: bool


class DeliveryUnresolved(NamedTuple):
    """The producer is closed, and a delivery has no outcome."""

    client: str
    value: bytes


class TransactionConcluded(NamedTuple):
    """What became of the records of a transaction: committed or not; None: nobody knows."""

    values: tuple[bytes, ...]
    committed: bool | None


class CopyGroup(NamedTuple):
    """This group copies `source` to `target`: a record's value is its place in the source."""

    group: str
    source: str
    target: str


ProgramFact = (
    PartitionsAssigned
    | PartitionsUnassigned
    | RecordHandedOut
    | RecordProcessed
    | ConsumerSeek
    | PartitionPause
    | CommitRefused
    | ClientGone
    | GroupOffset
    | FinalPositions
    | SendCalled
    | RecordDelivered
    | DeliveryRefused
    | DeliveryUnresolved
    | TransactionConcluded
    | CopyGroup
)
