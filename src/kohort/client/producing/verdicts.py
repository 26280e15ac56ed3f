"""What an error in the answer to a Produce request means for the batch that it is about."""

from enum import Enum

from kohort.errors import ErrorCode

_MAYBE = frozenset(
    {
        ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.KAFKA_STORAGE_ERROR,
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


class Verdict(Enum):
    """What to do with a batch that was refused."""

    WRITTEN = "the log has it already"
    AGAIN = "send it again after a pause"
    SPLIT = "send it in two halves"
    ANEW = "send it at a newer epoch"
    FAIL = "give it up"
    OVER = "give everything up"


def verdict(
    code: ErrorCode, *, records: int, is_next: bool, idempotent: bool, transactional: bool
) -> Verdict:
    """`is_next` says that everything before it has its answer, `records` how many it has."""
    if code is ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
        return Verdict.WRITTEN
    if code is ErrorCode.MESSAGE_TOO_LARGE and records > 1:
        return Verdict.SPLIT
    if code in _FATAL:
        return Verdict.OVER
    if code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and idempotent and not is_next:
        return Verdict.AGAIN  # one before it is missing, and comes first
    if code in _BROKEN_ORDER and idempotent and not transactional:
        return Verdict.ANEW
    return Verdict.AGAIN if code.retriable else Verdict.FAIL


def may_be_written(code: ErrorCode) -> bool:
    """Whether the log may have a batch that was answered like this."""
    return code in _MAYBE


def is_elsewhere(code: ErrorCode) -> bool:
    """Whether another broker may lead the partition, so that it has to be looked up."""
    return code in _ELSEWHERE
