# SPDX-License-Identifier: Apache-2.0
"""Offsets go with their topics."""

import pytest
from tests.coordinator.classics import commit, commit_request
from tests.coordinator.committed import FIRST, Log, fetched
from tests.coordinator.desk import Desk, topic_id, topics

from kohort.coordinator.offsets import cleanup
from kohort.coordinator.offsets.cleanup import of_deleted_topics, of_former_topics
from kohort.machines.effects import Producer
from kohort.machines.topics import Topic, Topics
from kohort.records.codec import Record
from kohort.records.schemas import OffsetCommitKey, OffsetCommitValue
from kohort.terms import TopicId
from kohort.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestTopic,
)
from kohort.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequestPartition as OffsetCommitPartition,
)


def test_a_deleted_topic_takes_its_offsets_along():
    desk = Desk()
    for name in ("g", "h"):
        commit(desk, {FIRST: 5, ("payments", 1): 6}, group_id=name)
    desk.written()
    desk.topics_changed(topics(payments=2))
    assert {(record.key.group, record.key.topic, record.value) for record in desk.written()} == {
        ("g", "orders", None),
        ("h", "orders", None),
    }
    assert fetched(desk) == {("payments", 1): (6, -1, "", 0)}
    assert list(of_deleted_topics(desk.shard, {"orders": topic_id("orders")}, desk.now)) == []


def test_groups_that_have_nothing_of_a_deleted_topic_are_looked_at_in_slices(monkeypatch):
    """There may be hundreds of thousands, and calls are answered between two slices."""
    monkeypatch.setattr(cleanup, "SLICE_TOPICS", 40)
    desk = Desk()
    for number in range(4):
        commit(desk, {FIRST: 5}, group_id=f"g{number}")
    commit(desk, {("payments", 1): 6}, group_id="last")
    slices = of_deleted_topics(desk.shard, {"payments": topic_id("payments")}, desk.now)
    assert [len(effects.records) for effects in slices] == [0, 0, 1]
    slices = of_former_topics(desk.shard, ["payments"])
    assert [len(effects.records) for effects in slices] == [0, 0]


def remade(name="orders"):
    """The topics, with one of them made anew under its name."""
    others = [
        topic for topic in topics(orders=4, payments=2).by_name.values() if topic.name != name
    ]
    return Topics([*others, Topic(TopicId(b"another".ljust(16)), name, 4)])


def commit_with_ids(desk, names):
    """What members commit since v10; the old way names no topic."""
    for name in names:
        record = Record(
            OffsetCommitKey(group="g", topic=name, partition=1),
            OffsetCommitValue(offset=5, metadata="", commit_timestamp=1, topic_id=topic_id(name)),
        )
        desk.write(record)


def test_a_topic_made_anew_that_is_named_twice_keeps_both_commits():
    """Its former offsets may be many and not all be gone yet. They end once."""
    desk = Desk()
    commit(desk, {("orders", 0): 5, ("orders", 1): 6, ("orders", 2): 7})
    desk.shard.topics = remade()
    request = commit_request({("orders", 0): 8})
    request.topics += commit_request({("orders", 1): 9}).topics
    desk.told(request, 9)
    assert fetched(desk) == {("orders", 0): (8, -1, "", 0), ("orders", 1): (9, -1, "", 0)}
    assert list(of_former_topics(desk.shard, ["orders"])) == []


@pytest.mark.parametrize("ok", [True, False])
def test_a_transaction_does_not_take_over_the_offsets_of_a_former_topic(ok):
    """They would be taken for those of the topic that has the name now, and stay."""
    desk = Desk()
    commit(desk, {("orders", 0): 5, ("orders", 1): 6})
    desk.shard.topics = remade()
    one = OffsetCommitPartition(partition_index=0, committed_offset=8, committed_metadata="")
    request = TxnOffsetCommitRequest(
        transactional_id="t",
        group_id="g",
        producer_id=1,
        producer_epoch=0,
        topics=[TxnOffsetCommitRequestTopic(name="orders", partitions=[one])],
    )
    assert desk.told(request, 3).topics[0].partitions[0].error_code == 0
    desk.end_transaction(Producer(1, 0), commit=ok)
    assert fetched(desk) == ({("orders", 0): (8, -1, "", 0)} if ok else {})


def test_a_topic_made_anew_while_nobody_was_here_has_no_offsets():
    desk = Desk()
    commit_with_ids(desk, ["orders", "payments", "elsewhere"])
    commit(desk, {("old", 0): 1})
    desk.written()
    desk.known = remade()
    desk.restart()
    assert [
        (record.key.topic, record.key.partition, record.value) for record in desk.written()
    ] == [("orders", 1, None)]
    assert list(fetched(desk)) == [("payments", 1), ("elsewhere", 1), ("old", 0)]
    desk.restart()
    assert desk.written() == []


def test_a_topic_that_comes_back_after_a_while_has_no_offsets():
    desk = Desk(known=topics(payments=2))
    commit_with_ids(desk, ["orders", "payments"])
    desk.topics_changed(remade())
    assert list(fetched(desk)) == [("payments", 1)]


def test_an_offset_of_a_former_topic_in_a_transaction_goes_too():
    log = Log()
    log.put(3, producer_id=1)
    log.desk.topics_changed(remade("payments"))
    assert log.unstable
    log.desk.shard.topics = topics()
    log.desk.topics_changed(remade())
    assert not log.unstable
    log.marker(1)
    assert log.committed == -1
