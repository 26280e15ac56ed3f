"""What happens to groups: in words, a line for each change of state and each notable event, and in
numbers.
"""

from collections.abc import Iterable
from typing import Any

from kohort.coordinator.counters import Tally
from kohort.coordinator.effects import Call, Effects, Note
from kohort.coordinator.gauges import Census, Standing
from kohort.coordinator.groups import Groups
from kohort.records.causes import Cause
from kohort.records.schemas import ConsumerGroupMetadataKey, OffsetCommitKey
from kohort.terms import GroupId
from kohort.wire.messages.join_group import JoinGroupRequest
from kohort.wire.messages.leave_group import LeaveGroupRequest
from kohort.wire.messages.sync_group import SyncGroupRequest

# They move a classic group without a record: a rebalance under way is in memory alone.
_MOVING = frozenset((JoinGroupRequest, SyncGroupRequest, LeaveGroupRequest))


class Story:
    """The states as last told. Only groups that a step may have changed are looked at."""

    def __init__(self, tally: Tally) -> None:
        self.census = Census()
        self._tally = tally

    def begin(self, groups: Groups) -> None:
        """Begin with the groups that a log has brought back, without a line for each."""
        groups.made_by_offsets.clear()
        self.census.begin(groups)

    def lines(
        self, groups: Groups, calls: Iterable[Call[Any]], steps: Iterable[Effects]
    ) -> list[str]:
        """What has happened in a turn; it is counted as well."""
        concerned: dict[GroupId, list[str]] = {}
        for call in calls:
            if type(call.request) in _MOVING:
                concerned[GroupId(call.request.group_id)] = []
        commits = 0
        for step in steps:
            expires = False
            raised: GroupId | None = None
            if step.notes:
                expires = self._take_notes(step.notes, concerned)
            for record in step.records:
                key = record.key
                if type(key) is not OffsetCommitKey:
                    group_id = _group_of(key)
                    notes = concerned.setdefault(group_id, [])
                    if type(key) is ConsumerGroupMetadataKey and record.value is not None:
                        if raised == group_id:  # a group that was converted goes on at once
                            notes.pop()
                        else:
                            self._tally.group_epochs += 1
                        raised = group_id
                        notes.append(f"epoch {record.value.epoch}")
                elif record.value is not None:
                    commits += 1
                elif expires:
                    self._tally.offset_expirations += 1
                else:
                    self._tally.offset_deletions += 1
        self._tally.offset_commits += commits
        if groups.made_by_offsets:
            for group_id in groups.made_by_offsets:
                self.census.look(group_id, groups.get(group_id))
            groups.made_by_offsets.clear()
        if not concerned:
            return []
        lines = (self._line(groups, group_id, notes) for group_id, notes in concerned.items())
        return [line for line in lines if line]

    def _take_notes(self, notes: Iterable[Note], concerned: dict[GroupId, list[str]]) -> bool:
        """Take what is noted of a step; whether the offsets that it ends have expired."""
        expires = False
        for note in notes:
            concerned.setdefault(note.group_id, []).append(note.text)
            expires = expires or note.cause is Cause.EXPIRY
            if note.ends_rebalance:
                self._tally.completed_rebalances += 1
        return expires

    def _line(self, groups: Groups, group_id: GroupId, notes: list[str]) -> str:
        """What to tell about one group, empty when nothing has happened."""
        before = self.census.seen(group_id)
        after = self.census.look(group_id, groups.get(group_id))
        if before == after and not notes:
            return ""
        line = _text_of(before)
        if before != after:
            line = f"{line or 'new'} -> {_text_of(after) or 'deleted'}"
        return f"group {group_id}: {'; '.join([line, *notes] if line else notes)}"


def _group_of(key: Any) -> GroupId:
    """The group of a record. Classic groups' records call the field `group`, others `group_id`."""
    return GroupId(key.group if hasattr(key, "group") else key.group_id)


def _text_of(standing: Standing | None) -> str:
    return "" if standing is None else f"{standing[0]} {standing[1]}"
