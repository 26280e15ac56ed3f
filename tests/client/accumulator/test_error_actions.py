# SPDX-License-Identifier: Apache-2.0
"""What each error means for a batch: a table of all."""

import pytest

from kohort.client.accumulator.error_actions import (
    ErrorAction,
    error_action,
    is_elsewhere,
    may_be_written,
)
from kohort.errors import ErrorCode

PLAIN = {"records": 2, "is_next": True, "idempotent": False, "transactional": False}
IDEMPOTENT = {**PLAIN, "idempotent": True}
LATER = {**IDEMPOTENT, "is_next": False}
ALONE = {**IDEMPOTENT, "records": 1}
IN_TRANSACTION = {**IDEMPOTENT, "transactional": True}
RETRY, FAIL, RETRY_WITH_NEW_EPOCH, FATAL = (
    ErrorAction.RETRY,
    ErrorAction.FAIL,
    ErrorAction.RETRY_WITH_NEW_EPOCH,
    ErrorAction.FATAL,
)


@pytest.mark.parametrize(
    ("code", "case", "expected"),
    [
        ("NOT_LEADER_OR_FOLLOWER", PLAIN, RETRY),
        ("NETWORK_EXCEPTION", PLAIN, RETRY),
        ("REQUEST_TIMED_OUT", IDEMPOTENT, RETRY),
        ("NOT_ENOUGH_REPLICAS", IDEMPOTENT, RETRY),
        ("CORRUPT_MESSAGE", IDEMPOTENT, RETRY),
        ("UNKNOWN_TOPIC_OR_PARTITION", IDEMPOTENT, RETRY),
        ("MESSAGE_TOO_LARGE", IDEMPOTENT, ErrorAction.SPLIT),
        ("MESSAGE_TOO_LARGE", ALONE, FAIL),
        ("MESSAGE_TOO_LARGE", {**IDEMPOTENT, "maybe_written": True}, FAIL),
        ("MESSAGE_TOO_LARGE", {**PLAIN, "maybe_written": True}, ErrorAction.SPLIT),
        ("INVALID_RECORD", IDEMPOTENT, FAIL),
        ("TOPIC_AUTHORIZATION_FAILED", IDEMPOTENT, FAIL),
        ("UNSUPPORTED_VERSION", IDEMPOTENT, FAIL),
        ("UNKNOWN_SERVER_ERROR", IDEMPOTENT, FAIL),
        ("DUPLICATE_SEQUENCE_NUMBER", IDEMPOTENT, ErrorAction.WRITTEN),
        ("DUPLICATE_SEQUENCE_NUMBER", PLAIN, FAIL),
        ("OUT_OF_ORDER_SEQUENCE_NUMBER", PLAIN, FAIL),
        ("OUT_OF_ORDER_SEQUENCE_NUMBER", IDEMPOTENT, RETRY_WITH_NEW_EPOCH),
        ("OUT_OF_ORDER_SEQUENCE_NUMBER", LATER, RETRY),
        ("OUT_OF_ORDER_SEQUENCE_NUMBER", IN_TRANSACTION, FAIL),
        ("OUT_OF_ORDER_SEQUENCE_NUMBER", {**LATER, "transactional": True}, RETRY),
        ("UNKNOWN_PRODUCER_ID", IDEMPOTENT, RETRY_WITH_NEW_EPOCH),
        ("UNKNOWN_PRODUCER_ID", IN_TRANSACTION, FAIL),
        ("INVALID_PRODUCER_EPOCH", IDEMPOTENT, RETRY_WITH_NEW_EPOCH),
        ("INVALID_PRODUCER_EPOCH", IN_TRANSACTION, FAIL),
        ("TRANSACTION_ABORTABLE", IN_TRANSACTION, FAIL),
        ("PRODUCER_FENCED", IN_TRANSACTION, FATAL),
        ("CLUSTER_AUTHORIZATION_FAILED", IDEMPOTENT, FATAL),
        ("TRANSACTIONAL_ID_AUTHORIZATION_FAILED", IN_TRANSACTION, FATAL),
    ],
)
def test_what_is_done_about_an_error(
    code: str, case: dict[str, int], expected: ErrorAction
) -> None:
    assert error_action(ErrorCode[code], **case) is expected  # type: ignore[arg-type]


@pytest.mark.parametrize("code", ErrorCode)
def test_every_error_has_a_verdict(code: ErrorCode) -> None:
    for case in (PLAIN, IDEMPOTENT, LATER, ALONE, IN_TRANSACTION):
        assert error_action(code, **case) in ErrorAction  # type: ignore[arg-type]


# By the broker, before it appends anything: the log certainly does not have what was sent.
REFUSALS = """
    CORRUPT_MESSAGE UNKNOWN_TOPIC_OR_PARTITION LEADER_NOT_AVAILABLE NOT_LEADER_OR_FOLLOWER
    REPLICA_NOT_AVAILABLE MESSAGE_TOO_LARGE INVALID_TOPIC_EXCEPTION RECORD_LIST_TOO_LARGE
    NOT_ENOUGH_REPLICAS INVALID_REQUIRED_ACKS INVALID_TIMESTAMP UNSUPPORTED_VERSION INVALID_REQUEST
    UNSUPPORTED_FOR_MESSAGE_FORMAT UNSUPPORTED_COMPRESSION_TYPE POLICY_VIOLATION INVALID_RECORD
    TOPIC_AUTHORIZATION_FAILED CLUSTER_AUTHORIZATION_FAILED TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    COORDINATOR_LOAD_IN_PROGRESS COORDINATOR_NOT_AVAILABLE NOT_COORDINATOR
    OUT_OF_ORDER_SEQUENCE_NUMBER UNKNOWN_PRODUCER_ID INVALID_PRODUCER_EPOCH PRODUCER_FENCED
    INVALID_PRODUCER_ID_MAPPING INVALID_TXN_STATE CONCURRENT_TRANSACTIONS
    TRANSACTION_COORDINATOR_FENCED TRANSACTION_ABORTABLE FENCED_LEADER_EPOCH UNKNOWN_LEADER_EPOCH
    THROTTLING_QUOTA_EXCEEDED UNKNOWN_TOPIC_ID INCONSISTENT_TOPIC_ID
""".split()  # noqa: SIM905  (a list of them is a page)


@pytest.mark.parametrize("code", ErrorCode)
def test_after_which_errors_the_log_may_have_it(code: ErrorCode) -> None:
    """Every error but a refusal, and every error beside an offset: a leader that stops leading
    while it waits for its replicas answers NOT_LEADER_OR_FOLLOWER, and has appended the batch.
    """
    assert may_be_written(code, -1) is (code.name not in REFUSALS)
    assert may_be_written(code, 0)


def test_after_which_errors_the_leader_is_looked_up() -> None:
    assert is_elsewhere(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert is_elsewhere(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert not is_elsewhere(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert not is_elsewhere(ErrorCode.MESSAGE_TOO_LARGE)
