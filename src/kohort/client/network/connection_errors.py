# SPDX-License-Identifier: Apache-2.0
"""What a connection ends with: it is not there, it broke, or nobody answers in time."""

from kohort.errors import ApiError, AuthenticationError, ErrorCode


class ConnectionFailedError(ApiError):
    """No connection, or one that broke (NETWORK_EXCEPTION).

    `sent` says whether the request may have reached the broker: if not, it is safe to repeat.
    """

    def __init__(self, message: str, *, sent: bool) -> None:
        super().__init__(ErrorCode.NETWORK_EXCEPTION, message)
        self.sent = sent


class RequestTimeoutError(ApiError):
    """No answer in time (REQUEST_TIMED_OUT).

    It is unknown whether the broker has done it, unless `sent` says that it never had the request.
    """

    def __init__(self, message: str, *, sent: bool = True) -> None:
        super().__init__(ErrorCode.REQUEST_TIMED_OUT, message)
        self.sent = sent


def failure_of(
    group: ExceptionGroup[Exception],
) -> ConnectionFailedError | RequestTimeoutError | AuthenticationError:
    """The failures of several attempts as one error: the first that stays whatever is tried, or a
    timeout where one of them was silent.
    """
    for error in group.exceptions:
        if isinstance(error, AuthenticationError):
            return error
    failures = {
        error.message: error
        for error in group.exceptions
        if isinstance(error, ConnectionFailedError | RequestTimeoutError)
    }
    first = next(iter(failures.values()))
    if len(failures) == 1:
        return first
    is_late = any(isinstance(error, RequestTimeoutError) for error in failures.values())
    kind = RequestTimeoutError if is_late else ConnectionFailedError
    return kind("; ".join(failures), sent=any(error.sent for error in failures.values()))
