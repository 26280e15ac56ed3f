# SPDX-License-Identifier: Apache-2.0
"""OffsetCommit: who may, and what is written."""

import pytest
from tests.coordinator.classics import (
    QUICK,
    commit,
    commit_request,
    join,
    leave,
    newcomer,
    stable,
    sync,
)
from tests.coordinator.committed import FIRST, NOTHING, G, delete, fetched
from tests.coordinator.consumers import beat, given
from tests.coordinator.desk import Desk, topic_id

from kohort.coordinator.share_and_streams import ShareOrStreamsGroup
from kohort.errors import ErrorCode
from kohort.terms import NO_TOPIC_ID, GroupType
from kohort.wire.messages.offset_commit import (
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)


@pytest.mark.parametrize(
    ("fields", "version", "code"),
    [
        ({}, 9, ErrorCode.NONE),
        ({"member_id": "tool"}, 9, ErrorCode.NONE),
        ({"group_instance_id": "i"}, 9, ErrorCode.NONE),
        ({"generation_id_or_member_epoch": -2}, 9, ErrorCode.NONE),
        ({"generation_id_or_member_epoch": 0}, 9, ErrorCode.GROUP_ID_NOT_FOUND),
        ({"generation_id_or_member_epoch": 5}, 10, ErrorCode.GROUP_ID_NOT_FOUND),
        ({"generation_id_or_member_epoch": 5}, 8, ErrorCode.ILLEGAL_GENERATION),
        ({"group_id": ""}, 9, ErrorCode.NONE),
    ],
)
def test_a_group_that_is_not_there(fields, version, code):
    desk = Desk()
    assert commit(desk, {FIRST: 5}, version, **fields) == {FIRST: code}
    assert len(desk.log) == len(desk.shard.groups) == (code == ErrorCode.NONE)


@pytest.mark.parametrize(
    ("member_id", "generation", "code"),
    [
        ("leader", 1, ErrorCode.NONE),
        ("leader", 0, ErrorCode.ILLEGAL_GENERATION),
        ("leader", -1, ErrorCode.ILLEGAL_GENERATION),
        ("who", 1, ErrorCode.UNKNOWN_MEMBER_ID),
        ("", 1, ErrorCode.UNKNOWN_MEMBER_ID),
        ("", -1, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_a_stable_group(member_id, generation, code):
    desk = Desk(**QUICK)
    (leader,) = stable(desk)
    fields = {
        "member_id": leader if member_id == "leader" else member_id,
        "generation_id_or_member_epoch": generation,
    }
    assert commit(desk, {FIRST: 5}, **fields) == {FIRST: code}


def test_members_may_commit_before_the_next_generation_but_not_while_it_begins():
    desk = Desk(**QUICK)
    (leader,) = stable(desk)
    newcomer(desk)
    as_leader = {"member_id": leader, "generation_id_or_member_epoch": 1}
    assert commit(desk, {FIRST: 5}, **as_leader) == {FIRST: 0}
    join(desk, leader)
    as_leader["generation_id_or_member_epoch"] = 2
    assert commit(desk, {FIRST: 6}, **as_leader) == {FIRST: ErrorCode.REBALANCE_IN_PROGRESS}
    sync(desk, leader, 2)
    assert commit(desk, {FIRST: 6}, **as_leader) == {FIRST: 0}


def test_an_empty_group_takes_offsets_from_tools_only():
    desk = Desk(**QUICK)
    (leader,) = stable(desk)
    leave(desk, leader)
    assert commit(desk, {FIRST: 5}) == {FIRST: 0}
    codes = commit(desk, {FIRST: 5}, member_id=leader, generation_id_or_member_epoch=1)
    assert codes == {FIRST: ErrorCode.UNKNOWN_MEMBER_ID}


def test_a_commit_keeps_a_session():
    desk = Desk(**QUICK)
    (leader,) = stable(desk)
    for number in range(3):
        desk.wait(9_999)
        codes = commit(desk, {FIRST: number}, member_id=leader, generation_id_or_member_epoch=1)
        assert codes == {FIRST: 0}


@pytest.mark.parametrize(
    ("member_id", "epoch", "version", "code"),
    [
        ("m", 2, 9, ErrorCode.NONE),
        ("m", 2, 8, ErrorCode.UNSUPPORTED_VERSION),
        ("m", 3, 9, ErrorCode.STALE_MEMBER_EPOCH),
        ("m", 1, 9, ErrorCode.STALE_MEMBER_EPOCH),
        ("m", -1, 9, ErrorCode.STALE_MEMBER_EPOCH),
        ("who", 2, 9, ErrorCode.UNKNOWN_MEMBER_ID),
        ("", -1, 9, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_a_consumer_group(member_id, epoch, version, code):
    """K848-100, K848-102, K848-105."""
    desk = Desk()
    beat(desk, "m", 0)
    caller = {"member_id": member_id, "generation_id_or_member_epoch": epoch}
    assert commit(desk, {FIRST: 5}, version, **caller) == {FIRST: code}


def test_an_older_epoch_will_do_for_partitions_held_since_then():
    """K848-099: KIP-1251: the commit was on its way while the epoch moved on."""
    desk = Desk()
    beat(desk, "a", 0)
    beat(desk, "b", 0)
    kept = given(beat(desk, "a", 2, owned={"orders": [0, 1, 2, 3]}))
    beat(desk, "a", 2, owned=kept)
    member = desk.shard.groups.consumer(G).members["a"]
    assert member.epoch == 3
    (held,) = member.assigned.values()
    mine, other = next(iter(held)), next(one for one in range(4) if one not in held)
    caller = {"member_id": "a", "generation_id_or_member_epoch": 2}
    assert commit(desk, {("orders", mine): 5}, **caller) == {("orders", mine): 0}
    refused = commit(desk, {("orders", mine): 6, ("orders", other): 6}, **caller)
    assert set(refused.values()) == {ErrorCode.STALE_MEMBER_EPOCH}


def test_metadata_that_is_too_long_is_found_before_an_older_epoch():
    """As upstream: the epoch counts only for partitions that could be committed at all."""
    desk = Desk()
    beat(desk, "m", 0)
    caller = {"member_id": "m", "generation_id_or_member_epoch": 1}
    too_long = OffsetCommitRequestPartition(
        partition_index=1, committed_offset=1, committed_metadata="x" * 4097
    )
    request = commit_request({}, **caller)
    request.topics = [OffsetCommitRequestTopic(name="orders", partitions=[too_long])]
    (refused,) = desk.told(request, 9).topics[0].partitions
    assert refused.error_code == ErrorCode.OFFSET_METADATA_TOO_LARGE

    request = commit_request({FIRST: 1}, **caller)
    request.topics[0].partitions.append(too_long)
    codes = [one.error_code for one in desk.told(request, 9).topics[0].partitions]
    assert codes == [ErrorCode.STALE_MEMBER_EPOCH] * 2
    assert [record for record in desk.log if hasattr(record.key, "partition")] == []


def test_a_share_group_has_no_committed_offsets():
    desk = Desk()
    desk.shard.groups.add(ShareOrStreamsGroup(G, GroupType.SHARE))
    desk.shard.event_log.begin(desk.shard.groups)
    assert commit(desk, {FIRST: 5}) == {FIRST: ErrorCode.GROUP_ID_NOT_FOUND}
    assert delete(desk, FIRST) == ErrorCode.GROUP_ID_NOT_FOUND
    assert fetched(desk, wanted=[FIRST]) == {FIRST: NOTHING}


def test_one_record_for_each_partition():
    desk = Desk()
    codes = commit(desk, {FIRST: 5, ("orders", 3): 0, ("payments", 1): -5}, metadata="why")
    assert set(codes.values()) == {0}
    assert [
        (record.key.topic, record.key.partition, record.value.offset) for record in desk.log
    ] == [("orders", 0, 5), ("orders", 3, 0), ("payments", 1, -5)]
    value = desk.log[0].value
    assert (value.metadata, value.leader_epoch, value.commit_timestamp) == ("why", -1, desk.now)
    assert (value.expire_timestamp, value.topic_id) == (-1, topic_id("orders"))


def test_a_topic_without_an_id_is_committed_without_one():
    desk = Desk()
    commit(desk, {("gone", 0): 1})
    assert desk.log[0].value.topic_id == NO_TOPIC_ID
    assert fetched(desk) == {("gone", 0): (1, -1, "", 0)}


def test_a_retention_time_becomes_an_expiry():
    desk = Desk()
    commit(desk, {FIRST: 1}, 4, retention_time_ms=1000)
    assert desk.log[0].value.expire_timestamp == desk.now + 1000
    assert desk.shard.offsets.of(G)["orders"].expires == {0: desk.now + 1000}
    commit(desk, {FIRST: 2}, 4, retention_time_ms=2**63 - 1)
    assert desk.log[1].value.expire_timestamp == 2**63 - 1
    commit(desk, {FIRST: 2}, 4, retention_time_ms=-1)
    assert desk.shard.offsets.of(G)["orders"].expires == {}


@pytest.mark.parametrize(
    ("metadata", "accepted"),
    [
        pytest.param("x" * 4096, True, id="as long as allowed"),
        pytest.param("x" * 4097, False, id="one more"),
        pytest.param("é" * 4096, True, id="units, not bytes"),
        pytest.param("\U0001f600" * 2048, True, id="two units each"),
        pytest.param("\U0001f600" * 2048 + "x", False, id="two units each, one more"),
        pytest.param(None, True, id="null"),
    ],
)
def test_the_length_of_metadata(metadata, accepted):
    desk = Desk()
    request = commit_request({FIRST: 1, ("orders", 1): 2})
    request.topics[0].partitions[0].committed_metadata = metadata
    first, second = desk.told(request, 9).topics[0].partitions
    assert first.error_code == (0 if accepted else ErrorCode.OFFSET_METADATA_TOO_LARGE)
    assert second.error_code == 0
    assert len(desk.log) == 1 + accepted
    if accepted:
        assert fetched(desk)[FIRST][2] == (metadata or "")


def test_a_partition_named_twice_is_answered_twice_and_the_last_value_wins():
    desk = Desk()
    request = commit_request({FIRST: 1})
    request.topics += commit_request({FIRST: 2}).topics
    assert [one.partitions[0].error_code for one in desk.told(request, 9).topics] == [0, 0]
    assert fetched(desk)[FIRST][0] == 2


def test_no_topics():
    desk = Desk()
    assert commit(desk, {}) == {}
    assert desk.log == []
