# SPDX-License-Identifier: Apache-2.0
"""ListOffsets: by time, and at special points."""

import pytest
from tests.server.apis.asking import list_offsets
from tests.server.desk import START

from kohort.errors import ErrorCode
from kohort.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)


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
    unsaid = list_offsets(desk, -1, current_leader_epoch=-2)
    assert unsaid.error_code == ErrorCode.FENCED_LEADER_EPOCH  # only -1 says nothing
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


def test_entries_of_one_topic_are_answered_as_one(desk):
    """Also when one partition is in several of them: then it is named twice all the same."""
    desk.create(partitions=3)

    def entry(*indexes):
        partitions = [ListOffsetsPartition(partition_index=one, timestamp=-1) for one in indexes]
        return ListOffsetsTopic(name="orders", partitions=partitions)

    request = ListOffsetsRequest(replica_id=-1, topics=[entry(0), entry(), entry(0, 1), entry(2)])
    (answer,) = desk.ask(request, 7).topics
    assert [(one.partition_index, one.error_code) for one in answer.partitions] == [
        (0, ErrorCode.INVALID_REQUEST),
        (1, 0),
        (2, 0),
    ]
    assert desk.ask(ListOffsetsRequest(replica_id=-1, topics=[entry()]), 7).topics == []


def test_an_isolation_level_that_nobody_knows(desk):
    desk.create()
    wanted = ListOffsetsPartition(partition_index=0, timestamp=-1)
    topics = [ListOffsetsTopic(name="orders", partitions=[wanted])]
    request = ListOffsetsRequest(replica_id=-1, isolation_level=2, topics=topics)
    (answer,) = desk.ask(request, 7).topics
    assert answer.partitions[0].error_code == ErrorCode.INVALID_REQUEST


def test_an_offset_comes_with_the_epoch_of_its_record(desk):
    desk.create()
    for _ in range(3):
        desk.produce()
        desk.wait(100)
        desk.cluster.partition("orders", 0).log.next_leader()

    asked = (-2, START, START + 1, START + 200, -3, -1)
    found = [list_offsets(desk, one) for one in asked]
    assert [(one.offset, one.leader_epoch) for one in found] == [
        (0, 0),
        (0, 0),
        (1, 1),
        (2, 2),
        (2, 2),
        (3, 3),
    ]
