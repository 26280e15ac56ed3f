"""Every group of a shard, whatever its kind: an id belongs to one group at a time."""

from collections.abc import Iterator

from kohort.coordinator.classic.group import ClassicGroup
from kohort.coordinator.consumer.group import ConsumerGroup
from kohort.coordinator.group import Group
from kohort.terms import GroupId, Millis


class Groups:
    """The groups by id, iterated in the order in which they came."""

    __slots__ = ("by_id", "get", "made", "made_by_offsets", "revision")

    def __init__(self) -> None:
        self.by_id: dict[GroupId, Group] = {}
        self.get = self.by_id.get  # asked by every request
        self.made = 0  # ever, so a group that is made anew is told from the old one
        self.made_by_offsets: list[GroupId] = []  # and not counted yet
        self.revision = 0  # another one whenever a group may be listed otherwise

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
        self.by_id[group.id] = group
        self.made += 1
        self.revision += 1

    def add_for_offsets(self, group_id: GroupId, now: Millis) -> None:
        """Make a group that only holds offsets: a classic one that nobody has joined."""
        self.add(ClassicGroup(group_id, now))
        self.made_by_offsets.append(group_id)

    def remove(self, group_id: GroupId) -> None:
        """Forget a group; one that is not there is forgotten already."""
        self.by_id.pop(group_id, None)
        self.revision += 1
