# SPDX-License-Identifier: Apache-2.0
"""How far a group is behind: its committed offsets beside the ends of their partitions, and the
times of the records that it reads next.
"""

from collections.abc import Collection, ItemsView, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from kohort.errors import ApiError
from kohort.figures import Bound, Figure, counted, duration

if TYPE_CHECKING:
    from kohort.client.admin import (
        AdminClient,
        GroupDescription,
        GroupOffsets,
        Outcomes,
        TimeLag,
    )
    from kohort.terms import TopicPartition

TIME_FIELDS = ("lag_seconds", "lag_seconds_bound", "lag_seconds_reason")
_AT_ONCE = 8  # calls: each has an offset of every partition at most

TimeLags = Mapping[tuple[Any, int], "TimeLag | ApiError"]
"""By partition and offset: groups that read a partition have offsets of their own in it."""


class GroupLag(NamedTuple):
    """Records that a group has not read, in partitions of which that is known; in `unknown` ones it
    is not. A partition without a committed offset is neither: `uncommitted` of those have a member
    that reads them, from where its settings say. None is a number that was not looked up.
    """

    records: int
    known: int
    unknown: int
    uncommitted: int | None = None

    @property
    def value(self) -> int | None:
        """The records, at least; None where nothing is known, or nothing is committed."""
        return self.records if self.known else None

    @property
    def text(self) -> str:
        """`7`, `at least 7`, `unknown`, or nothing for a group without a committed offset."""
        if not self.known:
            return "unknown" if self.unknown else ""
        return f"at least {self.records}" if self.unknown else f"{self.records}"

    @property
    def sentence(self) -> str:
        """`7 records behind`, `at least 7 records behind, 2 unknown`, `lag unknown`, or `nothing is
        committed`, with the partitions without a commit behind it.
        """
        behind = counted(self.records, "record") + " behind"
        more = uncommitted_text(self.uncommitted or 0)
        if not self.known:
            return ("lag unknown" if self.unknown else "nothing is committed") + more
        return (f"at least {behind}, {self.unknown} unknown" if self.unknown else behind) + more


def uncommitted_text(count: int) -> str:
    """` + 2 partitions without a commit`, or nothing."""
    return f" + {counted(count, 'partition')} without a commit" if count else ""


def owned_by(group: "GroupDescription") -> "list[tuple[str, int]]":
    """The partitions that members of the group own."""
    return [
        (topic, index)
        for member in group.members
        for topic, indexes in (member.assignment or {}).items()
        for index in indexes
    ]


def offset_of(found: Any) -> int | None:
    """The offset of a committed offset or of an end; None where there is none, or an error."""
    if found is None or isinstance(found, ApiError):
        return None
    offset: int = found.offset
    return offset


def lag_of(committed: Any, end: Any) -> int | None:
    """Records that the group has not read; below zero when it committed beyond the end."""
    at, last = offset_of(committed), offset_of(end)
    return None if at is None or last is None else last - at


def group_lag(
    offsets: Mapping[Any, Any],
    ends: Mapping[Any, Any],
    owned: Collection[tuple[str, int]] | None = None,
) -> GroupLag:
    """That of all partitions together. One whose offset is beyond its end counts as read. Of those
    that are `owned` it counts the ones without a commit.
    """
    lags = [
        lag_of(committed, ends.get(partition))
        for partition, committed in offsets.items()
        if committed is not None
    ]
    known = [lag for lag in lags if lag is not None]
    bare = None if owned is None else sum(offsets.get(place) is None for place in owned)
    return GroupLag(sum(max(0, lag) for lag in known), len(known), len(lags) - len(known), bare)


async def ends_of(
    admin: "AdminClient", offsets: "Outcomes[str, GroupOffsets]"
) -> "dict[TopicPartition, Any]":
    """The end, or the error, of each partition in which one of the groups has an offset."""
    committed = {partition for found in offsets.succeeded.values() for partition in found}
    return dict((await admin.end_offsets(sorted(committed))).items())


async def time_lags_of(
    admin: "AdminClient", offsets: "Outcomes[str, GroupOffsets]", ends: Mapping[Any, Any]
) -> TimeLags:
    """The time lag at each committed offset behind which there is something to read."""
    import asyncio

    behind: dict[TopicPartition, dict[int, None]] = {}
    for found in offsets.succeeded.values():
        for partition, committed in found.items():
            at = offset_of(committed)
            if at is not None and (lag_of(committed, ends.get(partition)) or 0) > 0:
                behind.setdefault(partition, {})[at] = None
    rounds = max((len(ats) for ats in behind.values()), default=0)
    places = [
        {partition: [*ats][index] for partition, ats in behind.items() if index < len(ats)}
        for index in range(rounds)
    ]
    lags: dict[tuple[Any, int], TimeLag | ApiError] = {}
    for first in range(0, rounds, _AT_ONCE):
        asked = places[first : first + _AT_ONCE]
        answers = await asyncio.gather(*(admin.time_lags(one) for one in asked))
        for offset_by_partition, answer in zip(asked, answers, strict=True):
            for partition, lag in answer.items():
                lags[partition, offset_by_partition[partition]] = lag
    return lags


def time_lag(partition: Any, committed: Any, end: Any, lags: TimeLags) -> Figure:
    """That of a group in a partition; NONE where nothing is committed."""
    at, lag = offset_of(committed), lag_of(committed, end)
    if committed is None:
        return Figure(None, Bound.NONE)
    if at is None or lag is None:
        return Figure(None, Bound.UNKNOWN)
    if lag <= 0:
        return Figure(0.0)
    found = lags.get((partition, at))
    if found is None or isinstance(found, ApiError):
        return Figure(None, Bound.UNKNOWN, reason=None if found is None else found.code.name)
    return found.figure


def group_time_lag(offsets: Mapping[Any, Any], ends: Mapping[Any, Any], lags: TimeLags) -> Figure:
    """The largest of all partitions: at least that, where one is not known or is a lower bound."""
    figures = [
        time_lag(partition, committed, ends.get(partition), lags)
        for partition, committed in offsets.items()
        if committed is not None
    ]
    known = [one for one in figures if one.value is not None]
    if not known:
        return Figure(None, Bound.UNKNOWN if figures else Bound.NONE)
    largest = max(known, key=lambda one: (one.value, one.bound))
    bounds = {one.bound for one in figures}
    if largest.bound or bounds == {Bound.EXACT}:
        return largest
    reasons = [one.reason for one in figures if one.bound]
    return Figure(largest.value, Bound.AT_LEAST, reason=reasons[0])


def time_text(figure: Figure) -> str | None:
    """A cell of a table: `3 min 20 s`, `at least 5 s (compacted)`, `unknown`; None for NONE."""
    return None if figure.bound is Bound.NONE else figure.text(duration)


def time_fields(figure: Figure) -> dict[str, Any]:
    """The same in JSON, under TIME_FIELDS."""
    bound = str(figure.bound) or "exact"
    seconds = None if figure.value is None else round(figure.value, 3)
    return dict(zip(TIME_FIELDS, (seconds, bound, figure.reason), strict=True))


def failed_times(lags: TimeLags) -> ItemsView[Any, ApiError]:
    """The partitions whose records could not be read, each once."""
    failed = {place: lag for (place, _), lag in lags.items() if isinstance(lag, ApiError)}
    return failed.items()
