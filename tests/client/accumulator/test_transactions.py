# SPDX-License-Identifier: Apache-2.0
"""What a transactional producer may do next, and what each error means for it."""

import pytest
from tests.client.accumulator.fake_leader import T0, T1

from kohort.client.accumulator.errors import TransactionError
from kohort.client.accumulator.transactions import (
    CoordinatorErrorAction,
    Phase,
    Transactions,
    coordinator_error_action,
)
from kohort.errors import ApiError, ErrorCode

REFUSED = ApiError(ErrorCode.INVALID_RECORD, "no key")


def ready() -> Transactions:
    transactions = Transactions()
    transactions.initialised()
    return transactions


def opened(*, is_v2: bool = True) -> Transactions:
    transactions = ready()
    transactions.begin(is_v2=is_v2)
    return transactions


@pytest.mark.parametrize(
    ("code", "reply"),
    [
        ("NOT_COORDINATOR", CoordinatorErrorAction.ELSEWHERE),
        ("COORDINATOR_NOT_AVAILABLE", CoordinatorErrorAction.ELSEWHERE),
        ("NETWORK_EXCEPTION", CoordinatorErrorAction.ELSEWHERE),
        ("REQUEST_TIMED_OUT", CoordinatorErrorAction.ELSEWHERE),
        ("COORDINATOR_LOAD_IN_PROGRESS", CoordinatorErrorAction.RETRY),
        ("CONCURRENT_TRANSACTIONS", CoordinatorErrorAction.RETRY),
        ("UNKNOWN_TOPIC_OR_PARTITION", CoordinatorErrorAction.RETRY),
        ("TRANSACTION_ABORTABLE", CoordinatorErrorAction.ABORT),
        ("TOPIC_AUTHORIZATION_FAILED", CoordinatorErrorAction.ABORT),
        ("GROUP_AUTHORIZATION_FAILED", CoordinatorErrorAction.ABORT),
        ("ILLEGAL_GENERATION", CoordinatorErrorAction.ABORT),
        ("UNKNOWN_MEMBER_ID", CoordinatorErrorAction.ABORT),
        ("FENCED_INSTANCE_ID", CoordinatorErrorAction.ABORT),
        ("STALE_MEMBER_EPOCH", CoordinatorErrorAction.ABORT),
        ("UNKNOWN_PRODUCER_ID", CoordinatorErrorAction.ABORT),
        ("INVALID_PRODUCER_ID_MAPPING", CoordinatorErrorAction.ABORT),
        ("PRODUCER_FENCED", CoordinatorErrorAction.FATAL),
        ("INVALID_PRODUCER_EPOCH", CoordinatorErrorAction.FATAL),
        ("INVALID_TXN_STATE", CoordinatorErrorAction.FATAL),
        ("TRANSACTIONAL_ID_AUTHORIZATION_FAILED", CoordinatorErrorAction.FATAL),
        ("INVALID_TRANSACTION_TIMEOUT", CoordinatorErrorAction.FATAL),
        ("UNSUPPORTED_VERSION", CoordinatorErrorAction.FATAL),
        ("UNKNOWN_SERVER_ERROR", CoordinatorErrorAction.FATAL),
    ],
)
def test_what_an_error_asks_for(code: str, reply: CoordinatorErrorAction) -> None:
    assert coordinator_error_action(ErrorCode[code]) is reply


def test_a_transaction_of_the_second_version_begins_with_the_first_write() -> None:
    transactions = opened()
    assert not transactions.has_begun
    assert transactions.may_send(T0)
    assert transactions.has_begun
    assert not transactions.missing


def test_in_the_first_version_the_coordinator_is_told_of_partitions_first() -> None:
    transactions = opened(is_v2=False)
    assert not transactions.may_send(T0)
    assert not transactions.may_send(T1)
    assert transactions.missing == {T0, T1}
    transactions.added([T0])
    assert transactions.may_send(T0)
    assert not transactions.may_send(T1)
    transactions.start_commit()
    transactions.ended()
    transactions.begin(is_v2=False)
    assert not transactions.may_send(T0), "each transaction has its own"


def test_nothing_is_sent_outside_a_transaction() -> None:
    transactions = ready()
    assert not transactions.may_send(T0)
    with pytest.raises(ValueError, match="the producer is in no transaction: use `async with"):
        transactions.check_open()
    with pytest.raises(ValueError, match="nothing can be aborted"):
        transactions.start_abort()
    with pytest.raises(ValueError, match="in no transaction"):
        transactions.start_commit()


def test_one_transaction_at_a_time() -> None:
    transactions = opened()
    with pytest.raises(ValueError, match="cannot begin: the producer is in a transaction"):
        transactions.begin(is_v2=True)
    with pytest.raises(ValueError, match="cannot begin: the producer is not initialised"):
        Transactions().begin(is_v2=True)


def test_one_failure_dooms_all_of_it_until_it_is_aborted() -> None:
    transactions = opened()
    transactions.require_abort(REFUSED)
    transactions.require_abort(ApiError(ErrorCode.REQUEST_TIMED_OUT, "a second one"))
    assert not transactions.may_send(T0)
    for call in (transactions.check_open, transactions.start_commit):
        with pytest.raises(TransactionError, match="has to be aborted: no key") as raised:
            call()
        assert raised.value.abortable
    transactions.start_abort()
    transactions.ended()
    transactions.begin(is_v2=True)
    transactions.check_open()


def test_a_failure_outside_a_transaction_dooms_nothing() -> None:
    transactions = ready()
    transactions.require_abort(REFUSED)
    transactions.begin(is_v2=True)
    assert transactions.phase is Phase.OPEN


def test_a_producer_that_is_fenced_is_of_no_more_use() -> None:
    transactions = opened()
    error = transactions.to_fatal_error(ApiError(ErrorCode.PRODUCER_FENCED, "newer"))
    assert "another producer has taken over its transactional id: newer" in str(error)
    assert not error.abortable
    assert transactions.to_fatal_error(REFUSED) is error, "the first reason is the reason"
    for call in (
        transactions.check_open,
        transactions.start_commit,
        transactions.start_abort,
        lambda: transactions.begin(is_v2=True),
    ):
        with pytest.raises(TransactionError) as raised:
            call()
        assert raised.value is error


def asked() -> Transactions:
    """The coordinator was asked to commit."""
    transactions = opened()
    transactions.may_send(T0)
    transactions.start_commit()
    transactions.check_delivered()
    transactions.commit_asked()
    return transactions


def test_a_commit_delivers_what_was_taken_and_takes_nothing_more() -> None:
    transactions = opened()
    transactions.start_commit()
    assert transactions.may_send(T0)
    for call in (transactions.check_open, transactions.start_commit):
        with pytest.raises(ValueError, match="about to commit: this comes too late"):
            call()
    transactions.resume()
    transactions.check_open()


def test_what_is_not_delivered_dooms_the_commit() -> None:
    transactions = opened()
    transactions.start_commit()
    transactions.require_abort(REFUSED)
    with pytest.raises(TransactionError, match="has to be aborted: no key"):
        transactions.check_delivered()
    transactions.resume()
    assert transactions.phase is Phase.ABORTABLE_ERROR


def test_what_is_aborted_meanwhile_is_not_committed() -> None:
    transactions = opened()
    transactions.start_commit()
    transactions.start_abort()
    with pytest.raises(ValueError, match="nothing can be committed: the producer is aborting, cal"):
        transactions.check_delivered()


def test_a_commit_whose_answer_was_lost_is_made_again_and_not_aborted() -> None:
    transactions = asked()
    transactions.resume()
    with pytest.raises(ValueError, match="nothing can be aborted: the producer is committing, ca"):
        transactions.start_abort()
    with pytest.raises(ValueError, match="committing: this comes too late"):
        transactions.check_open()
    transactions.start_commit()
    transactions.check_delivered()
    transactions.ended()
    assert (transactions.phase, transactions.has_begun) == (Phase.READY, False)


def test_a_delivery_says_that_another_producer_may_have_taken_over() -> None:
    transactions = asked()
    assert transactions.of_delivery(REFUSED) is REFUSED
    fenced = ApiError(ErrorCode.PRODUCER_FENCED, "newer")
    assert transactions.of_delivery(fenced) is fenced  # the transaction has not failed
    assert transactions.of_delivery(fenced) is not transactions.to_fatal_error(fenced)
    assert transactions.of_delivery(fenced) is transactions.error


def test_a_later_error_of_a_commit_says_that_an_earlier_request_may_have_arrived() -> None:
    fenced = ApiError(ErrorCode.PRODUCER_FENCED, "newer")
    assert asked().to_fatal_error(fenced).maybe_committed
    assert asked().to_abortable_error(REFUSED).maybe_committed
    for before, maybe in ((Phase.FLUSHING, False), (Phase.COMMITTING, True)):
        transactions = asked()
        transactions.commit_refused(before)
        assert transactions.to_fatal_error(fenced).maybe_committed is maybe
