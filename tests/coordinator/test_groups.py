"""The groups of a shard, by id and by kind."""

from kohort.coordinator.group import OtherGroup
from kohort.coordinator.groups import Groups
from kohort.terms import GroupType


def test_groups_by_id_and_by_kind() -> None:
    groups = Groups()
    share = OtherGroup("s", GroupType.SHARE)
    groups.add(share)
    assert ("s" in groups, "t" in groups, len(groups), list(groups)) == (True, False, 1, [share])
    assert (groups.classic("s"), groups.consumer("s"), groups.get("t")) == (None, None, None)
    groups.remove("s")
    groups.remove("s")
    assert list(groups) == []
