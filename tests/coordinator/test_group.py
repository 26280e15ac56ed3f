"""Groups of kinds that only other brokers have."""

from typing import Any

import pytest
from tests.coordinator.consumers import beat
from tests.coordinator.desk import Desk, replay

from kohort.coordinator.group import OtherGroup
from kohort.errors import ErrorCode
from kohort.records.codec import Unknown
from kohort.terms import GroupState, GroupType


def foreign(kind: int, value: bytes | None = b"") -> Unknown:
    return Unknown(kind, kind.to_bytes(2) + b"\x00\x01g", value)


@pytest.mark.parametrize(("kind", "named"), [(11, GroupType.SHARE), (17, GroupType.STREAMS)])
def test_groups_of_other_brokers_are_noted(kind: int, named: GroupType) -> None:
    shard = Desk().shard
    replay(shard, foreign(kind))
    group: Any = shard.groups.get("g")
    assert isinstance(group, OtherGroup)
    assert (group.id, group.type, group.protocol_type) == ("g", named, named.value)
    assert group.state is GroupState.STABLE
    replay(shard, foreign(kind, None))
    assert shard.groups.get("g") is None


def test_what_else_is_unknown_is_passed_over() -> None:
    shard = Desk().shard
    replay(shard, foreign(10))
    replay(shard, foreign(20000, None))
    replay(shard, foreign(11, None))
    assert len(shard.groups) == 0


def test_a_share_group_is_no_consumer_group() -> None:
    desk = Desk()
    replay(desk.shard, foreign(11))
    answer = beat(desk, "a", 0)
    assert answer.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert answer.error_message == "Group g is not a consumer group."
