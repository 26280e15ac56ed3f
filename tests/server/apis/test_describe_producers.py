# SPDX-License-Identifier: Apache-2.0
"""DescribeProducers: who has written where, and whose transaction is open."""

import pytest
from tests.server.desk import Desk
from tests.server.transactional import Producing

from kohort.errors import ErrorCode
from kohort.sim.disk import SimulatedFiles
from kohort.wire.messages.describe_producers import DescribeProducersRequest, TopicRequest


def described(desk, *places, node=0):
    topics = [TopicRequest(name=name, partition_indexes=[index]) for name, index in places]
    answer = desk.ask(DescribeProducersRequest(topics=topics), 0, node=node)
    return [topic.partitions[0] for topic in answer.topics]


@pytest.mark.parametrize("restart", [False, True])
def test_each_partition_says_who_has_written_to_it(restart):
    files = SimulatedFiles()
    desk = Desk(files=files)
    desk.create(partitions=2)
    one, other = Producing(desk, "t"), Producing(desk, "u")
    desk.produce()
    one.write(b"a", b"b")
    one.end()
    one.write(b"c")
    other.write(b"d", partition=1)
    other.end(commit=False)
    other.commit_offsets(5)
    groups = "__consumer_offsets", desk.cluster.placement.shard_of("g")
    if restart:
        desk = Desk(files=files.after_crash())
    found = described(desk, ("orders", 0), ("orders", 1), groups)

    assert [part.error_code for part in found] == [0, 0, 0]
    ((mine,), (its,), (pending,)) = [part.active_producers for part in found]
    assert (mine.producer_id, mine.producer_epoch, mine.last_sequence) == (one.id, one.epoch, 0)
    assert (mine.current_txn_start_offset, mine.coordinator_epoch) == (4, 0)
    assert (its.producer_id, its.producer_epoch, its.last_sequence) == (other.id, other.epoch, -1)
    assert (its.current_txn_start_offset, its.last_timestamp) == (-1, desk.now)
    assert (pending.producer_id, pending.current_txn_start_offset >= 0) == (other.id, True)


def test_a_partition_that_is_not_there_is_refused_alone():
    desk = Desk(nodes=2)
    desk.create(partitions=2)
    places = ("orders", 0), ("orders", 1), ("orders", 9), ("nowhere", 0)
    codes = [part.error_code for part in described(desk, *places)]

    elsewhere, missing = ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert sorted(codes[:2]) == [0, elsewhere]
    assert codes[2:] == [missing, missing]
    other = [part.error_code for part in described(desk, *places[:2], node=1)]
    assert other == codes[1::-1]


def test_a_partition_with_many_producers_is_answered_in_pieces(monkeypatch):
    """The bytes are those of one piece, but for the element of its own."""
    monkeypatch.setattr("kohort.server.apis.describe_producers.STEP_ELEMENTS", 4)
    desk = Desk()
    desk.create(partitions=3)
    for producer in range(11):
        desk.produce(partition=1, producer_id=producer, producer_epoch=0, base_sequence=0)
    desk.produce(partition=2, producer_id=50, producer_epoch=0, base_sequence=0)
    asked = TopicRequest(name="orders", partition_indexes=[0, 1, 2, 9])
    answer = desk.ask(DescribeProducersRequest(topics=[asked]), 0)

    assert [topic.name for topic in answer.topics] == ["orders", "orders"]
    found = {one.partition_index: one for topic in answer.topics for one in topic.partitions}
    assert {index: one.error_code for index, one in found.items()} == {
        0: 0,
        1: 0,
        2: 0,
        9: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    producers = {
        index: [one.producer_id for one in found[index].active_producers] for index in found
    }
    assert producers == {0: [], 1: [*range(11)], 2: [50], 9: []}
    (last,) = found[2].active_producers
    assert (last.last_sequence, last.current_txn_start_offset) == (0, -1)
