# SPDX-License-Identifier: Apache-2.0
"""The states of transactions, by upstream's names."""

from typing import get_args

from kohort import ApiError, ErrorCode, TransactionListing, TransactionListings, TransactionState
from kohort.client.admin.transaction_views import TransactionStateName
from kohort.transactions import transaction


def test_the_states_are_those_that_a_broker_names():
    names = {state.value for state in TransactionState}
    assert names == {state.value for state in transaction.TransactionState} | set(
        transaction.PASSING_STATES
    )
    enum, literal = get_args(TransactionStateName)
    assert enum is TransactionState
    assert set(get_args(literal)) == names


def test_listings_are_their_transactions():
    one = TransactionListing("a", 1, TransactionState.EMPTY)
    listings = TransactionListings((one,), {})
    assert list(listings) == [one]
    assert len(listings) == 1
    assert listings.complete
    error = ApiError(ErrorCode.NETWORK_EXCEPTION)
    assert TransactionListings((), {1: error}).missing == {1: error}
