# SPDX-License-Identifier: Apache-2.0
"""The end of a transaction: it is decided, then told to every partition, then over.

The decision is one record. Markers leave when that record is durable, so a crash before it leaves
the transaction open, and a crash after it completes it: `begin_again` does that after a start. The
producer is answered by the decision alone.

A producer of the second version (KIP-890) gets another epoch with each end, which keeps late writes
of one transaction out of the next.
"""

from kohort.errors import ApiError, ErrorCode
from kohort.machines.effects import Call, Effects, Producer, Reply, answered
from kohort.terms import Millis
from kohort.transactions.messages import Markers, MarkersWritten
from kohort.transactions.state import MARKERS, PendingMarkers, State, concurrent, fenced
from kohort.transactions.transaction import (
    EPOCHS_IN_RESPONSE,
    HIGHEST_EPOCH,
    NO_PRODUCER,
    Transaction,
    TransactionState,
)
from kohort.wire.messages.end_txn import EndTxnRequest, EndTxnResponse

AGAIN_MS = 500  # from a marker that could not be written to the next attempt
_SECOND_VERSION = 5  # of EndTxn


def end(state: State, call: Call[EndTxnRequest], now: Millis) -> Effects:
    """Commit or abort. A request that is sent again gets the same answer."""
    if call.version >= _SECOND_VERSION:
        return _end_and_raise(state, call, now)
    request = call.request
    known = state.transaction_of(request.transactional_id, request.producer_id)
    if known.epoch != request.producer_epoch:
        raise fenced(known, request.producer_epoch)
    if known.state is TransactionState.ONGOING:
        after = _prepared(known, now, commit=request.committed)
        return _decide_and_answer(state, call, after, now)
    _check_repeated(known, commit=request.committed)
    return answered(call, EndTxnResponse())


def _end_and_raise(state: State, call: Call[EndTxnRequest], now: Millis) -> Effects:
    """The producer goes on at another epoch, or with another id when it has no further one."""
    request = call.request
    epoch, commit = request.producer_epoch, request.committed
    known = state.transactions.get(request.transactional_id)
    if known is not None and _was_raised(known, request.producer_id, epoch):
        _check_repeated(known, commit=commit)
        return answered(call, _end_response(known))
    known = state.transaction_of(request.transactional_id, request.producer_id)
    if known.epoch != epoch:
        raise fenced(known, epoch)
    if known.state.decided:  # it goes on already, as it was told with the decision
        raise concurrent(known)
    ongoing = known.state is TransactionState.ONGOING
    if commit and not ongoing:
        raise _nothing_to_end(known)
    after = _prepared(known, now, commit=commit)._replace(
        epoch=min(epoch + 1, HIGHEST_EPOCH),
        next_producer_id=state.new_producer_id() if known.exhausted else NO_PRODUCER,
        client_version=EPOCHS_IN_RESPONSE,
        # An abort may come before anything was written: a transaction of no time at all.
        started_at=known.started_at if ongoing else now,
        partitions=known.partitions if ongoing else {},
    )
    state.last_epochs[known.id] = epoch
    return _decide_and_answer(state, call, after, now)


def _was_raised(known: Transaction, producer_id: int, epoch: int) -> bool:
    """Whether this request has been carried out: its producer is at the next epoch already."""
    if known.state in (TransactionState.EMPTY, TransactionState.ONGOING):
        return False
    if known.client_version < EPOCHS_IN_RESPONSE:
        return False
    if producer_id == known.producer_id:
        return epoch == known.epoch - 1
    fresh = producer_id == known.previous_producer_id and known.epoch == 0
    return fresh and epoch == HIGHEST_EPOCH - 1 and not known.state.decided


def _check_repeated(known: Transaction, *, commit: bool) -> None:
    """Raises ApiError unless the transaction has ended in this way."""
    if known.state is TransactionState.EMPTY or known.state.commits != commit:
        raise _nothing_to_end(known)
    if known.state.decided:
        raise concurrent(known)


def _nothing_to_end(known: Transaction) -> ApiError:
    return ApiError(
        ErrorCode.INVALID_TXN_STATE,
        f"transactional id {known.id!r} has no transaction that could end so: {known.state.value}",
    )


def _end_response(after: Transaction) -> EndTxnResponse:
    """What the producer goes on with."""
    if after.next_producer_id != NO_PRODUCER:
        return EndTxnResponse(producer_id=after.next_producer_id, producer_epoch=0)
    return EndTxnResponse(producer_id=after.producer_id, producer_epoch=after.epoch)


def _decide_and_answer(
    state: State, call: Call[EndTxnRequest], after: Transaction, now: Millis
) -> Effects:
    raised = call.version >= _SECOND_VERSION
    effects = _decide(state, after, now)
    effects.replies.insert(
        0, Reply(call.token, _end_response(after) if raised else EndTxnResponse())
    )
    return effects


def timed_out(state: State, now: Millis, transactional_id: str) -> Effects:
    """A transaction has been open for too long: whoever has begun it may be gone."""
    known = state.transactions.get(transactional_id)
    if known is None or known.state is not TransactionState.ONGOING:
        return Effects()
    return give_up(state, known, now, f"open for {known.timeout_ms} ms, it is aborted")


def give_up(state: State, known: Transaction, now: Millis, why: str) -> Effects:
    """Abort an open transaction without its producer, whom the next epoch fences."""
    state.lines.append(f"transaction of {known.id!r}, producer {known.producer_id}: {why}")
    state.last_epochs[known.id] = known.epoch
    after = _prepared(known, now, commit=False)
    return _decide(state, after._replace(epoch=min(known.epoch + 1, HIGHEST_EPOCH)), now)


def _prepared(known: Transaction, now: Millis, *, commit: bool) -> Transaction:
    return known._replace(
        state=TransactionState.PREPARE_COMMIT if commit else TransactionState.PREPARE_ABORT,
        updated_at=now,
        previous_producer_id=known.producer_id,
    )


def _decide(state: State, after: Transaction, now: Millis) -> Effects:
    """Write the decision; the markers follow it. Without partitions it is over at once."""
    if not after.partitions:
        state.schedule_expiry(after.id, now)
        return Effects([after.record(), _completed(after, now).record()])
    state.cancel_deadlines(after.id)
    return Effects([after.record()], [_ask_for_markers(state, after)])


def _completed(known: Transaction, now: Millis) -> Transaction:
    after = known._replace(
        state=(
            TransactionState.COMPLETE_COMMIT
            if known.state.commits
            else TransactionState.COMPLETE_ABORT
        ),
        partitions={},
        updated_at=now,
        previous_producer_id=known.producer_id,
    )
    if known.next_producer_id == NO_PRODUCER:
        return after
    return after._replace(producer_id=known.next_producer_id, epoch=0, next_producer_id=NO_PRODUCER)


def _ask_for_markers(state: State, known: Transaction) -> Reply:
    """Ask for the markers of a decided transaction, under a ticket of their own."""
    state.pending_markers[known.id] = ending = PendingMarkers(known.partitions)
    return _message(state, known, ending)


def _message(state: State, known: Transaction, ending: PendingMarkers) -> Reply:
    markers = Markers(
        known.id,
        ending.ticket,
        Producer(known.producer_id, known.epoch),
        known.state.commits,
        tuple(ending.left),
    )
    return Reply(state.marker_sender, markers)


def written(state: State, call: Call[MarkersWritten], now: Millis) -> Effects:
    """Some markers are durable. With the last of them the transaction is over."""
    told = call.request
    ending = state.pending_markers.get(told.transactional_id)
    if ending is None or ending.ticket is not told.ticket:
        return Effects([], [Reply(call.token, None)])  # of an earlier attempt
    for partition in told.written:
        ending.left.pop(partition, None)
    known = state.transactions[told.transactional_id]
    if told.failed:
        state.deadlines.set((MARKERS, known.id), Millis(now + AGAIN_MS))
    if ending.left:
        return Effects([], [Reply(call.token, None)])
    del state.pending_markers[known.id]
    state.deadlines.cancel((MARKERS, known.id))
    state.schedule_expiry(known.id, now)
    return answered(call, None, [_completed(known, now).record()])


def ask_again(state: State, _now: Millis, transactional_id: str) -> Effects:
    """Ask again for the markers that could not be written."""
    ending = state.pending_markers.get(transactional_id)
    known = state.transactions.get(transactional_id)
    if ending is None or known is None:
        return Effects()
    return Effects([], [_message(state, known, ending)])


def begin_again(state: State, known: Transaction, now: Millis) -> Effects:
    """After a start: go on with what was decided before."""
    if not known.partitions:
        state.schedule_expiry(known.id, now)
        return Effects([_completed(known, now).record()])
    return Effects([], [_ask_for_markers(state, known)])
