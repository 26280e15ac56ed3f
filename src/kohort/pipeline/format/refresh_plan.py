"""Where histories of groups go on from their states, and where they begin anew. Needs no Spark.

A partition of the log goes on where all new rows stand behind those that its groups know.
Otherwise, and where that cannot be told, it begins anew with all rows that count.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from kohort.pipeline.format.manifest import HistoriesState, Increment


class RefreshPlan(NamedTuple):
    """Partitions of the log with something new."""

    incremental: frozenset[int]
    recompute: frozenset[int] | None
    """None: all there are."""
    why: str = ""
    """Why all there are; empty where that was never computed, or by another version of Kohort."""

    @property
    def touched(self) -> frozenset[int] | None:
        """Partitions whose rows may have changed; None for all."""
        return None if self.recompute is None else self.incremental | self.recompute


MISSING = "files of an earlier run are missing or damaged"


def full_refresh(why: str = "") -> RefreshPlan:
    """Everything counts as new."""
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
                index for index, span in increment.ranges.items() if _is_behind(span, index, before)
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


def _is_behind(span: tuple[int, int], partition: int, before: HistoriesState) -> bool:
    """Whether rows came later although they stand before what was known."""
    return span[0] < before.fed.get(partition, 0)
