# SPDX-License-Identifier: Apache-2.0
"""How many groups a shard has, by type and state: counted as they change, never by a walk."""

from kohort.coordinator.group import Group
from kohort.coordinator.groups import Groups
from kohort.terms import GroupId, GroupState, GroupType

TypeAndState = tuple[GroupType, GroupState]
"""The type of a group, and the state that it was last seen in."""


class GroupGauges:
    """The groups as they were when they were last looked at. Whoever changes one has it looked at
    again before the turn is over.
    """

    __slots__ = ("_seen", "counts")

    def __init__(self) -> None:
        self.counts: dict[TypeAndState, int] = {}
        self._seen: dict[GroupId, TypeAndState] = {}

    def begin(self, groups: Groups) -> None:
        """Begin with the groups that a log has brought back."""
        self.counts.clear()
        self._seen = {group.id: (group.type, group.state) for group in groups}
        for type_and_state in self._seen.values():
            self.counts[type_and_state] = self.counts.get(type_and_state, 0) + 1

    def last_seen(self, group_id: GroupId) -> TypeAndState | None:
        """The standing of a group as last seen; None for one that was not there."""
        return self._seen.get(group_id)

    def look(self, group_id: GroupId, group: Group | None) -> TypeAndState | None:
        """Count a group as it is now, None when it is gone. Its standing now."""
        before = self._seen.get(group_id)
        after = None if group is None else (group.type, group.state)
        if before == after:
            return after
        counts = self.counts
        if before is not None:
            counts[before] -= 1
        if after is None:
            del self._seen[group_id]
        else:
            self._seen[group_id] = after
            counts[after] = counts.get(after, 0) + 1
        return after
