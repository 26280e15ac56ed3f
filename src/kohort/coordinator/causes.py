# SPDX-License-Identifier: Apache-2.0
"""Why a group rebalances, from the step that knows it to the record that tells the outcome.

A step's notes name causes. A record of a consumer group is written with its causes in the same
step; the outcome of a classic rebalance comes later, so that its causes are kept until then. They
are soft: a restart forgets them, and the record then names fewer.
"""

from kohort.coordinator.groups import Groups
from kohort.machines.effects import Effects, GroupEvent
from kohort.records.causes import MOST, Because, Cause, Headers, headers_of
from kohort.records.schemas import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupTargetAssignmentMemberKey,
    GroupMetadataKey,
)
from kohort.terms import GroupId, MemberId

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
        self._open: dict[GroupId, list[GroupEvent]] = {}

    def headers(self, groups: Groups, step: Effects) -> dict[int, Headers]:
        """The headers of a step's records, by their place among them. A step that ends a classic
        rebalance is noted to have the causes that were known before.
        """
        of_group: dict[GroupId, list[GroupEvent]] = {}
        of_member: dict[tuple[GroupId, MemberId | None], list[GroupEvent]] = {}
        for event in step.events:
            if event.cause is not None:
                of_group.setdefault(event.group_id, []).append(event)
                of_member.setdefault((event.group_id, event.member_id), []).append(event)
        found: dict[int, Headers] = {}
        told = set()
        for place, record in enumerate(step.records):
            key = record.key
            kind = type(key)
            causes: list[GroupEvent] = []
            if kind is GroupMetadataKey:
                group_id = GroupId(key.group)
                before = self._ended(group_id, step, told=record.value is not None)
                causes = before + of_group.get(group_id, [])
                told.add(group_id)
            elif kind is ConsumerGroupMetadataKey:
                causes = of_group.get(GroupId(key.group_id), [])
            elif kind in _OF_A_MEMBER and record.value is None:
                causes = of_member.get((GroupId(key.group_id), MemberId(key.member_id)), [])
            if causes:
                found[place] = headers_of(
                    Because(event.cause or "", event.member_id, event.reason) for event in causes
                )
        for group_id, events in of_group.items():
            if group_id not in told and groups.classic(group_id) is not None:
                self._keep(group_id, events)
        return found

    def _keep(self, group_id: GroupId, events: list[GroupEvent]) -> None:
        """Keep the causes of a rebalance that has begun. Offsets that expire begin none."""
        events = [event for event in events if event.cause is not Cause.EXPIRY]
        if events:
            kept = self._open.setdefault(group_id, [])
            kept += events[: MOST - len(kept)]

    def _ended(self, group_id: GroupId, step: Effects, *, told: bool) -> list[GroupEvent]:
        """The causes of a classic rebalance that this step ends; the broker's log is told them."""
        before = self._open.pop(group_id, [])
        if before and told:
            texts = dict.fromkeys(event.text for event in before)
            step.events.append(GroupEvent(group_id, f"because {'; '.join(texts)}"))
        return before
