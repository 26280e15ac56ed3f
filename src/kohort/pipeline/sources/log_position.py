# SPDX-License-Identifier: Apache-2.0
"""Where reading a log stands, whose log it is, and what happened to it: what a manifest keeps.

No Spark is needed to know it.
"""

from typing import NamedTuple

from kohort.errors import KohortError

Mark = tuple[int, int]
"""Fingerprint of a batch: its base offset and its crc."""


class SourceError(KohortError):
    """A source that cannot be read; the text is one sentence that says what to do."""


class Position(NamedTuple):
    """Where reading a partition has come to."""

    next: int
    """The offset to read next."""
    last: Mark | None = None
    """The last batch known before it; None for unknown, and then a cut tail may go unseen."""
    older: tuple[Mark, ...] = ()
    """Batches further back, newest first, ever wider apart: a cut goes back to the newest of them
    that is still there."""

    def moved(self, to: "Position") -> "Position":
        """The position `to`, with what this one remembers of the log before it."""
        marks = [mark for mark in (to.last, self.last, *self.older) if mark is not None]
        kept: dict[int, Mark] = {}
        for mark in dict.fromkeys(marks):
            if mark[0] < to.next:
                kept.setdefault((to.next - mark[0]).bit_length(), mark)
        found = list(kept.values())
        return Position(to.next, found[0] if found else None, tuple(found[1:]))


class Identity(NamedTuple):
    """Whose log it is, ids as text. None is unknown and matches anything."""

    cluster_id: str | None = None
    topic_id: str | None = None

    def matches(self, other: "Identity") -> bool:
        """Whether both may be of the same log."""
        return all(
            ours is None or theirs is None or ours == theirs
            for ours, theirs in zip(self, other, strict=True)
        )


class Settings(NamedTuple):
    """Times of a cluster that say what its log means; None for unknown."""

    retention_ms: int | None = None
    """How long it keeps the offsets of a group without members."""
    session_timeout_ms: int | None = None
    """The shortest session that a member of the consumer protocol may have."""

    def over(self, other: "Settings") -> "Settings":
        """These, and where they are unknown those of the other."""
        return Settings(
            *(theirs if ours is None else ours for ours, theirs in zip(self, other, strict=True))
        )


WHOLE_LOG = -1
"""The partition of a note about all of them: nothing has happened to the log."""


class Note(NamedTuple):
    """Something about the log that the user should know: a gap, a cut tail, a leader change."""

    partition: int
    offset: int
    text: str


class Plan(NamedTuple):
    """What there is to read since some positions."""

    ranges: dict[int, tuple[int, int]]
    """Partition -> first offset and the offset after the last. Only partitions with something to
    read; compaction may have left no record in a range."""
    cut: dict[int, int]
    """Partition -> first offset that was used again: rows read before from there on no longer
    count, and the range begins there (or where the log now begins)."""
    notes: tuple[Note, ...]
    positions: dict[int, Position]
    """Partition -> where reading stands once the plan is read; of every partition ever seen."""
