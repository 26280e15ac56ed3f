# SPDX-License-Identifier: Apache-2.0
"""Errors say what is known, also in another process."""

import pickle

from kohort.client.accumulator.errors import DeliveryError, TransactionError
from kohort.errors import ApiError, ErrorCode


def test_an_error_of_a_delivery_goes_to_another_process() -> None:
    for maybe in (False, True):
        error = DeliveryError(ErrorCode.INVALID_RECORD, "t:0: no", maybe_written=maybe)
        again = pickle.loads(pickle.dumps(error))
        assert isinstance(again, ApiError)
        assert (again.code, again.message, again.maybe_written) == (error.code, "t:0: no", maybe)


def test_an_error_of_a_transaction_goes_to_another_process() -> None:
    error = TransactionError(
        ErrorCode.REQUEST_TIMED_OUT, "late", abortable=True, maybe_committed=True
    )
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == "REQUEST_TIMED_OUT: late"
    assert (again.abortable, again.maybe_committed) == (True, True)
    assert not TransactionError(error.code, "", abortable=False).maybe_committed
