# SPDX-License-Identifier: Apache-2.0
"""DeleteRecords: a partition begins later."""

import pytest
from tests.server.apis.asking import list_offsets

from kohort.errors import ErrorCode
from kohort.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)


def test_records_of_one_topic_in_several_entries_are_deleted(desk):
    desk.create(partitions=2)
    desk.produce(records=3)

    def entry(*partitions):
        return DeleteRecordsTopic(
            name="orders",
            partitions=[
                DeleteRecordsPartition(partition_index=index, offset=offset)
                for index, offset in partitions
            ],
        )

    topics = [entry((0, 1)), entry(), entry((1, 0))]
    (answer,) = desk.ask(DeleteRecordsRequest(topics=topics, timeout_ms=1000), 2).topics
    assert [(one.partition_index, one.low_watermark) for one in answer.partitions] == [
        (0, 1),
        (1, 0),
    ]


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
