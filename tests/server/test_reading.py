"""Who needs to know the transactions of a long log waits until it is read; nobody else does."""

import errno

import msgspec
import pytest
from tests.server.desk import Desk
from tests.server.transactional import Producing, end_of, fetched

from kohort.errors import ErrorCode
from kohort.server.reading import AT_ONCE_BATCHES
from kohort.sim.disk import MemoryFiles
from kohort.wire.batch import build
from kohort.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kohort.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kohort.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)

COUNT = 30 * AT_ONCE_BATCHES  # of batches: more than one slice
STABLE = COUNT + 6  # where the open transaction begins


def committed_fetch(topic="orders", offset=COUNT):
    wanted = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    return FetchRequest(
        max_wait_ms=0,
        isolation_level=1,
        session_epoch=-1,
        topics=[FetchTopic(topic=topic, partitions=[wanted])],
    )


@pytest.fixture
def files():
    return MemoryFiles()


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
    return again


def read_all(desk):
    while desk.cluster.load_some(desk.now):
        desk.settle()
    desk.settle()


def test_others_are_served_while_a_log_is_read(restarted):
    desk = restarted
    waiting = desk.send(committed_fetch(), 12)
    desk.settle()
    assert waiting.answer is None
    assert desk.cluster.loading
    assert desk.cluster.busy

    small = desk.ask(committed_fetch("small", 0), 12, node=1).responses[0].partitions[0]
    assert b"small" in small.records
    assert desk.produce("orders", node=2, value=b"meanwhile").error_code == 0
    assert desk.cluster.load_some(desk.now)
    assert waiting.answer is None
    read_all(desk)

    answer = waiting.answer.responses[0].partitions[0]
    assert (answer.error_code, answer.last_stable_offset) == (0, STABLE)
    (aborted,) = answer.aborted_transactions
    assert aborted.first_offset == COUNT + 1
    assert not desk.cluster.loading
    assert fetched(desk, offset=COUNT).last_stable_offset == STABLE


def test_the_stable_end_is_not_told_before_it_is_known(restarted):
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
    desk.settle()
    assert waiting.answer is None
    assert plain.answer.topics[0].partitions[0].offset == STABLE + 2
    read_all(desk)

    orders, nowhere = (one.partitions[0] for one in waiting.answer.topics)
    assert (orders.offset, nowhere.error_code) == (
        STABLE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    )


def test_two_who_wait_for_one_log_read_it_once_and_one_may_leave(restarted):
    desk = restarted
    first = desk.send(committed_fetch(), 12, node=1)
    second = desk.send(committed_fetch(), 12, node=2)
    desk.settle()
    desk.clients[1].connection.close()
    read_all(desk)

    assert first.answer is None
    assert second.answer.responses[0].partitions[0].last_stable_offset == STABLE


def test_a_topic_that_is_deleted_meanwhile_is_told_to_who_waits(restarted):
    desk = restarted
    waiting = desk.send(committed_fetch(), 12)
    desk.settle()
    state = DeleteTopicState(name="orders")
    desk.ask(DeleteTopicsRequest(topics=[state], timeout_ms=1000), 6, node=1)
    desk.settle()

    code = waiting.answer.responses[0].partitions[0].error_code
    assert code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert not desk.cluster.loading


def test_a_log_that_cannot_be_read_is_told_to_who_waits(restarted, files):
    """It is read once the disk gives it again."""
    desk = restarted
    request = committed_fetch()
    request.topics += committed_fetch("small", 0).topics
    waiting = desk.send(request, 12)
    desk.settle()
    files.faults["read", "/data/orders-0/"] = errno.EIO
    read_all(desk)
    files.faults.clear()

    orders, small = (one.partitions[0] for one in waiting.answer.responses)
    assert (orders.error_code, small.error_code) == (ErrorCode.KAFKA_STORAGE_ERROR, 0)
    assert b"small" in small.records
    waiting = desk.send(committed_fetch(), 12)
    desk.settle()
    read_all(desk)
    assert waiting.answer.responses[0].partitions[0].last_stable_offset == STABLE


def test_a_marker_waits_for_a_long_log_and_holds_up_nobody(restarted):
    """As after a crash, when the markers of a decision are still to be written."""
    desk = restarted
    one = Producing(desk, "other")  # its former self has a transaction open
    assert one.state() == "PrepareAbort"
    assert desk.produce("orders", node=1).error_code == 0
    read_all(desk)

    assert one.state() == "CompleteAbort"
    assert end_of(desk, committed=True) == STABLE + 4
