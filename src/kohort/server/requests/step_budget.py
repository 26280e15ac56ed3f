"""How much of a request is done in one step.

Whatever the broker knows may change between two steps. What was looked up before is looked up again
then, so that a topic which was deleted meanwhile is answered as such.
"""

from collections.abc import Sequence
from typing import TypeVar

Item = TypeVar("Item")

STEP_ELEMENTS = 128
"""What one step does of a request or an answer, in elements: a millisecond or two."""


LONG_NAME = 256  # characters: nobody names a group so


class StepBudget:
    """Says where a step of a request ends."""

    __slots__ = ("_left",)

    def __init__(self) -> None:
        self._left = STEP_ELEMENTS

    def is_over(self, elements: int = 1) -> bool:
        """Whether the step ends with this element, or with this many of them: then yield."""
        self._left -= elements
        if self._left > 0:
            return False
        self._left = STEP_ELEMENTS
        return True


def slices(items: Sequence[Item], size: int) -> list[Sequence[Item]]:
    """The items in groups of this size, for a request that asks machines a part at a time."""
    return [items[at : at + size] for at in range(0, len(items), size)]


def slices_of_names(names: Sequence[str], size: int) -> list[Sequence[str]]:
    """The same, where a name of 32 KB takes as long as a hundred short ones: it is hashed, and told
    again in the answer.
    """
    if sum(map(len, names)) <= LONG_NAME * len(names):
        return slices(names, size)
    found: list[Sequence[str]] = []
    begin = weight = 0
    for at, name in enumerate(names):
        own = 1 + len(name) // LONG_NAME
        if weight + own > size and at > begin:
            found.append(names[begin:at])
            begin, weight = at, 0
        weight += own
    return [*found, names[begin:]]
