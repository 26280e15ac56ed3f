# SPDX-License-Identifier: Apache-2.0
"""Bytes that all connections of a broker share, however many clients there are."""

UNAUTHENTICATED_BYTES = 16 << 20  # some tens of the longest logins; nearly all are not counted


class MemoryPool:
    """What is counted in `used` must be given back. Nothing here stops who passes the limit."""

    __slots__ = ("limit", "used")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0

    @property
    def left(self) -> int:
        """What is left, below 0 when the limit is passed."""
        return self.limit - self.used


class RequestMemoryPool(MemoryPool):
    """The bytes of requests that have come and are not answered yet, whole or not.

    While the room is used up only one connection reads on, `passing`: so one can always finish its
    request. `ceiling` leaves room for that one. Between two turns of the broker no more than `most`
    is taken.
    """

    __slots__ = ("ceiling", "most", "passing")

    def __init__(self, limit: int, largest: int) -> None:
        """`largest` is the size of the largest request."""
        super().__init__(limit)
        self.ceiling = limit + largest
        self.most = self.ceiling + largest
        self.passing: object = None  # the buffer that may pass the limit


class MemoryPools:
    """The budgets of a broker: for requests coming in, for those of clients that have yet to
    authenticate, who must not take the room of others, and for answers going out.
    """

    __slots__ = ("answers", "requests", "unauthenticated")

    def __init__(self, requests: int, answers: int, largest_request: int) -> None:
        self.requests = RequestMemoryPool(requests, largest_request)
        self.unauthenticated = RequestMemoryPool(
            min(requests, UNAUTHENTICATED_BYTES), largest_request
        )
        self.answers = MemoryPool(answers)
