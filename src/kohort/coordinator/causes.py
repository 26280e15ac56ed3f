"""Why a group rebalances, from the step that knows it to the record that tells the outcome.

A step's notes name causes. A record of a consumer group is written with its causes in the same
step; the outcome of a classic rebalance comes later, so that its causes are kept until then. They
are soft: a restart forgets them, and the record then names fewer.
"""

from typing import Any

from kohort.coordinator.effects import Effects, Note
from kohort.records.causes import MOST, Because, Headers, headers_of
from kohort.records.schemas import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupTargetAssignmentMemberKey,
    GroupMetadataKey,
)
from kohort.terms import GroupId

_OF_A_MEMBER = frozenset(
    (
        ConsumerGroupMemberMetadataKey,
        ConsumerGroupTargetAssignmentMemberKey,
        ConsumerGroupCurrentMemberAssignmentKey,
    )
)


class Causes:
    """The causes of classic rebalances that are under way, by group."""

    def __init__(self) -> None:
        self._open: dict[GroupId, list[Note]] = {}

    def headers(self, step: Effects) -> dict[int, Headers]:
        """The headers of a step's records, by their place among them. A step that ends a classic
        rebalance is noted to have the causes that were known before.
        """
        named = {id(note): note for note in step.notes if note.cause is not None}
        waiting = dict(named)
        found: dict[int, Headers] = {}
        for place, record in enumerate(step.records):
            key = record.key
            causes = [note for note in named.values() if _is_about(note, key, record.value)]
            for note in causes:
                waiting.pop(id(note), None)
            if type(key) is GroupMetadataKey:
                causes = (
                    self._ended(GroupId(key.group), step, told=record.value is not None) + causes
                )
            if causes:
                found[place] = headers_of(
                    Because(note.cause or "", note.member_id, note.reason) for note in causes
                )
        for note in waiting.values():
            kept = self._open.setdefault(note.group_id, [])
            if len(kept) < MOST:
                kept.append(note)
        return found

    def _ended(self, group_id: GroupId, step: Effects, *, told: bool) -> list[Note]:
        """The causes of a classic rebalance that this step ends; the broker's log is told them."""
        before = self._open.pop(group_id, [])
        if before and told:
            texts = dict.fromkeys(note.text for note in before)
            step.notes.append(Note(group_id, f"because {'; '.join(texts)}"))
        return before


def _is_about(note: Note, key: Any, value: Any) -> bool:
    """Whether a record is the outcome of what is noted."""
    kind = type(key)
    if kind is GroupMetadataKey:
        return bool(note.group_id == key.group)
    if kind is ConsumerGroupMetadataKey:
        return bool(note.group_id == key.group_id)
    return (
        kind in _OF_A_MEMBER
        and value is None
        and note.group_id == key.group_id
        and note.member_id == key.member_id
    )
