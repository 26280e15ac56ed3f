"""What machines with deadlines have in common: they meet them one at a time, and can be told that
one has failed, or that the clock has jumped.
"""

from collections.abc import Iterator
from typing import Any

from kohort.machines.deadlines import Deadlines
from kohort.machines.effects import Effects
from kohort.terms import Millis

AGAIN_MS = 500  # from a deadline that could not be met to the next attempt; upstream waits as long


class DeadlineMixin:
    """A part of `runtime.machine.Machine`. A subclass has the deadlines, and knows what to do."""

    deadlines: Deadlines

    def meet(self, kind: str, now: Millis, *about: Any) -> Effects:
        """Do what one deadline asks for."""
        raise NotImplementedError

    def tick(self, now: Millis) -> Iterator[Effects]:
        """Do what is due, one deadline at a time."""
        while (due := self.deadlines.pop_due(now)) is not None:
            (kind, *about), details = due
            yield self.meet(kind, now, *about, *details)

    def put_off(self, now: Millis) -> None:
        """The last step of tick() has failed or could not be written: its deadline comes again."""
        self.deadlines.put_off(Millis(now + AGAIN_MS))

    def wake_at(self) -> Millis | None:
        """When tick() has something to do; it may be asked too early, never too late."""
        return self.deadlines.wake_at()

    def clock_jumped(self, by_ms: int) -> None:
        """The clock of the broker has jumped forward or back by this much."""
        self.deadlines.clock_jumped(by_ms)
