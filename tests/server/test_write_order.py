# SPDX-License-Identifier: Apache-2.0
"""Who waits to write until a log is read is overtaken by nobody whose order counts."""

import pytest
from tests.server.desk import Desk
from tests.server.transactional import FIRST, PRODUCE, SECOND, Producing, fetched

from kohort.server.partitions.log_reader import AT_ONCE_BATCHES
from kohort.server.scheduler import MACHINES_NS
from kohort.sim.disk import SimulatedFiles
from kohort.wire.batch import build
from kohort.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kohort.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kohort.wire.messages.end_txn import EndTxnRequest
from kohort.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kohort.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

# The first who asks reads some at once and waits for the rest; the next would find it read.
NEARLY_READ = pytest.mark.parametrize(
    "count", [AT_ONCE_BATCHES + 4, 2 * AT_ONCE_BATCHES - 4, 5 * AT_ONCE_BATCHES]
)


def fill(desk, topic, count):
    partition = desk.cluster.partition(topic, 0)
    for _ in range(count):
        partition.log.append(build([(b"k", b"v")], desk.now), 1)
    partition.log.sync()
    partition.durable(partition.log.end)


def started_with(count):
    """A broker that has just started, with so many batches in a log."""
    files = SimulatedFiles()
    desk = Desk(files=files)
    desk.create()
    fill(desk, "orders", count)
    desk.cluster.close()
    return Desk(files=files, now=desk.now + 1000)


def request_of(*batches, transactional_id=None):
    data = [PartitionProduceData(index=0, records=batch) for batch in batches]
    return ProduceRequest(
        transactional_id=transactional_id,
        acks=-1,
        timeout_ms=1000,
        topic_data=[TopicProduceData(name="orders", partition_data=data)],
    )


@NEARLY_READ
@pytest.mark.parametrize("more", [0, 300], ids=["few", "in steps"])
def test_batches_of_one_request_keep_their_order(count, more):
    desk = started_with(count)
    batches = [
        build([(b"k", b"v")], desk.now, producer_id=7, producer_epoch=0, base_sequence=sequence)
        for sequence in range(2 + more)
    ]
    answer = desk.ask(request_of(*batches), 9).responses[0].partition_responses
    assert {one.error_code for one in answer} == {0}
    assert [one.base_offset for one in answer] == [*range(count, count + 2 + more)]


@NEARLY_READ
@pytest.mark.parametrize("kind", [FIRST, SECOND])
def test_requests_of_one_transaction_keep_their_order(count, kind):
    desk = started_with(count)
    fetched(desk, offset=count)  # so the transactions are known, and the producers are not
    producer = Producing(desk, kind=kind)
    if kind == FIRST:
        assert producer.add(("orders", 0)) == [0]
    asked = []
    for sequence in range(3):
        producer.sequences["orders", 0] = sequence
        request = request_of(producer.batch("orders", 0, b"v"), transactional_id=producer.name)
        asked.append(desk.send(request, PRODUCE[kind]))
    desk.settle()
    found = [one.answer.responses[0].partition_responses[0] for one in asked]
    assert [one.error_code for one in found] == [0, 0, 0]


def committed_fetch(topic, offset):
    wanted = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    return FetchRequest(
        max_wait_ms=0,
        isolation_level=1,
        session_epoch=-1,
        topics=[FetchTopic(topic=topic, partitions=[wanted])],
    )


def test_a_marker_does_not_come_before_a_batch_of_its_transaction():
    """The client gives its Produce up and aborts: the batch would be open for ever."""
    count = AT_ONCE_BATCHES + 4
    files = SimulatedFiles()
    desk = Desk(files=files)
    desk.create()
    fill(desk, "orders", count)
    others = [f"long-{number}" for number in range(8)]
    for topic in others:
        desk.create(topic)
        fill(desk, topic, 1500)
    producer = Producing(desk, kind=FIRST)
    assert producer.add(("orders", 0)) == [0]
    desk.settle()
    desk.cluster.close()
    producer.desk = desk = Desk(files=files, now=desk.now + 1000)
    for _ in range(10):
        desk.another()
    fetched(desk, offset=count)
    desk.step_ns = MACHINES_NS
    for number, topic in enumerate(others, 2):  # what is read before
        desk.send(committed_fetch(topic, 1500), 12, node=number)
    batch = producer.batch("orders", 0, b"late")
    written = desk.send(request_of(batch, transactional_id=producer.name), 9)
    end = EndTxnRequest(
        transactional_id=producer.name,
        producer_id=producer.id,
        producer_epoch=producer.epoch,
        committed=False,
    )
    ended = desk.send(end, 4, node=1)
    desk.settle()
    assert written.answer.responses[0].partition_responses[0].error_code == 0
    assert ended.answer.error_code == 0
    partition = desk.cluster.partition("orders", 0)
    assert [header.is_control for header in partition.log.headers(count)] == [False, True]
    assert partition.last_stable_offset() == partition.log.end


def test_a_producer_goes_on_in_a_log_that_was_emptied():
    """What it has written before is gone, so nobody knows where it must go on."""
    files = SimulatedFiles()
    desk = Desk(files=files)
    desk.create()
    producer = Producing(desk, kind=FIRST)
    producer.write(b"a", b"b", b"c")
    everything = DeleteRecordsPartition(partition_index=0, offset=-1)
    topic = DeleteRecordsTopic(name="orders", partitions=[everything])
    desk.ask(DeleteRecordsRequest(topics=[topic], timeout_ms=1000), 1)
    desk.cluster.close()
    producer.desk = desk = Desk(files=files, now=desk.now + 1000)
    producer.end(commit=False)
    desk.settle()
    assert producer.add(("orders", 0)) == [0]
    assert producer.send(b"next").error_code == 0


def test_a_marker_that_waits_is_done_when_its_topic_is_deleted():
    files = SimulatedFiles()
    desk = Desk(files=files)
    desk.create()
    fill(desk, "orders", 20_000)
    producer = Producing(desk)
    producer.write(b"a")
    desk.cluster.close()
    producer.desk = desk = Desk(files=files, now=desk.now + 1000)
    desk.another()
    desk.step_ns = MACHINES_NS
    end = EndTxnRequest(
        transactional_id=producer.name,
        producer_id=producer.id,
        producer_epoch=producer.epoch,
        committed=False,
    )
    ended = desk.send(end, 5)
    for _ in range(5):
        desk.step()
    assert desk.cluster.log_reads
    state = DeleteTopicState(name="orders")
    deleted = desk.send(DeleteTopicsRequest(topics=[state], timeout_ms=1000), 6, node=1)
    while deleted.answer is None:
        desk.step()
        desk.take()
    assert not desk.cluster.log_reads
    desk.settle()
    assert ended.answer.error_code == 0
    assert desk.told.warnings == []


@pytest.mark.parametrize("acks", [-1, 0])
def test_what_has_arrived_is_written_though_its_client_has_gone(acks):
    desk = Desk()
    desk.create()
    desk.step_ns = MACHINES_NS
    request = request_of(*[build([(b"k", b"v")], desk.now)] * 1280)
    request.acks = acks
    desk.send(request, 9)
    desk.step()
    partition = desk.cluster.partition("orders", 0)
    assert partition.log.end < 1280
    desk.connections[0].close()
    desk.settle()
    assert partition.log.end == 1280
