# SPDX-License-Identifier: Apache-2.0
"""How a bug is planted: something else stands under a name of the broker for as long as a run."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

InjectedBug = Callable[[], Iterator[None]]
"""A generator that changes the broker, yields once, and takes the change back."""


@contextmanager
def replace_attribute(owner: Any, name: str, other: Any) -> Iterator[None]:
    """Another thing under a name, for a while."""
    before = owner.__dict__[name]
    setattr(owner, name, other)
    try:
        yield
    finally:
        setattr(owner, name, before)


def injected(bugs: Mapping[str, InjectedBug], name: str | None) -> Any:
    """A bug of a table by its name, in force within a `with` block; nothing without a name."""
    return ExitStack() if name is None else contextmanager(bugs[name])()
