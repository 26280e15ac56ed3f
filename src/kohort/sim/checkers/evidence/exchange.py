# SPDX-License-Identifier: Apache-2.0
"""A request, its answer, and what a function of evidence is."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from kohort.sim.checkers.synced_disk import Mark, SyncedDisk


class Exchange(NamedTuple):
    """A request with its answer. `since` is where the disk was when the request arrived: all that
    was durable in the logs of groups and in the catalog had been read by then.
    """

    request: Any
    answer: Any
    version: int
    since: Mark
    name_of: Callable[[bytes], str | None]


Evidence = Callable[[SyncedDisk, Exchange], Iterator[str]]
"""Yields what an answer acknowledges and the disk has not, in words."""
