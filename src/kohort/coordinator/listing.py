"""What ListGroups is answered, kept until a group of the shard may be listed otherwise (KIP-40).

Most listings are of groups of which none has changed. They get the same objects again, so that
whoever encodes them can keep the bytes beside them.
"""

from collections.abc import Iterable

from kohort.coordinator.group import Group
from kohort.coordinator.groups import Groups
from kohort.wire.messages.list_groups import ListedGroup

MOST_FILTERS = 4
"""The listings of so many filters are kept: programs that list groups repeat one or two."""

Names = frozenset[str]
"""Names of states or of types, in small letters."""

EVERYTHING: Names = frozenset()
"""The filter that every group passes."""


class ShardListing(list[ListedGroup]):
    """Listed groups that nobody changes. `encoded` has their bytes by the version of ListGroups, as
    far as somebody has put them there.
    """

    __slots__ = ("encoded",)

    def __init__(self, groups: Iterable[ListedGroup]) -> None:
        super().__init__(groups)
        self.encoded: dict[int, bytes] = {}


class ShardListings:
    """The listings of one shard, of the groups as they were at a revision."""

    __slots__ = ("_everything", "_filtered", "_revision")

    def __init__(self) -> None:
        self._everything = ShardListing([])
        self._filtered: dict[tuple[Names, Names], ShardListing] = {}
        self._revision = -1

    def of(self, groups: Groups, states: Names, types: Names) -> ShardListing:
        """The groups in one of the states and of one of the types (KIP-518, KIP-848)."""
        if self._revision != groups.revision:
            self._everything = ShardListing(map(_listed, groups))
            self._filtered.clear()
            self._revision = groups.revision
        if not states and not types:
            return self._everything
        kept = self._filtered.get((states, types))
        if kept is None:
            kept = ShardListing(
                group
                for group in self._everything
                if (not states or group.group_state.lower() in states)
                and (not types or group.group_type.lower() in types)
            )
            if len(self._filtered) == MOST_FILTERS:
                del self._filtered[next(iter(self._filtered))]
            self._filtered[states, types] = kept
        return kept


def _listed(group: Group) -> ListedGroup:
    return ListedGroup(
        group_id=group.id,
        protocol_type=group.protocol_type,
        group_state=group.state,
        group_type=group.type,
    )
