# SPDX-License-Identifier: Apache-2.0
"""What a machine of transactions would know otherwise after a restart, or has forgotten to do."""

from collections.abc import Iterator

from kohort.transactions.machine import TransactionCoordinator
from kohort.transactions.state import TIMEOUT
from kohort.transactions.transaction import TransactionState


def differences(live: TransactionCoordinator, replayed: TransactionCoordinator) -> Iterator[str]:
    """Each transactional id by itself, with who looks after its transaction."""
    for name in sorted(live.transactions.keys() | replayed.transactions.keys()):
        mine, other = live.transactions.get(name), replayed.transactions.get(name)
        if mine != other:
            yield f"{name} is {mine}, replayed {other}"
        if mine is None:
            continue
        if mine.state is TransactionState.ONGOING and (TIMEOUT, name) not in live.deadlines:
            yield f"{name} has an open transaction, and nobody looks when its time is over"
        if mine.state.decided != (name in live.pending_markers):
            under_way = name in live.pending_markers
            yield f"{name} is {mine.state.value}, markers are under way: {under_way}"
