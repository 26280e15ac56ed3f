# SPDX-License-Identifier: Apache-2.0
"""What ListGroups is answered, kept until a group may be listed otherwise (KIP-40), with an index
by type and state: a filter costs what it lets through, and no walk over all groups.

Most listings are of groups of which none has changed. They get the same objects again, so that
whoever encodes them can keep the bytes beside them.
"""

from collections.abc import Iterable, Iterator

from kohort.coordinator.group import Group
from kohort.coordinator.groups import Groups
from kohort.terms import GroupId
from kohort.wire.messages.list_groups import ListedGroup

MOST_FILTERS = 4
"""The listings of so many filters are kept: programs that list groups repeat one or two."""

Names = frozenset[str]
"""Names of states or of types, in small letters."""

EVERYTHING: Names = frozenset()
"""The filter that every group passes."""

_Kind = tuple[str, str]
"""A type and a state, in small letters."""


class ShardListing(list[ListedGroup]):
    """Listed groups that nobody changes. `encoded` has their bytes by the version of ListGroups, as
    far as somebody has put them there.
    """

    __slots__ = ("encoded",)

    def __init__(self, groups: Iterable[ListedGroup]) -> None:
        super().__init__(groups)
        self.encoded: dict[int, bytes] = {}


class ShardListings:
    """The listings of one shard. It alone clears the changes of the groups."""

    __slots__ = ("_by_kind", "_everything", "_filtered", "_groups", "_listed", "_overflows")

    def __init__(self) -> None:
        self._listed: dict[GroupId, ListedGroup] = {}  # in the order of the groups
        # In the order in which groups have come to be so; None until somebody filters.
        self._by_kind: dict[_Kind, dict[GroupId, ListedGroup]] | None = None
        self._everything: ShardListing | None = None
        self._filtered: dict[tuple[Names, Names], ShardListing] = {}
        self._overflows = -1

    def of(self, groups: Groups, states: Names, types: Names) -> ShardListing:
        """The groups in one of the states and of one of the types (KIP-518, KIP-848)."""
        if self._overflows != groups.overflows:
            self._begin(groups)
        elif groups.changes:
            self._catch_up(groups)
        if not states and not types:
            if self._everything is None:
                self._everything = ShardListing(self._listed.values())
            return self._everything
        kept = self._filtered.get((states, types))
        if kept is None:
            kept = ShardListing(self._found(states, types))
            if len(self._filtered) == MOST_FILTERS:
                del self._filtered[next(iter(self._filtered))]
            self._filtered[states, types] = kept
        return kept

    def _begin(self, groups: Groups) -> None:
        """Look at every group."""
        self._overflows = groups.overflows
        self._listed = {group.id: listed(group) for group in groups}
        self._by_kind = None
        self._everything = None
        self._filtered.clear()
        groups.changes.clear()

    def _catch_up(self, groups: Groups) -> None:
        """Look at the groups that have changed."""
        touched: dict[_Kind, None] = {}
        for group_id, moved in groups.changes.items():
            group = groups.get(group_id)
            before = self._listed.get(group_id)
            after = None if group is None else listed(group)
            if before == after and not moved:
                continue
            if before is not None and (moved or after is None):
                del self._listed[group_id]
            if after is not None:
                self._listed[group_id] = after
            touched.update(self._replace(group_id, before, after))
        groups.changes.clear()
        if touched:
            self._everything = None
            for states, types in list(self._filtered):
                if any(_passes(kind, states, types) for kind in touched):
                    del self._filtered[states, types]

    def _replace(
        self, group_id: GroupId, before: ListedGroup | None, after: ListedGroup | None
    ) -> Iterator[tuple[_Kind, None]]:
        """Change the index; the kinds of which the groups are other ones now."""
        for group in (before, after):
            if group is None:
                continue
            kind = _kind_of(group)
            yield kind, None
            if self._by_kind is None:
                continue
            if group is before:
                del self._by_kind[kind][group_id]
            else:
                self._by_kind.setdefault(kind, {})[group_id] = group

    def _found(self, states: Names, types: Names) -> Iterator[ListedGroup]:
        if self._by_kind is None:
            self._by_kind = {}
            for group_id, group in self._listed.items():
                self._by_kind.setdefault(_kind_of(group), {})[group_id] = group
        for kind, groups in self._by_kind.items():
            if _passes(kind, states, types):
                yield from groups.values()


def listed(group: Group) -> ListedGroup:
    """A group as ListGroups tells it."""
    return ListedGroup(
        group_id=group.id,
        protocol_type=group.protocol_type,
        group_state=group.state,
        group_type=group.type,
    )


def _kind_of(group: ListedGroup) -> _Kind:
    return group.group_type.lower(), group.group_state.lower()


def _passes(kind: _Kind, states: Names, types: Names) -> bool:
    group_type, state = kind
    return (not states or state in states) and (not types or group_type in types)
