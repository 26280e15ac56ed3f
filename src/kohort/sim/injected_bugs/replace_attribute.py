"""How a bug is planted: something else stands under a name of the broker for as long as a run."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
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
