# SPDX-License-Identifier: Apache-2.0
"""Share and streams groups that another broker has written: listed, and left alone.

Their records stay in the log as they are. What is known of such a group is what these records say;
a group with one that cannot be read is shown as Stable, so that nobody takes it for one that may be
deleted.
"""

from kohort.coordinator.group import Group
from kohort.coordinator.state import State
from kohort.errors import ApiError, Broken, ErrorCode
from kohort.records.codec import Record
from kohort.records.share_and_streams import (
    RecordPart,
    ShareOrStreamsRecord,
    share_or_streams_record_or_none,
)
from kohort.terms import GroupId, GroupState, GroupType

_STABLE = 0  # the state of a member, in records of every kind of group


class ShareOrStreamsGroup(Group):
    """A share or streams group."""

    __slots__ = (
        "_current",
        "_epoch",
        "_members",
        "_readable",
        "_target_epoch",
        "_topology_epoch",
        "_validated_epoch",
        "id",
        "protocol_type",
        "type",
    )

    def __init__(self, group_id: GroupId, group_type: GroupType) -> None:
        super().__init__()
        self.id = group_id
        self.type = group_type
        self.protocol_type = group_type.value
        self._epoch = self._target_epoch = 0
        self._topology_epoch: int | None = None
        self._validated_epoch = -1
        self._members: dict[str, None] = {}
        self._current: dict[str, tuple[int, int]] = {}  # epoch and state
        self._readable = True

    @property
    def state(self) -> GroupState:
        if not self._readable:
            return GroupState.STABLE
        if not self._members:
            return GroupState.EMPTY
        if self.type is GroupType.SHARE:
            return GroupState.STABLE
        if self._topology_epoch is None or self._topology_epoch != self._validated_epoch:
            return GroupState.NOT_READY
        if self._epoch > self._target_epoch:
            return GroupState.ASSIGNING
        at_rest = (self._target_epoch, _STABLE)
        if all(self._current.get(member) == at_rest for member in self._members):
            return GroupState.STABLE
        return GroupState.RECONCILING

    def put(self, said: ShareOrStreamsRecord) -> None:
        """Take in what a record says; its tombstone takes that back."""
        self.changed()
        value = said.value
        self._readable = self._readable and said.readable
        if not said.readable:
            return
        match said.part:
            case RecordPart.GROUP:
                self._epoch = value.epoch
                self._validated_epoch = value.validated_topology_epoch
            case RecordPart.TARGET:
                self._target_epoch = 0 if value is None else value.assignment_epoch
            case RecordPart.TOPOLOGY:
                self._topology_epoch = None if value is None else value.epoch
            case RecordPart.MEMBER:
                if value is None:
                    self._members.pop(said.member_id, None)
                else:
                    self._members[said.member_id] = None
            case RecordPart.CURRENT:
                if value is None:
                    self._current.pop(said.member_id, None)
                else:
                    self._current[said.member_id] = value.member_epoch, value.state

    def subscribes_to(self, topic: str) -> bool:
        """Nobody here knows; so its offsets stay."""
        del topic
        return True

    def check_delete(self) -> None:
        if self.state is not GroupState.EMPTY:
            super().check_delete()
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            f"group {self.id} is a {self.type} group, which only a broker with such groups deletes",
        )

    def tombstones(self) -> list[Record]:
        raise Broken(f"{self.type} group {self.id} is deleted, expected its owner to do that")


def replay(state: State, key: bytes, value: bytes | None) -> None:
    """A record of a type that is not ours stays in the log; only its group is noted here."""
    said = share_or_streams_record_or_none(key, value)
    if said is None:
        return
    group = state.groups.get(said.group_id)
    known = group if isinstance(group, ShareOrStreamsGroup) and group.type is said.type else None
    if said.value is not None:
        if known is None:
            known = ShareOrStreamsGroup(said.group_id, said.type)
            state.groups.add(known)
        known.put(said)
    elif known is not None and said.part is RecordPart.GROUP:
        state.groups.remove(known.id)
    elif known is not None:
        known.put(said)
