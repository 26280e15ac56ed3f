# SPDX-License-Identifier: Apache-2.0
"""What a machine of transactions knows. Handlers read it and describe how it should change.

Only replay changes what a log can bring back. Handlers themselves change what no record tells: the
deadlines, the markers that are under way, and the epoch before the last one.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from kohort.config import BrokerConfig
from kohort.errors import ApiError, ErrorCode
from kohort.machines.deadlines import Deadlines
from kohort.terms import Millis, TopicPartition
from kohort.transactions.messages import Ticket
from kohort.transactions.transaction import NO_PRODUCER, Transaction

TIMEOUT, EXPIRY, MARKERS = "timeout", "expiry", "markers"  # kinds of deadlines


@dataclass(frozen=True, slots=True)
class TransactionSettings:
    """The settings of transactions, as values."""

    max_timeout_ms: int
    expiration_ms: int

    @classmethod
    def of(cls, config: BrokerConfig) -> Self:
        return cls(config.transaction_max_timeout_ms, config.transactional_id_expiration_ms)


class PendingMarkers:
    """The markers of one transaction that are not known to be durable yet."""

    __slots__ = ("left", "ticket")

    def __init__(self, partitions: dict[TopicPartition, None]) -> None:
        self.ticket = Ticket()
        self.left = dict(partitions)


class State:
    """The transactional ids of one partition of the log.

    `new_producer_id` gives an id that nobody has had, or None when more must be reserved first.
    `marker_sender` is the token of those who write markers. `note_producer_id` is told each id that
    the log has: it must not be given out again.
    """

    def __init__(
        self,
        config: BrokerConfig,
        new_producer_id: Callable[[], int | None],
        marker_sender: object,
        note_producer_id: Callable[[int], None],
    ) -> None:
        self.settings = TransactionSettings.of(config)
        self.marker_sender = marker_sender
        self.transactions: dict[str, Transaction] = {}
        self.pending_markers: dict[str, PendingMarkers] = {}
        self.last_epochs: dict[str, int] = {}  # of those that a client has asked to raise
        self.deadlines = Deadlines()
        self.unexpected_markers = 0  # markers in the log, which nothing here waits for
        self.last_unexpected_marker = ""
        self.lines: list[str] = []  # for the log of the broker
        self._new_producer_id = new_producer_id
        self.note_producer_id = note_producer_id

    def new_producer_id(self) -> int:
        """A producer id that nobody has had. Raises ApiError while more are being reserved."""
        producer_id = self._new_producer_id()
        if producer_id is None:
            raise ApiError(
                ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "more producer ids are being reserved"
            )
        return producer_id

    def transaction_of(self, transactional_id: str, producer_id: int) -> Transaction:
        """The transactional id as the log has it. Raises ApiError where this producer has no such
        id.
        """
        if not transactional_id:
            raise ApiError(ErrorCode.INVALID_REQUEST, "the transactional id is empty")
        known = self.transactions.get(transactional_id)
        if known is None:
            raise ApiError(
                ErrorCode.INVALID_PRODUCER_ID_MAPPING,
                f"no producer has the transactional id {transactional_id!r}",
            )
        return self.check_producer_id(known, producer_id)

    def check_producer_id(self, known: Transaction, producer_id: int) -> Transaction:
        """The same, if it is the producer's. Raises ApiError.

        A producer without further epochs is told its next id with the decision, and may use it
        before the transaction is over.
        """
        if known.producer_id != producer_id:
            if producer_id == known.next_producer_id != NO_PRODUCER:
                raise concurrent(known)
            raise ApiError(
                ErrorCode.INVALID_PRODUCER_ID_MAPPING,
                f"transactional id {known.id!r} belongs to producer {known.producer_id}, "
                f"the request says {producer_id}",
            )
        return known

    def schedule_expiry(self, transactional_id: str, now: Millis) -> None:
        """The id has no transaction: it expires when nobody uses it for long."""
        self.deadlines.cancel((TIMEOUT, transactional_id))
        self.deadlines.set((EXPIRY, transactional_id), Millis(now + self.settings.expiration_ms))

    def schedule_timeout(self, transactional_id: str, ends_at: Millis) -> None:
        """The id has a transaction, which must have ended by then."""
        self.deadlines.cancel((EXPIRY, transactional_id))
        self.deadlines.set((TIMEOUT, transactional_id), ends_at)

    def cancel_deadlines(self, transactional_id: str) -> None:
        """The end of its transaction is decided, and no time limits what follows."""
        self.deadlines.cancel((TIMEOUT, transactional_id))
        self.deadlines.cancel((EXPIRY, transactional_id))


def fenced(known: Transaction, epoch: int) -> ApiError:
    """The refusal of a producer that another one has taken the place of, or that is too late."""
    return ApiError(
        ErrorCode.PRODUCER_FENCED,
        f"producer {known.producer_id} of transactional id {known.id!r} is at epoch "
        f"{known.epoch}, the request says {epoch}",
    )


def concurrent(known: Transaction) -> ApiError:
    """The refusal of what must wait for the end of the last transaction."""
    return ApiError(
        ErrorCode.CONCURRENT_TRANSACTIONS,
        f"the transaction of {known.id!r} is being ended: {known.state.value}",
    )
