# SPDX-License-Identifier: Apache-2.0
"""Wrong arguments: one line that names the argument, its value and what was expected."""

import os
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from kohort.errors import KohortError

__tracebackhide__ = True
SECONDS_MAX = 10 * 365 * 86_400  # ten years: longer than any retention that a test waits for


def check_names(what: str, names: Iterable[str], known: Iterable[str]) -> None:
    """Raises KohortError for a name that is not known."""
    expected = list(known)
    for name in names:
        if name not in expected:
            near = get_close_matches(str(name), expected, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(expected)}"
            raise KohortError(f"{what} has no argument {name}; {hint}")


def check_bool(name: str, value: object) -> None:
    if not isinstance(value, bool):
        raise KohortError(f"{name} is {value!r}, expected True or False")


def check_whole(name: str, value: object, least: int = 0) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise KohortError(f"{name} is {value!r}, expected a whole number, {least} or more")


def check_seconds(name: str, value: object) -> None:
    """A wait of nan seconds would never end, and one of inf is none that a test should have."""
    number = value if isinstance(value, int | float) and not isinstance(value, bool) else -1
    if not 0 <= number <= SECONDS_MAX:
        raise KohortError(f"{name} is {value!r}, expected seconds, 0 to {SECONDS_MAX}")


def check_text(name: str, value: object) -> None:
    if not isinstance(value, str):
        raise KohortError(f"{name} is {value!r}, expected a text")


def check_choice(name: str, value: object, choices: Iterable[str]) -> None:
    expected = list(choices)
    if value not in expected:
        raise KohortError(f"{name} is {value!r}, expected {' or '.join(map(repr, expected))}")


def check_mapping(name: str, value: object) -> None:
    if not isinstance(value, Mapping):
        raise KohortError(f"{name} is {value!r}, expected a dict")
    for key in value:
        if not isinstance(key, str):
            raise KohortError(f"{name} has the key {key!r}, expected a text")


def absolute_path(name: str, value: Any) -> Path:
    """The path from the root on: a test may change its folder later."""
    if not isinstance(value, str | os.PathLike) or not str(value):
        raise KohortError(f"{name} is {value!r}, expected a path")
    return Path(value).absolute()
