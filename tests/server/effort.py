# SPDX-License-Identifier: Apache-2.0
"""What a broker does in one piece, in calls of functions: no clock is asked, so a busy machine
counts the same.

Between two pieces others could run, if the slice were over: the scheduler then asks its stopwatch.
To read a request is a piece by itself, and so is to encode an answer.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

from tests.server.desk import Desk
from tests.world import World

from kohort.server.network import dispatcher
from kohort.server.network.connection import Slot
from kohort.sim.injected_bugs.replace_attribute import replace_attribute

KINDS = READING, HANDLING, ENCODING = "reading", "handling", "encoding"
CALL_NS = 100  # on the stopwatch
LOOKED_AT_BYTES = 1000


class Effort:
    """`longest` has of each kind of work the calls of its longest piece."""

    def __init__(self) -> None:
        self.calls = 0
        self.longest = dict.fromkeys(KINDS, 0)
        self._since = 0

    def ends(self, kind: str = HANDLING) -> None:
        """A piece of this kind of work ends here."""
        piece, self._since = self.calls - self._since, self.calls
        self.longest[kind] = max(self.longest[kind], piece)

    def _count(self, _frame: Any, event: str, _argument: Any) -> None:
        if event in ("call", "c_call"):
            self.calls += 1

    @contextmanager
    def counted(self) -> Iterator[None]:
        """What happens within counts."""
        self._since = self.calls
        before = sys.getprofile()
        sys.setprofile(self._count)
        try:
            yield
        finally:
            sys.setprofile(before)
            self.ends()

    def apart(self, function: Callable[..., Any], kind: str) -> Callable[..., Any]:
        """The function, as pieces of a kind of their own."""

        @wraps(function)
        def piece(*arguments: Any) -> Any:
            self.ends()
            try:
                return function(*arguments)
            finally:
                self.ends(kind)

        return piece


class EffortDesk(Desk):
    """A desk that counts what its cluster does about a request."""

    def __init__(self, **settings: str) -> None:
        self.effort = Effort()
        super().__init__(**settings)

    def _stopwatch(self) -> int:
        self.effort.ends()
        return self.effort.calls * CALL_NS

    def effort_of(self, request: Any, version: int) -> dict[str, int]:
        """The longest pieces of work for a request, until it is answered or waits. Its texts are
        looked at, as those of a long one are.
        """
        effort = self.effort = Effort()
        frame = self.frame(request, version)
        client = self.connect()
        with (
            replace_attribute(dispatcher, "LONGEST_STRING", LOOKED_AT_BYTES),
            replace_attribute(dispatcher, "_read", effort.apart(dispatcher._read, READING)),
            replace_attribute(Slot, "answer", effort.apart(Slot.answer, ENCODING)),
            effort.counted(),
        ):
            client.put(frame)
            World.settle(self)
        assert client.connection.error is None, client.connection.error
        return effort.longest
