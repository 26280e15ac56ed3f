"""What every checker has: it hears facts, and raises an alarm when one cannot be.

A checker judges only what clients could see, unless its module says otherwise. So it holds for any
broker, and cannot be wrong about the broker's inside.
"""

from collections.abc import Callable
from typing import Any, ClassVar

from kohort.sim.facts import Fact

Alarm = Callable[[str], None]
"""Takes what is wrong, in words; its first word is the name of the checker."""


class Checker:
    """One property. A class lists in `hears` which facts it wants, and the method for each."""

    name: ClassVar[str]
    hears: ClassVar[dict[type[Any], str]] = {}

    def __init__(self, alarm: Alarm) -> None:
        self._alarm = alarm

    def alarm(self, text: str) -> None:
        """The property does not hold."""
        self._alarm(f"{self.name}: {text}")

    def at_the_end(self) -> None:
        """Judge what can be judged only when everything is over."""

    def hear(self, fact: Fact) -> None:
        method = self.hears.get(type(fact))
        if method is not None:
            getattr(self, method)(fact)
