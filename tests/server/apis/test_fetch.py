# SPDX-License-Identifier: Apache-2.0
"""Fetch: what is read, how much of it, and who waits for how long."""

import pytest
from tests.server.desk import Desk

from kohort.errors import ErrorCode
from kohort.server.requests import fetch_sessions
from kohort.server.scheduler import CLIENTS_NS
from kohort.wire.batch import walk
from kohort.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
)
from kohort.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kohort.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from kohort.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kohort.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup


def request(*wanted, wait=0, least=1, most=1 << 20, each=1 << 20, isolation=0, **more):
    """A fetch of (topic, partition, offset)."""
    topics = {}
    for topic, partition, offset in wanted:
        topics.setdefault(topic, []).append(
            FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=each)
        )
    return FetchRequest(
        max_wait_ms=wait,
        min_bytes=least,
        max_bytes=most,
        isolation_level=isolation,
        topics=[FetchTopic(topic=name, partitions=parts) for name, parts in topics.items()],
        **{"session_epoch": -1, **more},
    )


def found(response):
    """Per partition: error, and the base offsets of the batches."""
    return {
        (topic.topic, one.partition_index): (
            one.error_code,
            [header.base_offset for _, header in walk(one.records)],
        )
        for topic in response.responses
        for one in topic.partitions
    }


def test_batches_come_whole_from_the_one_with_the_offset(desk):
    desk.create()
    for _ in range(3):
        desk.produce(records=2)

    answer = desk.ask(request(("orders", 0, 3)), 12)

    assert found(answer) == {("orders", 0): (0, [2, 4])}
    (one,) = answer.responses[0].partitions
    assert (one.high_watermark, one.last_stable_offset, one.log_start_offset) == (6, 6, 0)
    assert one.aborted_transactions is None


def test_read_committed_is_told_that_nothing_was_aborted(desk):
    desk.create()
    desk.produce()

    (one,) = desk.ask(request(("orders", 0, 0), isolation=1), 12).responses[0].partitions

    assert one.aborted_transactions == []
    assert one.records


def test_a_fetch_waits_for_the_first_record(desk):
    desk.create()
    desk.another()
    asked = desk.send(request(("orders", 0, 0), wait=500), 12)
    desk.settle()
    assert asked.answer is None

    desk.send_batch(node=1)
    desk.settle()

    assert found(asked.answer) == {("orders", 0): (0, [0])}


def test_a_fetch_waits_no_longer_than_it_says(desk):
    desk.create()
    asked = desk.send(request(("orders", 0, 0), wait=500), 12)
    desk.settle()
    desk.wait(499)
    assert asked.answer is None
    desk.wait(1)

    assert found(asked.answer) == {("orders", 0): (0, [])}
    assert not desk.cluster.fetch_purgatory


def test_a_fetch_waits_for_enough(desk):
    desk.create(partitions=2)
    desk.another()
    asked = desk.send(request(("orders", 0, 0), ("orders", 1, 0), wait=500, least=150), 12)
    desk.produce(partition=0, node=1)
    assert asked.answer is None
    desk.produce(partition=1, node=1)

    assert found(asked.answer) == {("orders", 0): (0, [0]), ("orders", 1): (0, [0])}


def test_nobody_reads_what_is_not_durable_yet(desk):
    desk.create()
    desk.another()
    produced = desk.send_batch(node=1)
    asked = desk.send(request(("orders", 0, 0), wait=500), 12)
    desk.settle(sync=False)
    assert (produced.answer, asked.answer) == (None, None)
    desk.settle()

    assert produced.answer.responses[0].partition_responses[0].error_code == 0
    assert found(asked.answer) == {("orders", 0): (0, [0])}


def test_without_sync_everything_counts_at_once():
    desk = Desk(log_sync="none")
    desk.create()
    desk.produce()

    assert found(desk.ask(request(("orders", 0, 0)), 12)) == {("orders", 0): (0, [0])}


def test_limits_hold_but_for_the_first_batch(desk):
    desk.create(partitions=3)
    for partition in range(3):
        for _ in range(3):
            desk.produce(partition=partition, value=b"x" * 1000)
    everything = [("orders", partition, 0) for partition in range(3)]

    def batches(**limits):
        return [
            len(found(desk.ask(request(*everything, **limits), 12))["orders", one][1])
            for one in range(3)
        ]

    assert batches() == [3, 3, 3]
    assert batches(each=2500) == [2, 2, 2]
    assert batches(each=1) == [1, 0, 0]
    assert batches(most=1) == [1, 0, 0]
    assert batches(most=4500) == [3, 1, 0]


def test_a_partition_that_is_named_again_is_answered_once_and_as_it_is_named_last(desk):
    desk.create(partitions=2)
    for _ in range(3):
        desk.produce()
    asked = request(("orders", 0, 0), ("orders", 1, 0), ("orders", 0, 1), ("orders", 0, 2))
    answer = desk.ask(asked, 12)
    places = [
        (topic.topic, part.partition_index)
        for topic in answer.responses
        for part in topic.partitions
    ]
    assert places == [("orders", 0), ("orders", 1)]
    assert found(answer) == {("orders", 0): (0, [2]), ("orders", 1): (0, [])}


def test_one_bad_partition_does_not_touch_the_others(desk):
    desk.create()
    desk.produce()

    answer = desk.ask(request(("orders", 0, 0), ("orders", 7, 0), ("nothing", 0, 0), wait=500), 12)

    assert found(answer) == {
        ("orders", 0): (0, [0]),
        ("orders", 7): (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, []),
        ("nothing", 0): (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, []),
    }


def test_an_offset_out_of_range_is_told_at_once(desk):
    desk.create()

    answer = desk.ask(request(("orders", 0, 5), wait=500), 12)

    assert found(answer) == {("orders", 0): (ErrorCode.OFFSET_OUT_OF_RANGE, [])}


def test_a_topic_that_is_deleted_wakes_who_waits_for_it(desk):
    desk.create()
    desk.another()
    asked = desk.send(request(("orders", 0, 0), wait=500), 12)
    desk.settle()
    desk.ask(DeleteTopicsRequest(topics=[DeleteTopicState(name="orders")], timeout_ms=1), 6, node=1)

    assert found(asked.answer) == {("orders", 0): (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, [])}


def test_topics_go_by_id_from_v13_on(desk):
    topic_id = desk.create()
    desk.produce()
    wanted = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)

    def by_id(one):
        (answer,) = desk.ask(
            FetchRequest(
                max_wait_ms=0,
                min_bytes=1,
                session_epoch=-1,
                topics=[FetchTopic(topic_id=one, partitions=[wanted])],
            ),
            16,
        ).responses
        assert answer.topic_id == one
        return answer.partitions[0].error_code

    assert by_id(topic_id) == 0
    assert by_id(b"?" * 16) == ErrorCode.UNKNOWN_TOPIC_ID


def test_a_session_tells_what_has_changed(desk):
    desk.create(partitions=2)
    first = desk.ask(request(("orders", 0, 0), ("orders", 1, 0), session_epoch=0), 12)
    assert first.session_id
    assert len(found(first)) == 2

    def go_on(epoch, *wanted, **more):
        return desk.ask(
            request(*wanted, session_id=first.session_id, session_epoch=epoch, **more), 12
        )

    assert found(go_on(1)) == {}
    desk.produce(partition=1)
    assert found(go_on(2)) == {("orders", 1): (0, [0])}
    assert found(go_on(3, ("orders", 1, 1))) == {}
    forgotten = ForgottenTopic(topic="orders", partitions=[1])
    desk.produce(partition=1)
    assert found(go_on(4, forgotten_topics_data=[forgotten])) == {}
    assert go_on(9).error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    closed = go_on(-1)
    assert (closed.error_code, closed.session_id) == (0, 0)
    assert go_on(5).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_only_the_leader_answers_and_says_who_it_is():
    desk = Desk(nodes=2, node_id="5", broker_rack="left,right")
    topic = CreatableTopic(
        name="orders",
        num_partitions=-1,
        replication_factor=-1,
        assignments=[CreatableReplicaAssignment(partition_index=0, broker_ids=[6, 5])],
        configs=[],
    )
    (created,) = desk.ask(CreateTopicsRequest(topics=[topic]), 7).topics
    wanted = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
    asking = FetchRequest(
        max_wait_ms=0,
        min_bytes=1,
        session_epoch=-1,
        topics=[FetchTopic(topic_id=created.topic_id, partitions=[wanted])],
    )

    refused = desk.ask(asking, 16, node=0)

    (one,) = refused.responses[0].partitions
    assert one.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (one.current_leader.leader_id, one.current_leader.leader_epoch) == (6, 0)
    assert [(end.node_id, end.host, end.port, end.rack) for end in refused.node_endpoints] == [
        (6, "127.0.0.1", 9093, "right")
    ]
    assert desk.ask(asking, 16, node=1).responses[0].partitions[0].error_code == 0


def test_who_waits_at_a_leader_that_is_one_no_more_is_told_at_once():
    desk = Desk(nodes=2, node_id="5")
    desk.create(partitions=2)
    topic = desk.cluster.catalog.by_name["orders"]
    homes = [desk.cluster.placement.leader(topic, index) for index in (0, 1)]
    parked = [
        desk.send(request(("orders", index, 0), wait=9000), 12, node=home - 5)
        for index, home in enumerate(homes)
    ]
    desk.settle()
    assert [one.answer for one in parked] == [None, None]
    desk.rearrange(lambda placement: placement.move(topic, 0, 11 - homes[0]))
    (told,) = parked[0].answer.responses[0].partitions
    assert told.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert told.current_leader.leader_id == 11 - homes[0]
    assert parked[1].answer is None, "its leader has not changed"
    desk.rearrange(lambda placement: placement.leave(homes[1], replaced=False))
    (told,) = parked[1].answer.responses[0].partitions
    assert (told.error_code, told.current_leader.leader_id) == (6, -1)


def test_the_log_of_the_groups_can_be_read(desk):
    answer = desk.ask(request(("__consumer_offsets", 0, 0)), 12)

    assert found(answer) == {("__consumer_offsets", 0): (0, [])}


@pytest.mark.parametrize("sync", ["group", "none"])
def test_who_waits_for_the_log_of_the_groups_is_not_answered_by_those_who_only_ask(sync):
    """Each turn of that shard answered it with nothing, whatever it was ready to wait for."""
    desk = Desk(log_sync=sync)
    desk.create()
    shard = desk.cluster.placement.shard_of("g")
    end = desk.cluster.partition("__consumer_offsets", shard).log.end
    desk.another()
    wanted = request(("__consumer_offsets", shard, end), wait=9000)
    parked = desk.send(wanted, 12, node=1)
    desk.settle()
    groups = [OffsetFetchRequestGroup(group_id="g", topics=None)]
    for _ in range(3):
        desk.ask(OffsetFetchRequest(groups=groups), 8)
    assert parked.answer is None
    place = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    topics = [OffsetCommitRequestTopic(name="orders", partitions=[place])]
    desk.ask(OffsetCommitRequest(group_id="g", topics=topics), 8)
    assert found(parked.answer) == {("__consumer_offsets", shard): (0, [end])}


def test_a_topic_without_partitions_is_left_out(desk):
    desk.create()
    topics = [FetchTopic(topic="orders", partitions=[]), FetchTopic(topic="none", partitions=[])]
    asked = FetchRequest(max_wait_ms=0, min_bytes=0, session_epoch=-1, topics=topics)
    assert desk.ask(asked, 12).responses == []


@pytest.mark.parametrize("epoch", [-1, -2])
def test_a_leader_epoch_below_zero_is_none(desk, epoch):
    """Here alone: elsewhere only -1 is."""
    desk.create()
    wanted = FetchPartition(
        partition=0, fetch_offset=0, current_leader_epoch=epoch, partition_max_bytes=100
    )
    topics = [FetchTopic(topic="orders", partitions=[wanted])]
    asked = FetchRequest(max_wait_ms=0, min_bytes=0, session_epoch=-1, topics=topics)
    assert desk.ask(asked, 12).responses[0].partitions[0].error_code == 0


def test_a_session_may_begin_with_nothing(desk):
    answer = desk.ask(FetchRequest(max_wait_ms=0, min_bytes=0, session_epoch=0, topics=[]), 12)
    assert answer.session_id > 0


@pytest.mark.parametrize(
    ("last_epoch", "offset", "code", "diverging", "bases"),
    [
        (-1, 4, 0, (-1, -1), [3, 5]),
        (0, 2, 0, (-1, -1), [0, 3, 5]),
        (0, 3, 0, (-1, -1), [3, 5]),
        (0, 4, 0, (0, 3), []),  # epoch 0 ended before
        (1, 3, 0, (0, 3), []),  # it has no records here
        (2, 5, 0, (-1, -1), [5]),
        (3, 5, ErrorCode.OFFSET_OUT_OF_RANGE, (-1, -1), []),
    ],
)
def test_a_reader_whose_records_are_others_is_told_where_they_part(
    desk, last_epoch, offset, code, diverging, bases
):
    """KIP-595: the epoch of the last record that was read."""
    desk.create()
    for records, leaders in ((3, 2), (2, 0), (1, 0)):
        desk.produce(records=records)
        for _ in range(leaders):
            desk.cluster.partition("orders", 0).log.next_leader()
    wanted = request(("orders", 0, offset), wait=500)
    wanted.topics[0].partitions[0].last_fetched_epoch = last_epoch

    answer = desk.ask(wanted, 12)

    assert found(answer) == {("orders", 0): (code, bases)}
    (one,) = answer.responses[0].partitions
    assert (one.diverging_epoch.epoch, one.diverging_epoch.end_offset) == diverging


def test_a_session_tells_again_where_records_part(desk):
    desk.create()
    desk.produce(records=3)
    desk.cluster.partition("orders", 0).log.next_leader()
    desk.produce()
    wanted = request(("orders", 0, 4), session_epoch=0)
    wanted.topics[0].partitions[0].last_fetched_epoch = 0
    first = desk.ask(wanted, 12)

    again = desk.ask(request(session_epoch=1, session_id=first.session_id), 12)

    for answer in (first, again):
        assert answer.responses[0].partitions[0].diverging_epoch.end_offset == 3


def test_a_record_that_many_wait_for_is_told_a_slice_at_a_time():
    """They were all answered in one go, however many partitions each of them reads."""
    waiting = 20
    desk = Desk()
    desk.create()
    asked = []
    for number in range(1, waiting + 1):
        desk.another()
        asked.append(desk.send(request(("orders", 0, 0), wait=9000), 12, node=number))
    desk.settle()
    desk.send_batch()
    desk.step_ns = CLIENTS_NS
    answered = []
    while desk.step():
        desk.take()
        answered.append(sum(one.answer is not None for one in asked))
    desk.take()
    assert all(found(one.answer) == {("orders", 0): (0, [0])} for one in asked)
    assert len(set(answered)) > waiting // 2


def test_a_fetch_ends_whose_session_gives_way_to_others(monkeypatch):
    """It would keep what the session knows in memory for as long as it waits."""
    monkeypatch.setattr(fetch_sessions, "BYTES_MAX", 1000)
    desk = Desk()
    desk.create(partitions=2)
    desk.another()
    first = desk.ask(request(("orders", 0, 0), session_epoch=0), 12)
    assert first.session_id
    again = request(wait=60_000, session_id=first.session_id, session_epoch=1)
    parked = desk.send(again, 12)
    desk.settle()
    assert parked.answer is None
    for _ in range(2):
        assert desk.ask(request(("orders", 1, 0), session_epoch=0), 12, node=1).session_id
    assert parked.answer.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
