# SPDX-License-Identifier: Apache-2.0
"""A transactional id to its record and back."""

import pytest

from kohort.errors import WireError
from kohort.terms import Millis, TopicPartition
from kohort.transactions.transaction import Transaction, TransactionState


@pytest.mark.parametrize("state", TransactionState)
@pytest.mark.parametrize("partitions", [0, 3])
def test_a_record_says_everything(state, partitions):
    one = Transaction(
        "t",
        7,
        3,
        state,
        60_000,
        {TopicPartition("orders", index): None for index in range(partitions)},
        Millis(20),
        Millis(10),
        6,
        8,
        2,
    )
    if state is TransactionState.EMPTY:
        one = one._replace(partitions={})

    record = one.record()

    assert Transaction.of("t", record.value) == one
    # Upstream knows that an id without a transaction has no list of partitions, even an empty one.
    assert (record.value.transaction_partitions is None) == (state is TransactionState.EMPTY)


@pytest.mark.parametrize("number", [-1, 6, 7])
def test_a_state_that_is_never_written_is_an_error(number):
    value = Transaction("t", 7, 3, TransactionState.EMPTY, 1, {}, Millis(0)).record().value
    value.transaction_status = number

    with pytest.raises(WireError, match="expected 0 to 5"):
        Transaction.of("t", value)
