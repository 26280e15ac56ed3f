# SPDX-License-Identifier: Apache-2.0
"""What happens to groups from one look at them to the next: the rows and the events of
`kohort groups watch`. Nothing here asks a cluster.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from kohort.cli.lags import GroupLag
from kohort.cli.render import name_text
from kohort.figures import Figure


class GroupSnapshot(NamedTuple):
    """A group at one moment. `error` stands for all else where it could not be looked at; `members`
    has the client of each member, by the member's id.
    """

    group_id: str
    state: str = ""
    epoch: int | None = None
    target_epoch: int | None = None
    members: Mapping[str, str] = {}
    lag: GroupLag | None = None
    error: str | None = None
    time_lag: Figure | None = None  # None unless it was asked for


class GroupRow(NamedTuple):
    """A group as it is shown. `per_second` is by how many records its lag grows, None where that is
    not known: between two looks at which all of the lag was.
    """

    group: GroupSnapshot
    per_second: float | None


class GroupEvent(NamedTuple):
    """Something that has happened between two looks."""

    group_id: str
    text: str


class GroupChanges:
    """Compares each look at the groups with the one before."""

    def __init__(self) -> None:
        self._before: dict[str, GroupSnapshot] = {}
        self._at_s: float | None = None

    @property
    def known(self) -> tuple[str, ...]:
        """The groups of the last look."""
        return tuple(self._before)

    def look(
        self, groups: Iterable[GroupSnapshot], now_s: float
    ) -> tuple[list[GroupRow], list[GroupEvent]]:
        """The rows of this look, and what has happened since the last one. `now_s` are seconds of
        any clock that never goes back.
        """
        seen = {group.group_id: group for group in groups}
        first = self._at_s is None
        passed = 0.0 if self._at_s is None else now_s - self._at_s
        rows, events = [], []
        for group in seen.values():
            before = self._before.get(group.group_id)
            rows.append(GroupRow(group, _growth(before, group, passed)))
            if not first:
                events += [GroupEvent(group.group_id, text) for text in _changes(before, group)]
        events += [
            GroupEvent(group_id, "is gone") for group_id in self._before if group_id not in seen
        ]
        self._before, self._at_s = seen, now_s
        return rows, events


def _growth(before: GroupSnapshot | None, now: GroupSnapshot, passed: float) -> float | None:
    lags = [group.lag for group in (before, now) if group is not None and group.lag is not None]
    if len(lags) < 2 or passed <= 0 or any(lag.unknown or not lag.known for lag in lags):
        return None
    return (lags[1].records - lags[0].records) / passed


def _changes(before: GroupSnapshot | None, now: GroupSnapshot) -> Iterator[str]:
    if before is None:
        yield f"is there: {now.error or now.state}"
        return
    if now.error is not None or before.error is not None:
        if now.error != before.error:
            yield now.error or f"can be looked at again: {now.state}"
        return
    if now.state != before.state or now.epoch != before.epoch:
        yield _progress(before, now)
    for member, client in now.members.items():
        if member not in before.members:
            yield f"{client} has joined ({member})"
    for member, client in before.members.items():
        if member not in now.members:
            yield f"{client} has left ({member})"


def _progress(before: GroupSnapshot, now: GroupSnapshot) -> str:
    """`Stable -> Reconciling, epoch 3 -> 4`."""
    parts = [] if now.state == before.state else [f"{before.state} -> {now.state}"]
    if now.epoch != before.epoch and None not in (now.epoch, before.epoch):
        parts.append(f"epoch {before.epoch} -> {now.epoch}")
    return ", ".join(parts) or f"is {now.state}"


def event_line(event: GroupEvent, clock: str) -> str:
    """`12:00:01 billing: app-2 has joined (Zv9jThE5T4iF72PIm/JceQ)`."""
    return f"{clock} {name_text(event.group_id)}: {event.text}"
