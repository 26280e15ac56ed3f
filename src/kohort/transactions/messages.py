# SPDX-License-Identifier: Apache-2.0
"""What the machine says and hears beside the requests of clients: values, nothing else.

Partitions are asked to end a transaction by `Markers`, and `MarkersWritten` tells how that went.
`Enrol` stands for every request that needs a partition to be in a transaction.
"""

from typing import NamedTuple

from kohort.errors import ApiError, ErrorCode
from kohort.machines.effects import Producer
from kohort.terms import TopicPartition


class Ticket:
    """Which end of a transaction a marker belongs to. Only the same ticket is equal to it."""

    __slots__ = ()


class Markers(NamedTuple):
    """The end of a transaction, for these partitions; it is durably decided."""

    transactional_id: str
    ticket: Ticket
    producer: Producer
    commit: bool
    partitions: tuple[TopicPartition, ...]


class MarkersWritten(NamedTuple):
    """What has become of the markers: the partitions where they are durable, and the others, which
    must be asked again.
    """

    transactional_id: str
    ticket: Ticket
    written: tuple[TopicPartition, ...]
    failed: tuple[TopicPartition, ...]

    def refused(self, _error: ApiError) -> None:
        """Nobody waits for an answer: a machine that is read anew asks for the markers anew."""


class EnrolResult(NamedTuple):
    """Whether partitions are in a transaction now. `missing` has those that are not, where nothing
    was to be added.
    """

    code: ErrorCode
    message: str = ""
    missing: frozenset[TopicPartition] = frozenset()


class Enrol(NamedTuple):
    """Add partitions to the transaction of a producer; with `verify_only`, ask whether they are in
    it.
    """

    transactional_id: str
    producer: Producer
    partitions: tuple[TopicPartition, ...]
    client_version: int = 0
    verify_only: bool = False

    def refused(self, error: ApiError) -> EnrolResult:
        return EnrolResult(error.code, error.message)
