# SPDX-License-Identifier: Apache-2.0
"""InitProducerId with a transactional id: whoever asks last has it, and all before are fenced.

A producer that names its id and epoch asks for the next epoch (KIP-360). It gets that once, also
when it asks twice.
"""

from kohort.errors import ApiError, ErrorCode
from kohort.machines.effects import Call, Effects, Reply, answered
from kohort.terms import Millis
from kohort.transactions.ending import give_up
from kohort.transactions.state import State, concurrent, fenced
from kohort.transactions.transaction import (
    NO_EPOCH,
    NO_PRODUCER,
    NO_TIME,
    Transaction,
    TransactionState,
)
from kohort.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse


def init_transactional_id(state: State, call: Call[InitProducerIdRequest], now: Millis) -> Effects:
    """The producer's id and epoch. An open transaction is aborted first, and the producer asks
    again.
    """
    request = call.request
    transactional_id = request.transactional_id
    if not transactional_id:
        raise ApiError(ErrorCode.INVALID_REQUEST, "the transactional id is empty")
    timeout_ms, most = request.transaction_timeout_ms, state.settings.max_timeout_ms
    if not 0 < timeout_ms <= most:
        raise ApiError(
            ErrorCode.INVALID_TRANSACTION_TIMEOUT,
            f"the timeout of a transaction is {timeout_ms} ms, "
            f"expected 1 to {most} (transaction.max.timeout.ms)",
        )
    known = state.transactions.get(transactional_id)
    if known is None:
        fresh = _new_transaction(state, transactional_id, timeout_ms, now)
        return _answer_with_epoch(state, call, fresh, NO_EPOCH, now)
    expected = None if request.producer_id == NO_PRODUCER else request.producer_epoch
    last = state.last_epochs.get(transactional_id, NO_EPOCH)
    if expected is not None and not _may_ask(known, request.producer_id, expected, last):
        raise fenced(known, expected)
    if known.state.decided:
        raise concurrent(known)
    if known.state is TransactionState.ONGOING:
        effects = give_up(state, known, now, "another producer takes its place")
        refusal = request.refused(ApiError(ErrorCode.CONCURRENT_TRANSACTIONS))
        effects.replies.append(Reply(call.token, refusal))
        return effects
    empty = known._replace(
        state=TransactionState.EMPTY,
        timeout_ms=timeout_ms,
        partitions={},
        updated_at=now,
        started_at=NO_TIME,
        previous_producer_id=known.producer_id,
        next_producer_id=NO_PRODUCER,
    )
    if expected is not None and (known.epoch, known.producer_id) != (expected, request.producer_id):
        # The answer that it did not get. It may miss it again: it is known by the id that it names.
        repeated = empty._replace(previous_producer_id=known.previous_producer_id)
        return _answer_with_epoch(state, call, repeated, last, now)
    if known.exhausted:
        empty = empty._replace(producer_id=state.new_producer_id(), epoch=0)
    else:
        empty = empty._replace(epoch=known.epoch + 1)
    return _answer_with_epoch(
        state, call, empty, NO_EPOCH if expected is None else known.epoch, now
    )


def _may_ask(known: Transaction, producer_id: int, epoch: int, last: int) -> bool:
    """Whether this is the producer's present epoch, or the one from which it was raised."""
    if producer_id == known.producer_id and epoch == known.epoch:
        return True
    if known.state is TransactionState.ONGOING:
        return False  # it has its present epoch, or it could not have begun a transaction
    return epoch == last != NO_EPOCH and producer_id in (
        known.producer_id,
        known.previous_producer_id,
    )


def _new_transaction(
    state: State, transactional_id: str, timeout_ms: int, now: Millis
) -> Transaction:
    producer_id = state.new_producer_id()
    return Transaction(
        transactional_id,
        producer_id,
        0,
        TransactionState.EMPTY,
        timeout_ms,
        {},
        now,
        previous_producer_id=producer_id,
    )


def _answer_with_epoch(
    state: State, call: Call[InitProducerIdRequest], after: Transaction, last: int, now: Millis
) -> Effects:
    state.last_epochs[after.id] = last
    state.schedule_expiry(after.id, now)
    response = InitProducerIdResponse(producer_id=after.producer_id, producer_epoch=after.epoch)
    return answered(call, response, [after.record()])
