# SPDX-License-Identifier: Apache-2.0
"""Partitions come into a transaction before anything is written to them (KIP-98, KIP-890).

A partition that is not in it would never get the marker that ends the transaction, and its readers
would wait for ever.
"""

from kohort.errors import ErrorCode
from kohort.machines.effects import Call, Effects, answered
from kohort.terms import Millis
from kohort.transactions.messages import Enrol, EnrolResult
from kohort.transactions.state import State, concurrent, fenced
from kohort.transactions.transaction import NO_PRODUCER, TransactionState


def enrol(state: State, call: Call[Enrol], now: Millis) -> Effects:
    """Add partitions, beginning a transaction with the first; or say which are not in it."""
    request = call.request
    known = state.transaction_of(request.transactional_id, request.producer.id)
    if known.epoch != request.producer.epoch:
        raise fenced(known, request.producer.epoch)
    if known.state.decided:
        raise concurrent(known)
    ongoing = known.state is TransactionState.ONGOING
    there = known.partitions if ongoing else {}
    missing = [
        partition for partition in dict.fromkeys(request.partitions) if partition not in there
    ]
    if request.verify_only:
        return answered(call, EnrolResult(ErrorCode.NONE, missing=frozenset(missing)))
    if ongoing and not missing:
        return answered(call, EnrolResult(ErrorCode.NONE))
    started_at = known.started_at if ongoing else now
    after = known._replace(
        state=TransactionState.ONGOING,
        partitions={**there, **dict.fromkeys(missing)},
        updated_at=now,
        started_at=started_at,
        previous_producer_id=known.producer_id,
        next_producer_id=NO_PRODUCER,
        client_version=request.client_version,
    )
    state.schedule_timeout(known.id, Millis(started_at + known.timeout_ms))
    return answered(call, EnrolResult(ErrorCode.NONE), [after.record()])
