"""The doors of a shard: calls, records, time, topics."""

from typing import Any

import pytest
from tests.coordinator.classics import commit
from tests.coordinator.consumers import beat, kinds, request, settled
from tests.coordinator.desk import Desk, replay, topic_id, topics

from kohort.assignors import ASSIGNORS
from kohort.config import BrokerConfig
from kohort.coordinator.consumer import metadata
from kohort.coordinator.effects import Call, Client
from kohort.coordinator.group import OtherGroup
from kohort.coordinator.groups import Groups
from kohort.coordinator.shard import CALLS, REPLAYS, Shard
from kohort.coordinator.topics import Topic, Topics
from kohort.errors import ErrorCode
from kohort.records.codec import RECORDS, Unknown
from kohort.terms import GroupState, GroupType, Millis


def test_every_record_has_a_replay() -> None:
    assert set(REPLAYS) == {bytes, *(row.key for row in RECORDS.values())}


def test_every_call_is_an_api() -> None:
    from kohort.wire.apis import APIS

    assert set(CALLS) <= {api.request for api in APIS.values()}


def test_a_refusal_is_an_answer_and_changes_nothing() -> None:
    shard = Desk().shard
    token = object()
    effects = shard.call(Call(token, request("m", 3), 1, Client("c", "/h")), Millis(0))
    assert effects.records == []
    [reply] = effects.replies
    assert reply.token is token
    assert reply.response.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert (len(shard.groups), shard.wake_at()) == (0, None)


def test_what_is_written_is_true_for_the_next_call_of_the_turn() -> None:
    desk = Desk()
    beat(desk, "a", 0)
    assert desk.shard.groups.consumer("g") is not None
    assert beat(desk, "a", 2).error_code == 0


def test_time_moves_nothing_before_it_is_due() -> None:
    desk = Desk()
    beat(desk, "a", 0)
    assert desk.shard.wake_at() == desk.now + 45_000
    assert list(desk.shard.tick(Millis(desk.now + 44_999))) == []
    desk.written()
    desk.wait(45_000)
    assert kinds(desk.written())[0] == "-current"
    assert desk.shard.groups.consumer("g").state is GroupState.EMPTY


def test_offsets_of_deleted_topics_go_with_them() -> None:
    desk = Desk()
    commit(desk, {("orders", 0): 1, ("payments", 1): 2}, generation_id_or_member_epoch=-1)
    desk.written()
    desk.topics_changed(Topics([Topic(topic_id("new"), "orders", 4)]))
    assert [(one.key.topic, one.value) for one in desk.written()] == [
        ("orders", None),
        ("payments", None),
    ]
    assert not desk.shard.offsets.holds("g", "orders", 0)


def test_the_same_topics_change_nothing() -> None:
    desk = Desk()
    settled(desk, "a")
    desk.written()
    desk.topics_changed(topics(orders=4, payments=2))
    assert desk.written() == []
    assert not desk.shard.groups.consumer("g").metadata_stale


def test_changes_of_topics() -> None:
    before = Topics([Topic(b"1" * 16, "same", 1), Topic(b"2" * 16, "gone", 1)])
    after = Topics([Topic(b"1" * 16, "same", 1), Topic(b"3" * 16, "new", 1)])
    assert metadata.changes(before, after) == (["new", "gone"], ["gone"])
    renewed = Topics([Topic(b"9" * 16, "same", 1), Topic(b"2" * 16, "gone", 5)])
    assert metadata.changes(before, renewed) == (["same", "gone"], ["same"])
    assert metadata.changes(before, before) == ([], [])


def test_assignors_are_those_of_the_broker_in_its_order() -> None:
    """K848-051."""
    config = BrokerConfig.of({"group.consumer.assignors": "range,uniform"})
    assert list(Shard(config, lambda: b"").assignors) == ["range", "uniform"]
    config = BrokerConfig.of({"group.consumer.assignors": "range"})
    assert list(Shard(config, lambda: b"").assignors) == ["range"]
    assert list(ASSIGNORS) == ["uniform", "range"]


# -- groups of other kinds


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


def test_groups_by_id_and_by_kind() -> None:
    groups = Groups()
    share = OtherGroup("s", GroupType.SHARE)
    groups.add(share)
    assert ("s" in groups, "t" in groups, len(groups), list(groups)) == (True, False, 1, [share])
    assert (groups.classic("s"), groups.consumer("s"), groups.get("t")) == (None, None, None)
    groups.remove("s")
    groups.remove("s")
    assert list(groups) == []
