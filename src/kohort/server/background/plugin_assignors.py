# SPDX-License-Identifier: Apache-2.0
"""Assignors that installed packages bring: entry points of the group `kohort.assignors`."""

from collections.abc import Iterable, Mapping
from importlib.metadata import entry_points

from kohort.assignors import ASSIGNORS, Assign
from kohort.errors import KohortError

GROUP = "kohort.assignors"


def load_plugin_assignors(names: Iterable[str]) -> Mapping[str, Assign]:
    """Those of the named assignors that are not of Kohort, loaded.

    Raises KohortError for one that is not installed or cannot be loaded.
    """
    wanted = [name for name in names if name not in ASSIGNORS]
    if not wanted:
        return {}
    installed = {entry.name: entry for entry in entry_points(group=GROUP)}
    found = {}
    for name in wanted:
        if name not in installed:
            known = ", ".join([*ASSIGNORS, *sorted(installed)])
            raise KohortError(
                f"group.consumer.assignors has {name!r}, expected a list out of {known}"
                f" (others are entry points {GROUP} of installed packages)"
            )
        try:
            assign = installed[name].load()
        except Exception as error:
            raise KohortError(
                f"assignor {name!r} ({installed[name].value}) cannot be loaded: "
                f"{type(error).__name__}: {error}"
            ) from error
        if not callable(assign):
            raise KohortError(
                f"assignor {name!r} ({installed[name].value}) is {assign!r}, expected a function"
            )
        found[name] = assign
    return found
