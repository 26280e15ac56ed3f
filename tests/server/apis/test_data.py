"""Produce and the other requests about records."""

import pytest
from tests.server.desk import START, Desk

from kohort.errors import ErrorCode
from kohort.wire.batch import build
from kohort.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kohort.wire.messages.init_producer_id import InitProducerIdRequest
from kohort.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kohort.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kohort.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData


@pytest.fixture
def desk():
    return Desk()


def produce_by_id(topic_id, **more):
    data = PartitionProduceData(index=0, records=build([(b"k", b"v")], START))
    return ProduceRequest(
        acks=1,
        timeout_ms=1000,
        topic_data=[TopicProduceData(topic_id=topic_id, partition_data=[data])],
        **more,
    )


def test_records_get_their_offsets(desk):
    desk.create(partitions=2)

    assert desk.produce(records=3).base_offset == 0
    second = desk.produce(records=2)
    assert (second.base_offset, second.log_append_time_ms, second.log_start_offset) == (3, -1, 0)
    assert desk.produce(partition=1).base_offset == 0


def test_nothing_is_acknowledged_before_it_is_durable(desk):
    desk.create()
    asked = desk.send_batch()
    desk.settle(sync=False)
    assert asked.answer is None
    desk.settle()

    assert asked.answer.responses[0].partition_responses[0].base_offset == 0


def test_a_batch_that_is_sent_again_waits_for_the_first(desk):
    desk.create()
    first = desk.send_batch(producer_id=7, producer_epoch=0)
    desk.settle(sync=False)
    again = desk.send_batch(producer_id=7, producer_epoch=0)
    desk.settle(sync=False)
    assert (first.answer, again.answer) == (None, None)
    desk.settle()

    for asked in (first, again):
        assert asked.answer.responses[0].partition_responses[0].base_offset == 0
    third = desk.send_batch(producer_id=7, producer_epoch=0)
    desk.settle(sync=False)
    assert third.answer is not None


def test_without_acks_nothing_is_answered_and_nobody_waits(desk):
    desk.create()
    asked = desk.send_batch(acks=0)
    desk.settle()

    assert asked.answer is None
    assert desk.produce().base_offset == 1


def test_a_refusal_without_acks_closes_the_connection(desk):
    desk.send_batch("nothing", acks=0)
    desk.settle()

    (connection,) = desk.connections
    assert "acks=0" in str(connection.error)
    assert connection.finished


def test_a_producer_may_have_several_requests_on_the_way(desk):
    """They share one sync, and are answered in order."""
    desk.create()
    asked = [desk.send_batch() for _ in range(3)]
    desk.settle(sync=False)
    assert [one.answer for one in asked] == [None, None, None]
    assert len(desk.cluster.begin_sync()) == 1
    desk.cluster.end_sync([desk.cluster.partition("orders", 0).log.end])
    desk.settle()

    offsets = [one.answer.responses[0].partition_responses[0].base_offset for one in asked]
    assert offsets == [0, 1, 2]


@pytest.mark.parametrize(
    ("topic", "partition", "acks", "code"),
    [
        ("nothing", 0, 1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("orders", 5, 1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("orders", -1, 1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("orders", 0, 2, ErrorCode.INVALID_REQUIRED_ACKS),
        ("__consumer_offsets", 0, 1, ErrorCode.INVALID_TOPIC_EXCEPTION),
    ],
)
def test_refusals(desk, topic, partition, acks, code):
    desk.create()
    refused = desk.produce(topic, partition, acks=acks)

    assert (refused.error_code, refused.base_offset) == (code, -1)


def test_topics_go_by_id_from_v13_on(desk):
    topic_id = desk.create()

    (answer,) = desk.ask(produce_by_id(topic_id), 13).responses
    assert (answer.topic_id, answer.partition_responses[0].error_code) == (topic_id, 0)
    (answer,) = desk.ask(produce_by_id(b"?" * 16), 13).responses
    assert answer.partition_responses[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_transactions_are_refused_in_words(desk):
    topic_id = desk.create()

    (answer,) = desk.ask(produce_by_id(topic_id, transactional_id="t-1"), 13).responses
    (one,) = answer.partition_responses
    assert one.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert "transactions are not supported yet" in one.error_message
    refused = desk.ask(InitProducerIdRequest(transactional_id="t-1", transaction_timeout_ms=1), 4)
    assert (refused.error_code, refused.producer_id) == (
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        -1,
    )


def test_an_idempotent_producer(desk):
    desk.create()
    given = desk.ask(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1), 4)
    other = desk.ask(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1), 0)
    assert given.producer_id != other.producer_id

    def send(sequence):
        return desk.produce(producer_id=given.producer_id, producer_epoch=0, base_sequence=sequence)

    assert send(0).base_offset == 0
    assert send(1).base_offset == 1
    assert send(1).base_offset == 1
    gap = send(5)
    assert (gap.error_code, gap.log_start_offset) == (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, 0)


def list_offsets(desk, timestamp, *, version=11, partition=0, **more):
    wanted = ListOffsetsPartition(partition_index=partition, timestamp=timestamp, **more)
    topics = [ListOffsetsTopic(name="orders", partitions=[wanted])]
    (answer,) = desk.ask(ListOffsetsRequest(replica_id=-1, topics=topics), version).topics
    (one,) = answer.partitions
    return one


def test_offsets_by_time_and_by_special_point(desk):
    desk.create()
    desk.produce(records=2)
    desk.wait(100)
    desk.produce()

    assert list_offsets(desk, -1).offset == 3
    assert list_offsets(desk, -2).offset == 0
    assert list_offsets(desk, START + 1).offset == 2
    found = list_offsets(desk, -3)
    assert (found.timestamp, found.offset, found.leader_epoch) == (START + 100, 2, 0)
    assert list_offsets(desk, START + 101).offset == -1


@pytest.mark.parametrize(("timestamp", "since"), [(-3, 7), (-4, 8), (-5, 9), (-6, 11)])
def test_special_points_belong_to_versions(desk, timestamp, since):
    desk.create()

    before = list_offsets(desk, timestamp, version=since - 1)
    assert before.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert list_offsets(desk, timestamp, version=since).error_code == 0


def test_offsets_of_what_is_not_there(desk):
    desk.create()

    assert list_offsets(desk, -9).error_code == ErrorCode.UNSUPPORTED_VERSION
    missing = list_offsets(desk, -1, partition=4)
    assert (missing.error_code, missing.offset) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)
    fenced = list_offsets(desk, -1, current_leader_epoch=3)
    assert fenced.error_code == ErrorCode.UNKNOWN_LEADER_EPOCH


def test_a_partition_that_is_named_twice_is_refused_once(desk):
    desk.create(partitions=2)
    wanted = [
        ListOffsetsPartition(partition_index=index, timestamp=stamp)
        for index, stamp in ((0, -1), (1, -1), (1, -2))
    ]
    topics = [ListOffsetsTopic(name="orders", partitions=wanted)]
    (answer,) = desk.ask(ListOffsetsRequest(replica_id=-1, topics=topics), 7).topics

    assert [(one.partition_index, one.error_code) for one in answer.partitions] == [
        (1, ErrorCode.INVALID_REQUEST),
        (0, 0),
    ]


@pytest.mark.parametrize(
    ("current", "asked", "expected"),
    [
        (0, 0, (0, 0, 1)),
        (-1, 0, (0, 0, 1)),
        (-1, 5, (0, -1, -1)),
        (-1, -1, (0, -1, -1)),
        (9, 0, (ErrorCode.UNKNOWN_LEADER_EPOCH, -1, -1)),
    ],
)
def test_where_an_epoch_ended(desk, current, asked, expected):
    desk.create()
    desk.produce()
    wanted = OffsetForLeaderPartition(partition=0, current_leader_epoch=current, leader_epoch=asked)
    topics = [OffsetForLeaderTopic(topic="orders", partitions=[wanted])]
    (answer,) = desk.ask(OffsetForLeaderEpochRequest(topics=topics), 4).topics

    (one,) = answer.partitions
    assert (one.error_code, one.leader_epoch, one.end_offset) == expected


@pytest.mark.parametrize(
    ("topic", "offset", "expected"),
    [
        ("orders", 2, (0, 2)),
        ("orders", -1, (0, 3)),
        ("orders", 0, (0, 0)),
        ("orders", 4, (ErrorCode.OFFSET_OUT_OF_RANGE, -1)),
        ("nothing", 0, (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)),
        ("compacted", 0, (ErrorCode.POLICY_VIOLATION, -1)),
        ("__consumer_offsets", 0, (ErrorCode.INVALID_TOPIC_EXCEPTION, -1)),
    ],
)
def test_records_are_deleted(desk, topic, offset, expected):
    desk.create()
    desk.create("compacted", cleanup_policy="compact")
    desk.produce(records=3)
    topics = [
        DeleteRecordsTopic(
            name=topic, partitions=[DeleteRecordsPartition(partition_index=0, offset=offset)]
        )
    ]
    (answer,) = desk.ask(DeleteRecordsRequest(topics=topics, timeout_ms=1), 2).topics

    (one,) = answer.partitions
    assert (one.error_code, one.low_watermark) == expected
    if not one.error_code:
        assert list_offsets(desk, -2).offset == one.low_watermark


def test_only_the_leader_takes_records():
    desk = Desk(nodes=3)
    desk.create(partitions=3)

    codes = [desk.produce(partition=index, node=0).error_code for index in range(3)]

    assert sorted(codes) == [0, 6, 6]
