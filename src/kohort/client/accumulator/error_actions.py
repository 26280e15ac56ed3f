# SPDX-License-Identifier: Apache-2.0
"""What an error in the answer to a Produce request means for the batch that it is about.

An error of a leader is fatal only when it is in `_FATAL`. One of a coordinator is fatal when it is
not listed in `transactions.py` and not retriable: who changes one of the two looks at the other.
The third place is `producer/identity.py`: a producer without a transactional id takes each error of
InitProducerId for fatal that is not retriable.
"""

from enum import Enum

from kohort.errors import ErrorCode

# A broker finds these before it appends anything. Whatever is not here, and what nobody has heard
# of, may come after that.
_REFUSALS = frozenset(
    {
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,  # these three while a transaction is verified
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.INVALID_REQUIRED_ACKS,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.INVALID_TIMESTAMP,
        ErrorCode.UNSUPPORTED_VERSION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
        ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
        ErrorCode.POLICY_VIOLATION,
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.UNKNOWN_PRODUCER_ID,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.TRANSACTION_COORDINATOR_FENCED,
        ErrorCode.TRANSACTION_ABORTABLE,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.INVALID_RECORD,
        ErrorCode.THROTTLING_QUOTA_EXCEEDED,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
    }
)
_ELSEWHERE = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.NETWORK_EXCEPTION,
    }
)
_FATAL = frozenset(
    {
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.PRODUCER_FENCED,
    }
)
_BROKEN_ORDER = frozenset(
    {
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.UNKNOWN_PRODUCER_ID,
        ErrorCode.INVALID_PRODUCER_EPOCH,
    }
)


class ErrorAction(Enum):
    """What to do with a batch that was refused."""

    WRITTEN = "the log has it already"
    RETRY = "send it again after a pause"
    SPLIT = "send it in two halves"
    RETRY_WITH_NEW_EPOCH = "send it at a newer epoch"
    FAIL = "give it up"
    FATAL = "give everything up"


def error_action(
    code: ErrorCode,
    *,
    records: int,
    is_next: bool,
    idempotent: bool,
    transactional: bool,
    maybe_written: bool = False,
) -> ErrorAction:
    """`is_next` says that everything before it has its answer, `records` how many it has.
    `maybe_written` is what an earlier attempt has left behind.
    """
    if code is ErrorCode.DUPLICATE_SEQUENCE_NUMBER and idempotent:
        return ErrorAction.WRITTEN
    if code is ErrorCode.MESSAGE_TOO_LARGE and records > 1:
        # A broker knows a batch again by all of its sequences, and not its halves.
        return ErrorAction.FAIL if idempotent and maybe_written else ErrorAction.SPLIT
    if code in _FATAL:
        return ErrorAction.FATAL
    if code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and idempotent and not is_next:
        return ErrorAction.RETRY  # one before it is missing, and comes first
    if code in _BROKEN_ORDER and idempotent and not transactional:
        return ErrorAction.RETRY_WITH_NEW_EPOCH
    return ErrorAction.RETRY if code.retriable else ErrorAction.FAIL


def may_be_written(code: ErrorCode, offset: int) -> bool:
    """Whether the log may have a batch that was answered like this. `offset` is the base offset in
    the answer: a leader that stops leading while it waits for its replicas has appended the batch
    already, and says where.
    """
    return offset >= 0 or code not in _REFUSALS


def is_elsewhere(code: ErrorCode) -> bool:
    """Whether another broker may lead the partition, so that it has to be looked up."""
    return code in _ELSEWHERE
