# SPDX-License-Identifier: Apache-2.0
"""Who needs to know the transactions of a long log waits until it is read; nobody else does."""

import errno

import msgspec
import pytest
from tests.server.desk import Desk
from tests.server.transactional import Producing, end_of, fetched

from kohort.errors import ErrorCode
from kohort.server.partitions.log_reads import STEP_BATCHES
from kohort.server.scheduler import MACHINES_NS
from kohort.sim.disk import SimulatedFiles
from kohort.wire.batch import build
from kohort.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kohort.wire.messages.describe_producers import DescribeProducersRequest, TopicRequest
from kohort.wire.messages.describe_transactions import DescribeTransactionsRequest
from kohort.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kohort.wire.messages.init_producer_id import InitProducerIdRequest
from kohort.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kohort.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kohort.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)

COUNT = 150 * STEP_BATCHES  # of batches: more than one slice
STABLE = COUNT + 6  # where the open transaction begins


def committed_fetch(topic="orders", offset=COUNT, isolation_level=1):
    wanted = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    return FetchRequest(
        max_wait_ms=0,
        isolation_level=isolation_level,
        session_epoch=-1,
        topics=[FetchTopic(topic=topic, partitions=[wanted])],
    )


@pytest.fixture
def files():
    return SimulatedFiles()


@pytest.fixture
def restarted(files):
    """A broker that has just started, with a long log that ends in an aborted transaction and in
    an open one.
    """
    desk = Desk(files=files)
    desk.create()
    desk.create("small")
    log = desk.cluster.partition("orders", 0).log
    for _ in range(COUNT):
        log.append(build([(b"k", b"v")], desk.now), 1)
    log.sync()
    desk.produce("orders", value=b"plain")
    one, other = Producing(desk), Producing(desk, "other")
    one.write(b"aborted")
    one.end(commit=False)
    desk.produce("orders", value=b"stable")
    other.write(b"open")
    other.write(b"small", topic="small")
    other.end()
    other.write(b"open")
    desk.produce("orders", value=b"behind it")
    desk.cluster.close()
    again = Desk(files=files, now=desk.now + 1000)
    for _ in range(3):
        again.another()
    again.step_ns = MACHINES_NS
    return again


def until(desk, asked):
    """Take turns until a request has its answer, and no more."""
    while asked.answer is None:
        desk.step()
        desk.take()
    return asked.answer


def test_others_are_served_while_a_log_is_read(restarted):
    desk = restarted
    waiting = desk.send(committed_fetch(), 12)
    desk.step()
    assert desk.cluster.busy

    small = until(desk, desk.send(committed_fetch("small", 0), 12, node=1)).responses[0]
    assert b"small" in small.partitions[0].records
    until(desk, desk.send(committed_fetch("orders", 0, isolation_level=0), 12, node=2))
    assert waiting.answer is None

    answer = until(desk, waiting).responses[0].partitions[0]
    assert (answer.error_code, answer.last_stable_offset) == (0, STABLE)
    (aborted,) = answer.aborted_transactions
    assert aborted.first_offset == COUNT + 1
    assert not desk.cluster.busy
    assert fetched(desk, offset=COUNT).last_stable_offset == STABLE


def test_the_last_stable_offset_is_not_told_before_it_is_known(restarted):
    """Who begins at the end would otherwise begin at a wrong one."""
    desk = restarted
    wanted = ListOffsetsPartition(partition_index=0, timestamp=-1)
    request = ListOffsetsRequest(
        replica_id=-1,
        isolation_level=1,
        topics=[ListOffsetsTopic(name=name, partitions=[wanted]) for name in ("orders", "nowhere")],
    )
    waiting = desk.send(request, 7)
    plain = desk.send(msgspec.structs.replace(request, isolation_level=0), 7, node=1)
    assert until(desk, plain).topics[0].partitions[0].offset == STABLE + 2
    assert waiting.answer is None

    orders, nowhere = (one.partitions[0] for one in until(desk, waiting).topics)
    assert (orders.offset, nowhere.error_code) == (
        STABLE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    )


def test_two_who_wait_for_one_log_read_it_once_and_one_may_leave(restarted):
    desk = restarted
    first = desk.send(committed_fetch(), 12, node=1)
    second = desk.send(committed_fetch(), 12, node=2)
    desk.step()
    desk.clients[1].connection.close()

    assert until(desk, second).responses[0].partitions[0].last_stable_offset == STABLE
    assert first.answer is None


def test_many_who_wait_for_one_log_are_answered_a_slice_at_a_time(restarted):
    desk, many = restarted, 20
    for _ in range(many):
        desk.another()
    waiting = [desk.send(committed_fetch(), 12, node=4 + number) for number in range(many)]
    answered = []
    while any(one.answer is None for one in waiting):
        assert desk.step()
        desk.take()
        answered.append(sum(one.answer is not None for one in waiting))
    assert len(set(answered)) > many // 2


def test_a_topic_that_is_deleted_meanwhile_is_told_to_who_waits(restarted):
    desk = restarted
    waiting = desk.send(committed_fetch(), 12)
    desk.step()
    state = DeleteTopicState(name="orders")
    until(desk, desk.send(DeleteTopicsRequest(topics=[state], timeout_ms=1000), 6, node=1))

    code = until(desk, waiting).responses[0].partitions[0].error_code
    assert code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    desk.settle()
    assert not desk.cluster.busy


def test_a_log_that_cannot_be_read_is_told_to_who_waits(restarted, files):
    """It is read once the disk gives it again."""
    desk = restarted
    request = committed_fetch()
    request.topics += committed_fetch("small", 0).topics
    waiting = desk.send(request, 12)
    desk.step()
    files.faults["read", "/data/orders-0/"] = errno.EIO
    orders, small = (one.partitions[0] for one in until(desk, waiting).responses)
    files.faults.clear()

    assert (orders.error_code, small.error_code) == (ErrorCode.KAFKA_STORAGE_ERROR, 0)
    assert b"small" in small.records
    waiting = desk.send(committed_fetch(), 12)
    assert until(desk, waiting).responses[0].partitions[0].last_stable_offset == STABLE


def test_a_marker_waits_for_a_long_log_and_holds_up_nobody(restarted):
    """As after a crash, when the markers of a decision are still to be written."""
    desk = restarted
    init = InitProducerIdRequest(transactional_id="other", transaction_timeout_ms=60_000)
    asked = until(desk, desk.send(init, 4))  # its former self has a transaction open
    assert asked.error_code == ErrorCode.CONCURRENT_TRANSACTIONS
    until(desk, desk.send_batch("orders", node=1))
    states = DescribeTransactionsRequest(transactional_ids=["other"])
    (state,) = until(desk, desk.send(states, 0)).transaction_states
    assert state.transaction_state == "PrepareAbort"
    desk.settle()

    (state,) = desk.ask(states, 0).transaction_states
    assert state.transaction_state == "CompleteAbort"
    assert end_of(desk, committed=True) == STABLE + 4


@pytest.fixture
def rolled(files):
    """A broker that has just started, with a long file of a log that nobody has read since."""
    desk = Desk(files=files)
    desk.create(segment_ms="1000")
    desk.create("small")
    log = desk.cluster.partition("orders", 0).log
    for _ in range(COUNT // 10):
        log.append(build([(b"k", b"v")], desk.now), 1)
    desk.wait(2000)
    desk.produce("orders", value=b"in another file")
    desk.produce("small", value=b"small")
    desk.cluster.close()
    again = Desk(files=files, now=desk.now + 1000)
    again.another()
    again.step_ns = MACHINES_NS
    return again


def by_time(timestamp):
    wanted = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    return ListOffsetsRequest(
        replica_id=-1, topics=[ListOffsetsTopic(name="orders", partitions=[wanted])]
    )


@pytest.mark.parametrize(
    ("request_", "version"),
    [(committed_fetch(offset=7, isolation_level=0), 12), (by_time(1), 7), (by_time(-3), 7)],
    ids=["a fetch", "a time", "the latest time"],
)
def test_others_are_served_while_the_headers_of_a_file_are_read(rolled, request_, version):
    desk = rolled
    waiting = desk.send(request_, version)
    served = 0
    while waiting.answer is None:
        small = until(desk, desk.send(committed_fetch("small", 0, 0), 12, node=1))
        assert b"small" in small.responses[0].partitions[0].records
        served += 1
        desk.step()
        desk.take()
    assert served > 3
    if version == 12:
        found = waiting.answer.responses[0].partitions[0]
        assert int.from_bytes(found.records[:8]) == 7
    else:
        found = waiting.answer.topics[0].partitions[0]
        assert found.offset == (0 if request_ == by_time(1) else COUNT // 10)
    assert found.error_code == 0
    assert not desk.cluster.busy
    again = desk.send(request_, version)
    assert not desk.cluster.log_reads, "they are read once"
    until(desk, again)


def test_headers_that_cannot_be_read_are_told_to_who_waits(rolled, files):
    desk = rolled
    waiting = desk.send(committed_fetch(offset=7, isolation_level=0), 12)
    desk.step()
    assert waiting.answer is None
    files.faults["read", "/data/orders-0/"] = errno.EIO
    code = until(desk, waiting).responses[0].partitions[0].error_code
    files.faults.clear()
    assert code == ErrorCode.KAFKA_STORAGE_ERROR


def test_a_topic_that_is_deleted_while_its_headers_are_read_is_told_to_who_waits(rolled):
    desk = rolled
    waiting = desk.send(committed_fetch(offset=7, isolation_level=0), 12)
    desk.step()
    state = DeleteTopicState(name="orders")
    until(desk, desk.send(DeleteTopicsRequest(topics=[state], timeout_ms=1000), 6, node=1))
    code = until(desk, waiting).responses[0].partitions[0].error_code
    assert code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert not desk.cluster.log_reads


def numbered(desk, sequence, *, node=0, acks=-1, topic="orders", value=b"numbered"):
    """A batch of the idempotent producer 7."""
    return desk.send_batch(
        topic,
        node=node,
        acks=acks,
        value=value,
        producer_id=7,
        producer_epoch=0,
        base_sequence=sequence,
    )


def produced(asked):
    return asked.answer.responses[0].partition_responses[0]


def test_an_idempotent_batch_waits_until_the_producers_are_read(restarted):
    """What its connection has sent behind it waits as well; others are served meanwhile."""
    desk = restarted
    waiting = [numbered(desk, sequence) for sequence in range(3)]
    desk.step()
    other = until(desk, desk.send_batch("small", node=1))
    assert other.responses[0].partition_responses[0].error_code == 0
    until(desk, desk.send_batch("orders", node=2))  # a producer without a number need not wait
    assert [one.answer for one in waiting] == [None, None, None]

    answers = [until(desk, one) and produced(one) for one in waiting]
    assert [one.error_code for one in answers] == [0, 0, 0]
    offsets = [one.base_offset for one in answers]
    assert offsets == [offsets[0], offsets[0] + 1, offsets[0] + 2]
    again = numbered(desk, 2)
    until(desk, again)
    assert produced(again).base_offset == offsets[2], "and is known from then on"


def test_what_was_written_before_a_start_is_known(restarted, files):
    desk = restarted
    before = until(desk, numbered(desk, 0)).responses[0].partition_responses[0]
    desk.settle()
    desk.cluster.close()
    again = Desk(files=files, now=desk.now + 1000)
    again.step_ns = MACHINES_NS
    sent, gap = numbered(again, 0), numbered(again, 5)
    until(again, gap)
    assert produced(sent).base_offset == before.base_offset
    assert produced(gap).error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_batch_that_waits_keeps_no_other_of_its_request(restarted):
    desk = restarted
    wait, go = (numbered_request(desk, topic).topic_data[0] for topic in ("orders", "small"))
    end = desk.cluster.partition("small", 0).log.end
    asked = desk.send(ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[wait, go]), 9)
    desk.step()
    assert desk.cluster.partition("small", 0).log.end == end + 1
    orders, small = (one.partition_responses[0] for one in until(desk, asked).responses)
    assert (orders.error_code, small.error_code, small.base_offset) == (0, 0, end)


def numbered_request(desk, topic):
    batch = build([(b"k", b"v")], desk.now, producer_id=7, producer_epoch=0, base_sequence=0)
    data = PartitionProduceData(index=0, records=batch)
    return ProduceRequest(
        acks=-1, timeout_ms=1000, topic_data=[TopicProduceData(name=topic, partition_data=[data])]
    )


def test_who_wants_no_answer_is_written_all_the_same(restarted):
    desk = restarted
    end = desk.cluster.partition("orders", 0).log.end
    numbered(desk, 0, acks=0)
    until(desk, numbered(desk, 1))
    assert desk.cluster.partition("orders", 0).log.end == end + 2


def test_who_waits_to_write_is_told_of_a_topic_that_is_gone(restarted):
    desk = restarted
    waiting = numbered(desk, 0)
    desk.step()
    state = DeleteTopicState(name="orders")
    until(desk, desk.send(DeleteTopicsRequest(topics=[state], timeout_ms=1000), 6, node=1))
    until(desk, waiting)
    assert produced(waiting).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    desk.settle()
    assert not desk.cluster.busy


def test_who_waits_to_write_is_told_of_a_log_that_cannot_be_read(restarted, files):
    desk = restarted
    waiting = numbered(desk, 0)
    desk.step()
    files.faults["read", "/data/orders-0/"] = errno.EIO
    until(desk, waiting)
    files.faults.clear()
    assert produced(waiting).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    again = numbered(desk, 0)
    until(desk, again)
    assert produced(again).error_code == 0


def test_others_are_served_while_producers_are_described(restarted):
    desk = restarted
    request = DescribeProducersRequest(topics=[TopicRequest(name="orders", partition_indexes=[0])])
    asked = desk.send(request, 0)
    served = 0
    while asked.answer is None:
        until(desk, desk.send(committed_fetch("small", 0, 0), 12, node=1))
        served += 1
        desk.step()
        desk.take()
    assert served > 3
    (found,) = asked.answer.topics[0].partitions
    assert (found.error_code, len(found.active_producers)) == (0, 2)


def test_others_are_served_while_a_marker_of_a_tool_waits(restarted):
    desk = restarted
    topic = WritableTxnMarkerTopic(name="orders", partition_indexes=[0])
    marker = WritableTxnMarker(
        producer_id=99, producer_epoch=0, transaction_result=False, topics=[topic]
    )
    asked = desk.send(WriteTxnMarkersRequest(markers=[marker]), 1)
    desk.step()
    until(desk, desk.send_batch("small", node=1))
    assert asked.answer is None
    (result,) = until(desk, asked).markers
    assert result.topics[0].partitions[0].error_code == 0
