# SPDX-License-Identifier: Apache-2.0
"""What every checker has: it hears facts, and raises an alarm when one cannot be.

A checker judges only what clients could see, unless its module says otherwise. So it holds for any
broker, and cannot be wrong about the broker's inside.
"""

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

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

    def ears(self) -> Iterator[tuple[type[Any], Callable[[Any], None]]]:
        """The kinds of facts that it wants, and what takes them."""
        for kind, method in self.hears.items():
            yield kind, getattr(self, method)
