# SPDX-License-Identifier: Apache-2.0
"""Several failures as one error."""

import pytest

from kohort.client.network.connection_errors import (
    ConnectionFailedError,
    RequestTimeoutError,
    failure_of,
)

BROKEN = ConnectionFailedError("a:1 refused", sent=False)
LATE = RequestTimeoutError("b:1 is silent", sent=True)


@pytest.mark.parametrize(
    ("failures", "kind", "message", "sent"),
    [
        ([BROKEN], ConnectionFailedError, "a:1 refused", False),
        ([BROKEN, BROKEN], ConnectionFailedError, "a:1 refused", False),
        ([BROKEN, LATE], RequestTimeoutError, "a:1 refused; b:1 is silent", True),
        ([BROKEN, ValueError("no failure")], ConnectionFailedError, "a:1 refused", False),
    ],
)
def test_several_failures_are_one_error_that_names_each_once(failures, kind, message, sent):
    error = failure_of(ExceptionGroup("all", failures))
    assert (type(error), error.message, error.sent) == (kind, message, sent)
