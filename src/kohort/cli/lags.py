"""How far a group is behind: its committed offsets beside the ends of their partitions."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from kohort.errors import ApiError
from kohort.figures import counted

if TYPE_CHECKING:
    from kohort.client.admin import AdminClient, GroupOffsets, Outcomes
    from kohort.terms import TopicPartition


class GroupLag(NamedTuple):
    """Records that a group has not read, in partitions of which that is known; in `unknown` ones it
    is not. A partition without a committed offset is neither.
    """

    records: int
    known: int
    unknown: int

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
        committed`.
        """
        behind = counted(self.records, "record") + " behind"
        if not self.known:
            return "lag unknown" if self.unknown else "nothing is committed"
        return f"at least {behind}, {self.unknown} unknown" if self.unknown else behind


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


def group_lag(offsets: Mapping[Any, Any], ends: Mapping[Any, Any]) -> GroupLag:
    """That of all partitions together. One whose offset is beyond its end counts as read."""
    lags = [
        lag_of(committed, ends.get(partition))
        for partition, committed in offsets.items()
        if committed is not None
    ]
    known = [lag for lag in lags if lag is not None]
    return GroupLag(sum(max(0, lag) for lag in known), len(known), len(lags) - len(known))


async def ends_of(
    admin: "AdminClient", offsets: "Outcomes[str, GroupOffsets]"
) -> "dict[TopicPartition, Any]":
    """The end, or the error, of each partition in which one of the groups has an offset."""
    committed = {partition for found in offsets.succeeded.values() for partition in found}
    return dict((await admin.end_offsets(sorted(committed))).items())
