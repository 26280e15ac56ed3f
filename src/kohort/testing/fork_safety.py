# SPDX-License-Identifier: Apache-2.0
"""What the broker of a test owns of the system: its sockets, its files, its pipes.

A process that the test forks has a copy of each, and may outlive the broker: clients would wait at
a port that nobody serves, and the data directory would stay locked. So a forked process closes its
copies at once. A process that is executed gets none: Python marks what it opens so.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

Thing = TypeVar("Thing", bound=Any)


def _close(thing: Any) -> None:
    """Give a descriptor back, and leave what others have of the same thing alone."""
    thing.close()


_owned: "WeakKeyDictionary[Any, Callable[[Any], None]]" = WeakKeyDictionary()


def close_after_fork(thing: Thing, forget: Callable[[Any], None] = _close) -> Thing:
    """The thing itself, for as long as it lives closed in each process that is forked.

    `forget` does what is to be done there instead of closing it: the thing must not say at its end
    that it was not closed.
    """
    _owned[thing] = forget
    return thing


def _forget_all() -> None:
    """In the new process: nothing here is its own."""
    things = tuple(_owned.items())  # none ends before all are done: one may refer to another
    for thing, forget in things:
        with suppress(Exception):  # a fork may come at any moment of the broker's thread
            forget(thing)
    _owned.clear()


if hasattr(os, "register_at_fork"):  # there is no fork on Windows
    os.register_at_fork(after_in_child=_forget_all)
