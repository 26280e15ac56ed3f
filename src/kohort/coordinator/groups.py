"""Every group of a shard, whatever its kind: an id belongs to one group at a time."""

from collections.abc import Iterator

from kohort.coordinator.classic.group import ClassicGroup
from kohort.coordinator.consumer.group import ConsumerGroup
from kohort.terms import GroupId, GroupState, GroupType


class OtherGroup:
    """A share or streams group that another broker wrote. We know that it is there, and leave it
    alone.

    Its state is not known; Stable keeps it from being taken for one that may be deleted.
    """

    __slots__ = ("id", "type")

    state = GroupState.STABLE

    def __init__(self, group_id: GroupId, group_type: GroupType) -> None:
        self.id = group_id
        self.type = group_type

    @property
    def protocol_type(self) -> str:
        return self.type.value


Group = ClassicGroup | ConsumerGroup | OtherGroup


class Groups:
    """The groups by id, iterated in the order in which they came."""

    __slots__ = ("by_id", "get")

    def __init__(self) -> None:
        self.by_id: dict[GroupId, Group] = {}
        self.get = self.by_id.get  # asked by every request

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

    def add(self, group: Group) -> None:
        """Take in a group. What had its id before is replaced."""
        self.by_id[group.id] = group

    def remove(self, group_id: GroupId) -> None:
        """Forget a group; one that is not there is forgotten already."""
        self.by_id.pop(group_id, None)
