# SPDX-License-Identifier: Apache-2.0
"""Which partitions of the log are refreshed incrementally, and which are recomputed.

A partition is refreshed incrementally where all new rows stand behind those that are known.
Otherwise, and where that cannot be said, it is recomputed from all rows that count. Needs no Spark.

These decide about a recompute: `refresh_plan`, by the increments and by what else rows depend on;
`histories._refresh_plan`, before it asks that one, by the files and columns of the histories;
`log_progress.usable_state_or_none` and `progress.are_whole`, by the files of the state and of the
tables of commits and lag; and `compute._reusable`, by those of each other table of gold. The run
says why: `compute.compute`, `ingest.flip` and `ingest._upgrade` make notes of it.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from kohort.pipeline.format.manifest import HistoriesState, Increment


class RefreshPlan(NamedTuple):
    """Partitions of the log with something new."""

    incremental: frozenset[int]
    """New rows are added to what an earlier run has left."""
    recompute: frozenset[int] | None
    """All rows are looked at. None: of all partitions there are."""
    why: str = ""
    """Why all there are; empty where that was never computed, or by another version of Kohort."""

    @property
    def touched(self) -> frozenset[int] | None:
        """Partitions whose rows may have changed; None for all."""
        return None if self.recompute is None else self.incremental | self.recompute


MISSING = "files of an earlier run are missing or damaged"


def full_refresh(why: str = "") -> RefreshPlan:
    """Recompute everything. `histories._refresh_plan` asks for it too, where files are missing."""
    return RefreshPlan(frozenset(), None, why)


def refresh_plan(
    before: HistoriesState,
    now: HistoriesState,
    known: Iterable[Increment],
    there: Iterable[Increment],
    renamed: Collection[int] = (),
) -> RefreshPlan:
    """The difference between the increments that are `there` and those that `before` has known.
    `renamed` are partitions with groups that depend on a topic whose name has changed.

    Histories ask by `histories._refresh_plan`, the tables of commits and lag by
    `log_progress.log_progress`. Both have found their files whole before.
    """
    if before.code != now.code or not before.code:
        return full_refresh()
    if before.session_timeout_ms != now.session_timeout_ms:
        was, is_now = (
            "unknown" if state.session_timeout_ms is None else f"{state.session_timeout_ms} ms"
            for state in (before, now)
        )
        return full_refresh(f"the session timeout was {was} and is {is_now}")
    old = {increment.name: increment for increment in known}
    new = {increment.name: increment for increment in there}
    recompute = {*renamed}
    recompute |= {
        index for index, complete in before.complete.items() if now.complete.get(index) != complete
    }
    reached = next_offsets(old.values())
    recompute |= {index for index in reached if before.fed.get(index) != reached[index]}
    for name, increment in old.items():
        recompute |= _rewritten(increment, new.get(name))
    incremental: set[int] = set()
    for increment in new.values():
        if increment.name not in old:
            recompute |= {
                index
                for index, span in increment.ranges.items()
                if _begins_before_known(span, index, before)
            }
            incremental |= increment.ranges.keys()
    return RefreshPlan(frozenset(incremental - recompute), frozenset(recompute))


def next_offsets(increments: Iterable[Increment]) -> dict[int, int]:
    """Partition of the log -> the offset behind the last that counts."""
    reached: dict[int, int] = {}
    for increment in increments:
        for index, (_, end) in increment.ranges.items():
            reached[index] = max(min(end, increment.cuts.get(index, end)), reached.get(index, 0))
    return reached


def renamed_topics(before: Mapping[str, str], now: Mapping[str, str]) -> set[str]:
    """Ids of topics with another name, and names with another id; `None` is a name too."""
    found = set()
    for topic_id in before.keys() | now.keys():
        names = before.get(topic_id), now.get(topic_id)
        if names[0] != names[1]:
            found |= {topic_id, *(name for name in names if name is not None)}
    return found


def _rewritten(before: Increment, now: Increment | None) -> set[int]:
    """Partitions about which an increment no longer says what it said."""
    if now is None:
        return {*before.ranges}
    return {index for index in before.ranges if now.cuts.get(index) != before.cuts.get(index)}


def _begins_before_known(span: tuple[int, int], partition: int, before: HistoriesState) -> bool:
    """Whether rows came later although they begin before the end of what was known."""
    return span[0] < before.fed.get(partition, 0)
