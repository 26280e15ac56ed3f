"""What the broker of a test owns of the system: its sockets, its files, its pipes.

A process that the test forks has a copy of each, and may outlive the broker: clients would wait at
a port that nobody serves, and the data directory would stay locked. So a forked process closes its
copies at once. A process that is executed gets none: Python marks what it opens so.
"""

import os
from contextlib import suppress
from typing import Protocol, TypeVar
from weakref import WeakSet


class Closable(Protocol):
    """`close` gives a descriptor back, and leaves what others have of the same thing alone."""

    def close(self) -> None: ...


Thing = TypeVar("Thing", bound=Closable)
_owned: "WeakSet[Closable]" = WeakSet()


def owned(thing: Thing) -> Thing:
    """The thing itself, for as long as it lives closed in each process that is forked."""
    _owned.add(thing)
    return thing


def _close_all() -> None:
    """In the new process: nothing here is its own."""
    for thing in tuple(_owned):
        with suppress(Exception):  # a fork may come at any moment of the broker's thread
            thing.close()
    _owned.clear()


if hasattr(os, "register_at_fork"):  # there is no fork on Windows
    os.register_at_fork(after_in_child=_close_all)
