"""What the outside is told about a shard. The core itself says nothing."""

from collections.abc import Callable, Iterable
from typing import Any

from kohort.coordinator.effects import Call, Effects
from kohort.coordinator.shard import Shard
from kohort.records.schemas import OffsetCommitKey
from kohort.terms import GroupId
from kohort.wire.messages.join_group import JoinGroupRequest
from kohort.wire.messages.leave_group import LeaveGroupRequest
from kohort.wire.messages.sync_group import SyncGroupRequest

Observer = Callable[[str], None]

# They move a classic group without a record: a rebalance under way is in memory alone.
_MOVING = (JoinGroupRequest, SyncGroupRequest, LeaveGroupRequest)


class GroupStates:
    """One line per change of a group's state. It looks only at groups that a step may have
    changed.
    """

    def __init__(self, observe: Observer) -> None:
        self._observe = observe
        self._known: dict[GroupId, str] = {}

    def loaded(self, shard: Shard) -> None:
        """Begin with what a shard has come back with, without a line for each."""
        self._known = {group.id: _told(group) for group in shard.groups}

    def stepped(self, shard: Shard, calls: Iterable[Call[Any]], steps: Iterable[Effects]) -> None:
        """Tell what has changed in a turn."""
        concerned: dict[GroupId, None] = {}
        for call in calls:
            if isinstance(call.request, _MOVING):
                concerned[GroupId(call.request.group_id)] = None
        for step in steps:
            concerned.update(dict.fromkeys(step.groups))
            for record in step.records:
                key = record.key
                if type(key) is not OffsetCommitKey:
                    concerned[_group_of(key)] = None
        for group_id in concerned:
            self._look(shard, group_id)

    def _look(self, shard: Shard, group_id: GroupId) -> None:
        group = shard.groups.get(group_id)
        before = self._known.get(group_id)
        after = None if group is None else _told(group)
        if after == before:
            return
        if after is None:
            del self._known[group_id]
        else:
            self._known[group_id] = after
        self._observe(f"group {group_id}: {before or 'new'} -> {after or 'deleted'}")


def _group_of(key: Any) -> GroupId:
    """The field is called `group` in the records of classic groups, `group_id` in those of
    KIP-848.
    """
    return GroupId(key.group if hasattr(key, "group") else key.group_id)


def _told(group: Any) -> str:
    return f"{group.type} {group.state}"
