# SPDX-License-Identifier: Apache-2.0
"""Every group of a shard, whatever its kind: an id belongs to one group at a time."""

from collections.abc import Iterator

from kohort.coordinator.classic.group import ClassicGroup
from kohort.coordinator.consumer.group import ConsumerGroup
from kohort.coordinator.group import Group
from kohort.terms import GroupId, Millis

MOST_GONE = 1000
"""So many ids of groups that are gone may be among the changes that nobody has asked for."""


class Groups:
    """The groups by id, iterated in the order in which they came.

    `changes` has the ids of groups that were changed, made or removed since somebody cleared it:
    true for those that have another place in that order, or none. Where they would be too many they
    are forgotten, and `overflows` is another number.
    """

    __slots__ = ("by_id", "changes", "get", "made", "made_by_offsets", "overflows")

    def __init__(self) -> None:
        self.by_id: dict[GroupId, Group] = {}
        self.get = self.by_id.get  # asked by every request
        self.made = 0  # ever, so a group that is made anew is told from the old one
        self.made_by_offsets: list[GroupId] = []  # and not counted yet
        self.changes: dict[GroupId, bool] = {}
        self.overflows = 0

    def __len__(self) -> int:
        return len(self.by_id)

    def __iter__(self) -> Iterator[Group]:
        return iter(self.by_id.values())

    def __contains__(self, group_id: GroupId) -> bool:
        return group_id in self.by_id

    def classic(self, group_id: GroupId) -> ClassicGroup | None:
        """The group, when it is a classic one."""
        group = self.by_id.get(group_id)
        return group if isinstance(group, ClassicGroup) else None

    def consumer(self, group_id: GroupId) -> ConsumerGroup | None:
        """The group, when it is a consumer group."""
        group = self.by_id.get(group_id)
        return group if isinstance(group, ConsumerGroup) else None

    def all_classic(self) -> list[ClassicGroup]:
        return [group for group in self if isinstance(group, ClassicGroup)]

    def all_consumer(self) -> list[ConsumerGroup]:
        return [group for group in self if isinstance(group, ConsumerGroup)]

    def add(self, group: Group) -> None:
        """Take in a group, in the place of any other group with its id."""
        former = self.by_id.get(group.id)
        if former is not None:
            former.changed()
            former.changes = None
        else:
            self._note_move(group.id)
        self.by_id[group.id] = group
        self.made += 1
        group.changes = self.changes

    def add_for_offsets(self, group_id: GroupId, now: Millis) -> None:
        """Make a group that only holds offsets: a classic one that nobody has joined."""
        self.add(ClassicGroup(group_id, now))
        self.made_by_offsets.append(group_id)

    def remove(self, group_id: GroupId) -> None:
        """Forget a group; one that is not there is forgotten already."""
        group = self.by_id.pop(group_id, None)
        if group is not None:
            group.changed()
            group.changes = None
            self._note_move(group_id)

    def _note_move(self, group_id: GroupId) -> None:
        self.changes.pop(group_id, None)  # those that have moved are in the order of the groups
        self.changes[group_id] = True
        if len(self.changes) > len(self.by_id) + MOST_GONE:
            self.changes.clear()
            self.overflows += 1
