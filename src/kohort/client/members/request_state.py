# SPDX-License-Identifier: Apache-2.0
"""One request at a time: which answer counts, when to ask again, and whether anybody can be asked.

Each request has a number, and only the answer to the last one is heard. After a failure comes a
pause; after an error that says that the coordinator is another one, somebody has to look it up.
"""

from typing import NamedTuple

from kohort.client.members.retry_backoff import RetryBackoff
from kohort.errors import ErrorCode
from kohort.terms import Millis

AT_ONCE = Millis(0)
ELSEWHERE = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE})


class InFlightRequest(NamedTuple):
    """The request under way: its number, and when it was sent."""

    number: int
    at: Millis


class RequestState:
    """`under_way` is the request whose answer is awaited, `not_before` the end of a pause."""

    def __init__(self, backoff: RetryBackoff) -> None:
        self.under_way: InFlightRequest | None = None
        self.not_before = AT_ONCE
        self.has_coordinator = False
        self._backoff = backoff
        self._failures = 0
        self._last_number = 0

    @property
    def possible(self) -> bool:
        """Whether there is somebody to ask, and nothing is asked already."""
        return self.under_way is None and self.has_coordinator

    def ask(self, now: Millis) -> int:
        """A request leaves; its number."""
        self._last_number += 1
        self.under_way = InFlightRequest(self._last_number, now)
        return self._last_number

    def answered(self, number: int) -> InFlightRequest | None:
        """The request under way, if this answer is its own: then it is under way no more."""
        asked = self.under_way
        if asked is None or asked.number != number:
            return None
        self.under_way = None
        return asked

    def forget(self) -> None:
        """No answer is awaited any more, and nothing has failed yet."""
        self.under_way = None
        self.succeeded()

    def succeeded(self) -> None:
        self._failures = 0
        self.not_before = AT_ONCE

    def failed(self, now: Millis) -> None:
        """No answer, or one that says "later"."""
        self.under_way = None
        self._failures += 1
        self.not_before = Millis(now + self._backoff.after(self._failures))

    def moved(self, now: Millis) -> bool:
        """An answer says that the coordinator is another one. Whether it has to be looked up.

        The new one is asked at once, but only the first time.
        """
        first = self._failures == 0
        self.failed(now)
        if first:
            self.not_before = AT_ONCE
        return self.lose_coordinator()

    def lose_coordinator(self) -> bool:
        """Whether it was known until now, and has to be looked up."""
        lost, self.has_coordinator = self.has_coordinator, False
        return lost
