# SPDX-License-Identifier: Apache-2.0
"""One part of a transaction fails, and the others do not: nothing is told wrong, and it ends."""

from contextlib import suppress

import pytest
from tests.server.desk import Desk
from tests.server.transactional import Producing, committed, end_of, seen

from kohort.errors import ErrorCode
from kohort.sim.disk import SimulatedFiles
from kohort.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kohort.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kohort.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

either = pytest.mark.parametrize("commit", [True, False], ids=["commit", "abort"])


def send_to_both(one, desk, node=0):
    """One request that writes to two partitions; their codes."""
    data = [
        PartitionProduceData(index=index, records=one.batch("orders", index, b"x"))
        for index in (0, 1)
    ]
    request = ProduceRequest(
        transactional_id=one.name,
        acks=-1,
        timeout_ms=1000,
        topic_data=[TopicProduceData(name="orders", partition_data=data)],
    )
    answer = desk.ask(request, 12, node=node).responses[0].partition_responses
    return [part.error_code for part in answer]


def deleted(desk, name):
    state = DeleteTopicState(name=name)
    desk.ask(DeleteTopicsRequest(topics=[state], timeout_ms=1000), 6)


@either
def test_one_partition_of_a_request_that_cannot_be_written(commit):
    """The producer is told, and decides."""
    files = SimulatedFiles()
    desk = Desk(files=files)
    desk.create(partitions=2)
    one = Producing(desk)
    files.faults["write", "/data/orders-1/"] = 28
    assert send_to_both(one, desk) == [0, ErrorCode.KAFKA_STORAGE_ERROR]
    files.faults.clear()
    assert one.end(commit=commit) == 0

    assert one.state() == ("CompleteCommit" if commit else "CompleteAbort")
    assert (seen(desk), seen(desk, partition=1)) == ([b"x"] if commit else [], [])
    one.write(b"next", partition=1)
    assert one.end() == 0
    assert seen(desk, partition=1) == [b"next"]


@either
def test_one_partition_of_a_request_that_another_node_leads(commit):
    desk = Desk(nodes=2)
    desk.create(partitions=2)
    one = Producing(desk)
    codes = send_to_both(one, desk)
    assert sorted(codes) == [0, ErrorCode.NOT_LEADER_OR_FOLLOWER]
    assert one.end(commit=commit) == 0
    assert one.state() == ("CompleteCommit" if commit else "CompleteAbort")
    ends = [desk.cluster.partition("orders", index).last_stable_offset() for index in (0, 1)]
    assert ends == [desk.cluster.partition("orders", index).log.end for index in (0, 1)]


@either
def test_a_topic_that_was_made_anew_gets_a_marker_that_ends_nothing(commit):
    desk = Desk()
    desk.create(partitions=2)
    desk.create("payments")
    one = Producing(desk)
    one.write(b"x")
    one.write(b"lost", topic="payments")
    deleted(desk, "payments")
    desk.create("payments")
    desk.produce(topic="payments", value=b"new")
    assert one.end(commit=commit) == 0

    assert one.state() == ("CompleteCommit" if commit else "CompleteAbort")
    assert seen(desk) == ([b"x"] if commit else [])
    assert seen(desk, "payments") == [b"new"]
    assert end_of(desk, committed=True, topic="payments") == 2


@either
def test_a_shard_that_is_out_of_service_holds_up_its_marker_and_no_other(commit):
    """The others have theirs, and with the next start the shard gets its own."""
    files = SimulatedFiles()
    desk = Desk(files=files)
    desk.create(partitions=2)
    one = Producing(desk)
    one.write(b"x")
    assert one.commit_offsets(5) == 0
    shard = desk.cluster.drivers[desk.cluster.placement.shard_of("g")]
    files.faults["sync", "/data/__consumer_offsets-"] = 5
    assert one.end(commit=commit) == 0
    desk.wait(1000)
    assert one.state() == ("PrepareCommit" if commit else "PrepareAbort")
    assert seen(desk) == ([b"x"] if commit else [])
    assert not shard.active
    files.faults.clear()

    one.desk = again = Desk(files=files.after_crash())
    again.wait(1000)
    assert one.state() == ("CompleteCommit" if commit else "CompleteAbort")
    assert committed(again) == (5 if commit else -1)


def test_one_topic_of_a_commit_that_is_not_there():
    """Its partitions are refused, and the others count."""
    desk = Desk()
    desk.create()
    desk.create("payments")
    one = Producing(desk)
    deleted(desk, "payments")
    place = TxnOffsetCommitRequestPartition(
        partition_index=0, committed_offset=7, committed_metadata=""
    )
    request = TxnOffsetCommitRequest(
        transactional_id=one.name,
        group_id="g",
        producer_id=one.id,
        producer_epoch=one.epoch,
        topics=[
            TxnOffsetCommitRequestTopic(name=name, partitions=[place])
            for name in ("payments", "orders")
        ],
    )
    answer = desk.ask(request, 5)
    codes = {topic.name: topic.partitions[0].error_code for topic in answer.topics}
    assert codes == {"payments": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "orders": 0}
    assert one.end() == 0
    assert committed(desk) == 7


def test_one_log_of_transactions_that_is_lost():
    """The transactions of other logs end, and its own are aborted when it is back and they are
    over.
    """
    files = SimulatedFiles()
    desk = Desk(files=files)
    desk.create(partitions=2)
    mine = [Producing(desk, f"t{number}") for number in range(8)]
    for one in mine:
        one.write(one.name.encode())
    log = {one.name: desk.cluster.placement.transaction_coordinator_of(one.name)[0] for one in mine}
    lost = log["t0"]
    files.faults["sync", f"/data/__transaction_state-{lost}/"] = 5
    ended = set()
    for one in mine:
        desk.another()  # a connection of its own: the broker closes those that it cannot answer
        one.node = len(desk.clients) - 1
        with suppress(AssertionError):  # there is no answer: nobody knows what is on the disk
            if one.end() == 0:
                ended.add(one.name)
    files.faults.clear()
    others = [name for name in log if log[name] != lost]
    assert 0 < len(others) < len(mine)
    assert ended == set(others)

    again = Desk(files=files.after_power_loss())
    again.wait(70_000)
    for one in mine:
        one.desk, one.node = again, 0
        assert one.state() == ("CompleteCommit" if one.name in others else "CompleteAbort")
    assert sorted(seen(again)) == sorted(name.encode() for name in others)
