# SPDX-License-Identifier: Apache-2.0
"""The dispatchers of a shard: calls, records, time, topics."""

from tests.coordinator.classics import commit
from tests.coordinator.consumers import beat, kinds, request
from tests.coordinator.desk import Desk, topic_id

from kohort.assignors import ASSIGNORS
from kohort.config import BrokerConfig
from kohort.coordinator import group_settings
from kohort.coordinator.shard import CALLS, REPLAYS, Shard
from kohort.errors import ErrorCode
from kohort.machines.deadlines import AGAIN_MS
from kohort.machines.effects import Call, Client
from kohort.machines.topics import Topic, Topics
from kohort.records.codec import OWN_RECORDS, RECORDS
from kohort.terms import GroupState, Millis


def test_every_record_has_a_replay() -> None:
    assert set(REPLAYS) == {bytes, *(row.key for row in (RECORDS | OWN_RECORDS).values())}


def test_every_call_is_an_api() -> None:
    from kohort.coordinator.offsets.transactional import EndOffsets
    from kohort.wire.apis import APIS

    # The end of a transaction comes from its coordinator, not from a client.
    apis = {api.request for api in APIS.values()}
    assert {call for call in CALLS if call not in apis} == {
        EndOffsets,
        group_settings.AlterGroupSettings,
        group_settings.DescribeGroupSettings,
        group_settings.ListConfiguredGroups,
    }, "what several APIs ask of a shard"


def test_a_refusal_is_an_answer_and_changes_nothing() -> None:
    shard = Desk().shard
    token = object()
    effects = shard.call(Call(token, request("m", 3), 1, Client("c", "/h")), Millis(0))
    assert effects.records == []
    [reply] = effects.replies
    assert reply.token is token
    assert reply.response.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert (len(shard.groups), len(shard.deadlines)) == (0, 1)  # that of expiry


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


def test_assignors_are_those_of_the_broker_in_its_order() -> None:
    """K848-051."""
    config = BrokerConfig.of({"group.consumer.assignors": "range,uniform"})
    assert list(Shard(config, lambda: b"").assignors) == ["range", "uniform"]
    config = BrokerConfig.of({"group.consumer.assignors": "range"})
    assert list(Shard(config, lambda: b"").assignors) == ["range"]
    assert list(ASSIGNORS) == ["uniform", "range"]


def test_a_deadline_that_cannot_be_met_comes_again() -> None:
    desk = Desk()
    beat(desk, "a", 0)
    desk.driver.limit_bytes = lambda: 70
    over = Millis(desk.now + 45_000)
    desk.driver.turn(over)
    assert "a deadline has failed" in desk.told_lines.errors.pop()
    assert "a" in desk.shard.groups.consumer("g").members
    assert desk.driver.wake_at() == over + AGAIN_MS

    desk.driver.limit_bytes = lambda: 1 << 20
    desk.wait(45_000 + AGAIN_MS)
    assert desk.shard.groups.consumer("g").state is GroupState.EMPTY
