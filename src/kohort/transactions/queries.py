# SPDX-License-Identifier: Apache-2.0
"""DescribeTransactions and ListTransactions (KIP-664, KIP-1152): they change nothing."""

from collections.abc import Callable

from kohort import expressions
from kohort.errors import ApiError, ErrorCode
from kohort.machines.effects import Call, Effects, answered
from kohort.terms import Millis, by_topic
from kohort.transactions.state import State
from kohort.transactions.transaction import PASSING_STATES, Transaction, TransactionState
from kohort.wire.messages import describe_transactions as describe_wire
from kohort.wire.messages import list_transactions as list_wire
from kohort.wire.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from kohort.wire.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse

_NAMES = (*(state.value for state in TransactionState), *PASSING_STATES)


def describe(state: State, call: Call[DescribeTransactionsRequest], _now: Millis) -> Effects:
    """Each id by itself; one that does not exist gets an error."""
    states = [
        _described(state, transactional_id) for transactional_id in call.request.transactional_ids
    ]
    return answered(call, DescribeTransactionsResponse(transaction_states=states))


def _described(state: State, transactional_id: str) -> describe_wire.TransactionState:
    known = state.transactions.get(transactional_id)
    if known is None:
        return describe_wire.TransactionState(
            error_code=ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, transactional_id=transactional_id
        )
    return describe_wire.TransactionState(
        transactional_id=transactional_id,
        transaction_state=known.state.value,
        transaction_timeout_ms=known.timeout_ms,
        transaction_start_time_ms=known.started_at,
        producer_id=known.producer_id,
        producer_epoch=known.epoch,
        topics=[
            describe_wire.TopicData(topic=topic, partitions=partitions)
            for topic, partitions in by_topic(known.partitions).items()
        ],
    )


def list_transactions(state: State, call: Call[ListTransactionsRequest], now: Millis) -> Effects:
    """The ids that pass every filter. Names of states that nobody knows are told."""
    request = call.request
    named = matching(request.transactional_id_pattern)
    states = [
        list_wire.TransactionState(
            transactional_id=known.id,
            producer_id=known.producer_id,
            transaction_state=known.state.value,
        )
        for known in state.transactions.values()
        if named(known.id) and _passes(known, request, now)
    ]
    unknown = [name for name in request.state_filters if name not in _NAMES]
    response = ListTransactionsResponse(unknown_state_filters=unknown, transaction_states=states)
    return answered(call, response)


def matching(pattern: str | None) -> Callable[[str], bool]:
    """What says of a transactional id whether it passes a pattern; without one each does. Raises
    ApiError INVALID_REGULAR_EXPRESSION (KIP-1152).
    """
    if not pattern:
        return lambda _: True
    missing = expressions.unavailable_or_none()
    if missing is None:
        try:
            return expressions.matcher(pattern)
        except expressions.InvalidExpression as error:
            missing = f"not a valid regular expression: {error}"
    raise ApiError(
        ErrorCode.INVALID_REGULAR_EXPRESSION, f"TransactionalIdPattern {pattern!r}: {missing}"
    )


def _passes(known: Transaction, request: ListTransactionsRequest, now: Millis) -> bool:
    if request.producer_id_filters and known.producer_id not in request.producer_id_filters:
        return False
    if request.state_filters and known.state.value not in request.state_filters:
        return False
    least_ms = request.duration_filter
    return least_ms < 0 or now - known.started_at > least_ms
