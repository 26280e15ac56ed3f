# SPDX-License-Identifier: Apache-2.0
"""What happens to groups: in words, a line for each change of state and each notable event, and in
numbers.
"""

from collections.abc import Iterable
from typing import Any

from kohort.coordinator.counters import GroupCounters
from kohort.coordinator.gauges import GroupGauges, TypeAndState
from kohort.coordinator.groups import Groups
from kohort.machines.effects import Call, Effects, GroupEvent
from kohort.records.causes import Cause
from kohort.records.schemas import ConsumerGroupMetadataKey, OffsetCommitKey
from kohort.terms import GroupId
from kohort.wire.messages.join_group import JoinGroupRequest
from kohort.wire.messages.leave_group import LeaveGroupRequest
from kohort.wire.messages.sync_group import SyncGroupRequest

# They move a classic group without a record: a rebalance under way is in memory alone.
_MOVING = frozenset((JoinGroupRequest, SyncGroupRequest, LeaveGroupRequest))


class GroupEventLog:
    """The states as last told. Only groups that a step may have changed are looked at."""

    def __init__(self, counters: GroupCounters) -> None:
        self.gauges = GroupGauges()
        self._counters = counters

    def begin(self, groups: Groups) -> None:
        """Begin with the groups that a log has brought back, without a line for each."""
        groups.made_by_offsets.clear()
        self.gauges.begin(groups)

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
            if step.events:
                expires = self._take_events(step.events, concerned)
            for record in step.records:
                key = record.key
                if type(key) is not OffsetCommitKey:
                    group_id = _group_of(key)
                    events = concerned.setdefault(group_id, [])
                    if type(key) is ConsumerGroupMetadataKey and record.value is not None:
                        if raised == group_id:  # a group that was converted goes on at once
                            events.pop()
                        else:
                            self._counters.group_epochs += 1
                        raised = group_id
                        events.append(f"epoch {record.value.epoch}")
                elif record.value is not None:
                    commits += 1
                elif expires:
                    self._counters.offset_expirations += 1
                else:
                    self._counters.offset_deletions += 1
        self._counters.offset_commits += commits
        if groups.made_by_offsets:
            for group_id in groups.made_by_offsets:
                self.gauges.look(group_id, groups.get(group_id))
            groups.made_by_offsets.clear()
        if not concerned:
            return []
        lines = (self._line(groups, group_id, events) for group_id, events in concerned.items())
        return [line for line in lines if line]

    def _take_events(
        self, events: Iterable[GroupEvent], concerned: dict[GroupId, list[str]]
    ) -> bool:
        """Take what is noted of a step; whether the offsets that it ends have expired."""
        expires = False
        for event in events:
            concerned.setdefault(event.group_id, []).append(event.text)
            expires = expires or event.cause is Cause.EXPIRY
            if event.ends_rebalance:
                self._counters.completed_rebalances += 1
        return expires

    def _line(self, groups: Groups, group_id: GroupId, events: list[str]) -> str:
        """What to tell about one group, empty when nothing has happened."""
        before = self.gauges.last_seen(group_id)
        after = self.gauges.look(group_id, groups.get(group_id))
        if before == after and not events:
            return ""
        line = _text_of(before)
        if before != after:
            line = f"{line or 'new'} -> {_text_of(after) or 'deleted'}"
        return f"group {group_id}: {'; '.join([line, *events] if line else events)}"


def _group_of(key: Any) -> GroupId:
    """The group of a record. Classic groups' records call the field `group`, others `group_id`."""
    return GroupId(key.group if hasattr(key, "group") else key.group_id)


def _text_of(type_and_state: TypeAndState | None) -> str:
    return "" if type_and_state is None else f"{type_and_state[0]} {type_and_state[1]}"
