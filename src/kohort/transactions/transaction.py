# SPDX-License-Identifier: Apache-2.0
"""One transactional id: which producer has it, and where its transaction stands.

The record in the log holds everything. The states and their numbers are upstream's.
"""

from enum import Enum
from typing import NamedTuple

from kohort.errors import WireError
from kohort.records.transactions import PartitionsSchema, Record, TransactionLogValue
from kohort.terms import Millis, TopicPartition, by_topic

NO_PRODUCER = -1
NO_EPOCH = -1
NO_TIME = Millis(-1)
HIGHEST_EPOCH = (1 << 15) - 1
EPOCHS_IN_RESPONSE = 2  # the version of transactions in which EndTxn raises the epoch (KIP-890)


class TransactionState(Enum):
    """Where a transaction stands, as DescribeTransactions spells it."""

    EMPTY = "Empty"
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"

    @property
    def decided(self) -> bool:
        """Whether the markers of its transaction are still to be written."""
        return self in (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)

    @property
    def commits(self) -> bool:
        """Whether its transaction is, or is to be, committed."""
        return self in (TransactionState.PREPARE_COMMIT, TransactionState.COMPLETE_COMMIT)


# Names that a filter may have beside those: no id stays in them long enough to be seen.
PASSING_STATES = ("Dead", "PrepareEpochFence")
_STATES = tuple(TransactionState)  # in the order of their numbers in the log
_NUMBERS = {state: number for number, state in enumerate(_STATES)}


class Transaction(NamedTuple):
    """What the last record of a transactional id says. `partitions` keeps their order.

    `started_at` is that of the last transaction, also when it has ended, and -1 before the first.
    """

    id: str
    producer_id: int
    epoch: int
    state: TransactionState
    timeout_ms: int
    partitions: dict[TopicPartition, None]
    updated_at: Millis
    started_at: Millis = NO_TIME
    previous_producer_id: int = NO_PRODUCER
    next_producer_id: int = NO_PRODUCER
    client_version: int = 0

    @property
    def exhausted(self) -> bool:
        """Whether the producer has no further epoch for its client."""
        return self.epoch >= HIGHEST_EPOCH - 1

    def record(self) -> Record:
        """The record that makes this true."""
        topics = [
            PartitionsSchema(topic=topic, partition_ids=indexes)
            for topic, indexes in by_topic(self.partitions).items()
        ]
        value = TransactionLogValue(
            producer_id=self.producer_id,
            previous_producer_id=self.previous_producer_id,
            next_producer_id=self.next_producer_id,
            producer_epoch=self.epoch,
            transaction_timeout_ms=self.timeout_ms,
            transaction_status=_NUMBERS[self.state],
            transaction_partitions=None if self.state is TransactionState.EMPTY else topics,
            transaction_last_update_timestamp_ms=self.updated_at,
            transaction_start_timestamp_ms=self.started_at,
            client_transaction_version=self.client_version,
        )
        return Record(self.id, value)

    @classmethod
    def of(cls, transactional_id: str, value: TransactionLogValue) -> "Transaction":
        """What a record says. Raises WireError for a state that nobody writes."""
        number = value.transaction_status
        if not 0 <= number < len(_STATES):
            raise WireError(
                f"the transaction of {transactional_id!r} is in state {number}, "
                f"expected 0 to {len(_STATES) - 1}"
            )
        return cls(
            transactional_id,
            value.producer_id,
            value.producer_epoch,
            _STATES[number],
            value.transaction_timeout_ms,
            {
                TopicPartition(topic.topic, partition): None
                for topic in value.transaction_partitions or ()
                for partition in topic.partition_ids
            },
            Millis(value.transaction_last_update_timestamp_ms),
            Millis(value.transaction_start_timestamp_ms),
            value.previous_producer_id,
            value.next_producer_id,
            value.client_transaction_version,
        )
