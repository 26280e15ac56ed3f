# SPDX-License-Identifier: Apache-2.0
"""Produce: what is written, when it is acknowledged, and what is refused."""

import pytest
from tests.server.desk import START, Desk

from kohort.errors import ErrorCode
from kohort.server.partitions.log_reader import AT_ONCE_BATCHES
from kohort.server.requests.steps import STEP_ELEMENTS
from kohort.server.scheduler import MACHINES_NS
from kohort.sim.disk import SimulatedFiles
from kohort.wire.batch import build
from kohort.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData


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
    (one,) = desk.cluster.begin_sync()
    desk.cluster.end_sync(one, one.log.sync())
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


def test_batches_for_one_topic_in_several_entries_are_all_written(desk):
    """One entry in the answer, as upstream; upstream keeps only the last batch of a partition."""
    desk.create(partitions=2)

    def entry(*indexes):
        data = [
            PartitionProduceData(index=one, records=build([(b"k", b"v")], START)) for one in indexes
        ]
        return TopicProduceData(name="orders", partition_data=data)

    topics = [entry(0), entry(1, 0), entry()]
    request = ProduceRequest(acks=-1, timeout_ms=1000, topic_data=topics)
    (answer,) = desk.ask(request, 9).responses
    assert [(one.index, one.base_offset) for one in answer.partition_responses] == [
        (0, 0),
        (1, 0),
        (0, 1),
    ]


def test_without_valid_acks_what_is_not_there_is_still_told(desk):
    desk.create()
    assert desk.produce("orders", 0, acks=-2).error_code == ErrorCode.INVALID_REQUIRED_ACKS
    assert desk.produce("none", 0, acks=-2).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert desk.produce("orders", 7, acks=2).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_only_the_leader_takes_records():
    desk = Desk(nodes=3)
    desk.create(partitions=3)

    codes = [desk.produce(partition=index, node=0).error_code for index in range(3)]

    assert sorted(codes) == [0, 6, 6]


def batches_for(*records):
    """One request with a batch for each partition from 0 on."""
    data = [PartitionProduceData(index=index, records=one) for index, one in enumerate(records)]
    return ProduceRequest(
        acks=-1, timeout_ms=1000, topic_data=[TopicProduceData(name="orders", partition_data=data)]
    )


def test_damage_in_one_partition_refuses_the_whole_request(desk):
    """As upstream, which cannot read on then: nothing is written anywhere."""
    desk.create(partitions=3)
    good = build([(b"k", b"v")], START)
    for damage in (bytes(20), good[:16] + b"\x03" + good[17:]):
        (answer,) = desk.ask(batches_for(good, damage, good), 9).responses
        assert [one.error_code for one in answer.partition_responses] == [
            ErrorCode.CORRUPT_MESSAGE
        ] * 3
    assert [desk.produce(partition=index).base_offset for index in range(3)] == [0, 0, 0]


def test_a_topic_without_partitions_is_in_no_answer(desk):
    desk.create()
    nothing = TopicProduceData(name="orders", partition_data=[])
    for data in (build([(b"k", b"v")], START), bytes(20)):
        request = batches_for(data)
        request.topic_data.append(nothing)
        assert len(desk.ask(request, 9).responses) == 1
    assert desk.ask(ProduceRequest(acks=5, timeout_ms=1, topic_data=[nothing]), 9).responses == []


def test_what_is_only_wrong_in_one_partition_leaves_the_others_alone(desk):
    desk.create(partitions=3)
    good = build([(b"k", b"v")], START)
    (answer,) = desk.ask(batches_for(good, good[:-1], good), 9).responses
    assert [one.error_code for one in answer.partition_responses] == [
        0,
        ErrorCode.INVALID_RECORD,
        0,
    ]
    assert answer.partition_responses[1].log_start_offset == -1


def test_bad_records_are_named(desk):
    """KIP-467: a client tells which of its records were bad, and which only stood beside them."""
    desk.create(partitions=2, cleanup_policy="compact")
    mixed = build([(b"k", b"v"), (None, b"v"), (b"k", b"v"), (None, b"v")], START)
    good = build([(b"k", b"v")], START)
    (answer,) = desk.ask(batches_for(mixed, good), 9).responses
    refused, written = answer.partition_responses
    assert (refused.error_code, refused.log_start_offset) == (ErrorCode.INVALID_RECORD, 0)
    assert [one.batch_index for one in refused.record_errors] == [1, 3]
    assert "without a key" in refused.record_errors[0].batch_index_error_message
    assert (written.error_code, written.record_errors) == (0, [])


MANY = 20 * STEP_ELEMENTS


def many(desk, topics=("orders",), each=MANY, acks=-1):
    """A batch for partition 0 again and again."""
    batch = build([(b"k", b"v")], desk.now)
    data = [PartitionProduceData(index=0, records=batch)] * each
    wanted = [TopicProduceData(name=name, partition_data=data) for name in topics]
    return ProduceRequest(acks=acks, timeout_ms=1000, topic_data=wanted)


def test_others_are_served_while_many_batches_are_written():
    """What the client sends behind them is written behind them."""
    desk = Desk()
    desk.create()
    desk.another()
    desk.step_ns = MACHINES_NS
    first, second = desk.send(many(desk), 9), desk.send_batch()
    served = 0
    while first.answer is None:
        other = desk.send_batch(node=1)
        while other.answer is None:
            desk.step()
            desk.take()
        served += 1
        desk.step()
        desk.take()
    desk.settle()
    assert served > 3
    (answers,) = (topic.partition_responses for topic in first.answer.responses)
    assert [answer.error_code for answer in answers] == [0] * MANY
    offsets = [answer.base_offset for answer in answers]
    assert offsets == sorted(offsets)
    (last,) = second.answer.responses[0].partition_responses
    assert last.base_offset > offsets[-1]


@pytest.mark.parametrize("acks", [-1, 0])
def test_many_batches_of_topics_that_are_not_there_are_refused_one_by_one(acks):
    desk = Desk()
    desk.create()
    asked = desk.send(many(desk, ("orders", "absent"), acks=acks), 9)
    desk.settle()
    assert desk.cluster.partition("orders", 0).log.end == MANY
    if acks:
        found = {topic.name: topic.partition_responses for topic in asked.answer.responses}
        assert {answer.error_code for answer in found["orders"]} == {0}
        assert {answer.error_code for answer in found["absent"]} == {
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        }
    else:
        assert "acks=0 was refused" in str(desk.connections[0].error)


def test_many_batches_wait_for_a_log_that_must_be_read_and_are_answered_once():
    files = SimulatedFiles()
    desk = Desk(files=files)
    desk.create()
    for sequence in range(AT_ONCE_BATCHES * 3):
        desk.produce(producer_id=7, producer_epoch=0, base_sequence=sequence)
    desk.cluster.close()
    desk = Desk(files=files)
    desk.step_ns = MACHINES_NS
    request = many(desk)
    numbered = build(
        [(b"k", b"v")],
        desk.now,
        producer_id=7,
        producer_epoch=0,
        base_sequence=AT_ONCE_BATCHES * 3,
    )
    data = request.topic_data[0].partition_data
    request.topic_data[0].partition_data = [
        PartitionProduceData(index=0, records=numbered),
        *data,
    ]
    asked = desk.send(request, 9)
    desk.settle()
    (answers,) = (topic.partition_responses for topic in asked.answer.responses)
    assert [answer.error_code for answer in answers] == [0] * (MANY + 1)
    assert desk.cluster.partition("orders", 0).log.end == AT_ONCE_BATCHES * 3 + MANY + 1
