"""What happens to groups, in words: a line for each change of state and each notable event."""

from collections.abc import Iterable, Iterator
from typing import Any

from kohort.coordinator.effects import Call, Effects
from kohort.coordinator.group import Group
from kohort.coordinator.groups import Groups
from kohort.records.schemas import OffsetCommitKey
from kohort.terms import GroupId
from kohort.wire.messages.join_group import JoinGroupRequest
from kohort.wire.messages.leave_group import LeaveGroupRequest
from kohort.wire.messages.sync_group import SyncGroupRequest

# They move a classic group without a record: a rebalance under way is in memory alone.
_MOVING = (JoinGroupRequest, SyncGroupRequest, LeaveGroupRequest)


class Story:
    """The states as last told. Only groups that a step may have changed are looked at."""

    def __init__(self) -> None:
        self._told: dict[GroupId, str] = {}

    def begin(self, groups: Groups) -> None:
        """Begin with the groups that a log has brought back, without a line for each."""
        self._told = {group.id: _state_of(group) for group in groups}

    def lines(
        self, groups: Groups, calls: Iterable[Call[Any]], steps: Iterable[Effects]
    ) -> Iterator[str]:
        """What has happened in a turn."""
        concerned: dict[GroupId, list[str]] = {}
        for call in calls:
            if isinstance(call.request, _MOVING):
                concerned[GroupId(call.request.group_id)] = []
        for step in steps:
            for note in step.notes:
                concerned.setdefault(note.group_id, []).append(note.text)
            for record in step.records:
                key = record.key
                if type(key) is not OffsetCommitKey:
                    concerned.setdefault(_group_of(key), [])
        for group_id, notes in concerned.items():
            line = self._line(groups, group_id)
            if line or notes:
                line = line or self._told.get(group_id, "")
                yield f"group {group_id}: {line}" + "".join(f"; {text}" for text in notes)

    def _line(self, groups: Groups, group_id: GroupId) -> str:
        """The change from one state to another, empty when there is none."""
        group = groups.get(group_id)
        before = self._told.get(group_id)
        after = None if group is None else _state_of(group)
        if after == before:
            return ""
        if after is None:
            del self._told[group_id]
        else:
            self._told[group_id] = after
        return f"{before or 'new'} -> {after or 'deleted'}"


def _group_of(key: Any) -> GroupId:
    """The group of a record. Classic groups' records call the field `group`, others `group_id`."""
    return GroupId(key.group if hasattr(key, "group") else key.group_id)


def _state_of(group: Group) -> str:
    return f"{group.type} {group.state}"
