# SPDX-License-Identifier: Apache-2.0
"""Producers and transactions as the admin client returns them (KIP-664)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, TypeAlias

from kohort.client.admin.views import Coverage, ListedPart
from kohort.errors import ApiError
from kohort.terms import TopicPartition

TRANSACTIONS_TOPIC = "__transaction_state"


class TransactionState(StrEnum):
    """Every state that ListTransactions and DescribeTransactions can name."""

    EMPTY = "Empty"
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"
    DEAD = "Dead"
    PREPARE_EPOCH_FENCE = "PrepareEpochFence"


TransactionStateName: TypeAlias = (
    TransactionState
    | Literal[
        "Empty",
        "Ongoing",
        "PrepareCommit",
        "PrepareAbort",
        "CompleteCommit",
        "CompleteAbort",
        "Dead",
        "PrepareEpochFence",
    ]
)


@dataclass(frozen=True, slots=True)
class ProducerState:
    """A producer that has written to a partition.

    `last_sequence` and `last_timestamp_ms` are of its last batch; None where it has none.
    `coordinator_epoch` is that of the coordinator that last ended a transaction of it, None for
    nobody. `transaction_start_offset` is where its open transaction begins, None without one.
    """

    producer_id: int
    producer_epoch: int
    last_sequence: int | None
    last_timestamp_ms: int | None
    coordinator_epoch: int | None
    transaction_start_offset: int | None


@dataclass(frozen=True, slots=True)
class TransactionListing:
    """A transactional id as listed by ListTransactions. `state` is the broker's own text when this
    package does not know it.
    """

    transactional_id: str
    producer_id: int
    state: TransactionState | str


@dataclass(frozen=True, slots=True)
class TransactionListings(Coverage):
    """All transactional ids, sorted, and what is missing among them, with the reason.

    `errors` has the id of each broker that could not be asked, and the partition of
    __transaction_state of each coordinator that could not, such as one that nobody is at the
    moment: what they have is missing from `transactions`. `unverified` says why it is not known
    whether all coordinators have answered; None where that is known. `missing` has both.
    """

    transactions: tuple[TransactionListing, ...]
    errors: Mapping[int | TopicPartition, ApiError]
    unverified: ApiError | None = None

    @property
    def missing(self) -> dict[ListedPart, ApiError]:
        """`errors`, and `unverified` under the name of the topic that it is about."""
        found: dict[ListedPart, ApiError] = dict(self.errors.items())
        if self.unverified is not None:
            found[TRANSACTIONS_TOPIC] = self.unverified
        return found

    def __iter__(self) -> Iterator[TransactionListing]:
        return iter(self.transactions)

    def __len__(self) -> int:
        return len(self.transactions)


@dataclass(frozen=True, slots=True)
class TransactionDescription:
    """Where the transaction of a transactional id stands.

    `partitions` are those that are in it, sorted. `start_time_ms` is None where none is open;
    Apache Kafka 3.9 names that of the last one there.
    """

    transactional_id: str
    coordinator_id: int
    state: TransactionState | str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    start_time_ms: int | None
    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class FencedProducer:
    """Who has a transactional id now: nobody writes under it with a lower epoch."""

    producer_id: int
    producer_epoch: int
