# SPDX-License-Identifier: Apache-2.0
"""Whether records have waited while nobody read a partition.

The first commit behind a silence may be of a single record: of a client that commits after each, or
whose clock fell due just then. So later ones are looked at too, for as long as the silence has
lasted. A reader that finds a backlog goes ahead faster than records had come before, one that finds
none cannot.

Commits come folded. What is decided must not depend on where a fold ends, so only these of them are
looked at: the first, the last one before each of the `boundaries`, and the last one that there is.
No fold reaches over a boundary (`section`).
"""

from collections.abc import Iterator

from kohort.history.events import Commits
from kohort.history.state import Backlog, Progress

HALF = 0.5
"""There was work if this share of what a rate promises was waiting."""
FASTER = 1.0 + HALF
"""Who reads a backlog is faster than its records had come, by more than rates differ."""
SHORTEST_US = 16_000_000
"""How long later commits are looked at, after however short a silence: three times the distance of
most clients' commits (`auto.commit.interval.ms`).
"""
SCALES_S = tuple(1 << power for power in range(11))
STEPS = 2
"""Boundaries are the next so many multiples of each of these scales."""
SECOND_US = 1_000_000


def section(at: int, first_at: int) -> int:
    """Which of the sections between boundaries a commit belongs to, by the time of the first one
    that is folded with it, in microseconds. There are about a dozen of them, however many commits.

    This is the rule in Python, for tests. Commits are folded by Spark, which computes the same by
    an expression (`_section` in `kohort.spark.gold.history_replay`) and is held against this.
    """
    passed = (at // SECOND_US // scale - first_at // SECOND_US // scale for scale in SCALES_S)
    return sum(min(max(steps, 0), STEPS) for steps in passed)


def boundaries(first_at: int, until: int) -> Iterator[int]:
    """The times up to `until` before which the last commit is looked at, in any order. Each is at
    most three times as far from the first commit as another one, or as a second.
    """
    for scale in SCALES_S:
        for step in range(1, STEPS + 1):
            at = (first_at // SECOND_US // scale + step) * scale * SECOND_US
            if at <= until:
                yield at


def begin(
    last: tuple[int, int], per_us: float | None, event: Commits, latest: int
) -> Backlog | None:
    """What later commits may show, where the first one behind a silence has shown nothing. None
    without a rate, or a boundary up to which they are looked at: then they cannot. `last` is the
    commit before, `latest` is up to when they are looked at.
    """
    at, committed = last
    if not per_us or per_us < 0 or event.first_at is None or event.first_committed is None:
        return None
    silent_us = event.first_at - at
    until = min(event.first_at + max(silent_us, SHORTEST_US), latest)
    if not any(boundaries(event.first_at, until)):
        return None
    return Backlog(committed, per_us, silent_us, event.first_at, event.first_committed, until)


def judge(backlog: Backlog, progress: Progress, event: Commits) -> bool | None:
    """Whether the commits before this one show a backlog; None: a later one may."""
    if event.first_at is None or progress.last_at is None:
        return None
    ends = list(boundaries(backlog.first_at, backlog.until))
    if any(progress.last_at < at <= event.first_at for at in ends):
        if shows(backlog, progress):
            return True
        if _stands_still(backlog, progress):
            return False
    return None if event.first_at < max(ends, default=0) else False


def shows(backlog: Backlog, progress: Progress) -> bool:
    """Whether the last commit shows a backlog: its reader has gone ahead of what may have come
    since the first one, by half of what should have come before.
    """
    if progress.last_at is None or progress.last_committed is None:
        return False
    since = progress.last_at - backlog.first_at
    promised = backlog.per_us * (FASTER * since + HALF * backlog.silent_us)
    return since > 0 and progress.last_committed - backlog.committed >= 1.0 + promised


def _stands_still(backlog: Backlog, progress: Progress) -> bool:
    """Whether the reader has committed the same again: it has nothing to read."""
    if progress.last_at is None or progress.last_committed is None:
        return False
    return (
        progress.last_at > backlog.first_at and progress.last_committed <= backlog.first_committed
    )
