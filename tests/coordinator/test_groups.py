# SPDX-License-Identifier: Apache-2.0
"""The groups of a shard, by id and by kind."""

from kohort.coordinator.classic.group import ClassicGroup
from kohort.coordinator.groups import Groups
from kohort.coordinator.share_and_streams import ShareOrStreamsGroup
from kohort.terms import GroupId, GroupType, Millis


def test_groups_by_id_and_by_kind() -> None:
    groups = Groups()
    share = ShareOrStreamsGroup("s", GroupType.SHARE)
    groups.add(share)
    assert ("s" in groups, "t" in groups, len(groups), list(groups)) == (True, False, 1, [share])
    assert (groups.classic("s"), groups.consumer("s"), groups.get("t")) == (None, None, None)
    groups.remove("s")
    groups.remove("s")
    assert list(groups) == []
    groups.add(share)
    assert groups.made == 2


def test_a_group_that_only_holds_offsets() -> None:
    groups = Groups()
    groups.add_for_offsets(GroupId("g"), Millis(7))
    group = groups.classic(GroupId("g"))
    assert isinstance(group, ClassicGroup)
    assert (group.is_simple, group.state_timestamp) == (True, 7)
