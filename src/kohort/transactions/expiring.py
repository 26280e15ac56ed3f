# SPDX-License-Identifier: Apache-2.0
"""A transactional id that nobody uses is forgotten (transactional.id.expiration.ms)."""

from kohort.machines.effects import Effects
from kohort.records.transactions import Record
from kohort.terms import Millis
from kohort.transactions.state import State
from kohort.transactions.transaction import TransactionState


def expired(state: State, now: Millis, transactional_id: str) -> Effects:
    """The id has not been used for long. One that has a transaction is in use."""
    known = state.transactions.get(transactional_id)
    if known is None or known.state is TransactionState.ONGOING or known.state.decided:
        return Effects()
    state.lines.append(
        f"transactional id {transactional_id!r} expires, unused for {now - known.updated_at} ms"
    )
    return Effects([Record(transactional_id, None)])
