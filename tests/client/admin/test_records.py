# SPDX-License-Identifier: Apache-2.0
"""Deletions of records, each asked of the leader."""

from tests.client.scripted import CLOSE, ScriptedCluster, asynchronous

from kohort import ErrorCode, TopicPartition
from kohort.wire.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)


@asynchronous
async def test_each_leader_gets_its_share_and_no_request_is_sent_again():
    def answer(asked):
        if asked.node == 1:
            return CLOSE
        return DeleteRecordsResponse(
            topics=[
                DeleteRecordsTopicResult(
                    name=topic.name,
                    partitions=[
                        DeleteRecordsPartitionResult(
                            partition_index=each.partition_index,
                            low_watermark=9 if each.offset < 0 else each.offset,
                            error_code=ErrorCode.OFFSET_OUT_OF_RANGE if each.offset > 9 else 0,
                        )
                        for each in topic.partitions
                    ],
                )
                for topic in asked.request.topics
            ]
        )

    answers = {DeleteRecordsRequest: answer}
    async with ScriptedCluster(2, answers) as scripted, scripted.admin() as admin:
        scripted.topics = {"a": [0, 0, 1], "b": [0]}
        deleted = await admin.delete_records(
            {("a", 0): 4, ("a", 1): 77, ("a", 2): 1, ("b", 0): 0, ("c", 0): 1}
        )
        assert deleted.succeeded == {("a", 0): 4, ("b", 0): 0}
        assert {key: error.code for key, error in deleted.failed.items()} == {
            ("a", 1): ErrorCode.OFFSET_OUT_OF_RANGE,
            ("a", 2): ErrorCode.NETWORK_EXCEPTION,
            ("c", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        }
        assert (await admin.delete_records({TopicPartition("a", 0): "latest"})).all() == {
            ("a", 0): 9
        }
    assert sorted(asked.node for asked in scripted.sent("DeleteRecords")) == [0, 0, 1]
    assert all(asked.request.timeout_ms > 1000 for asked in scripted.sent("DeleteRecords"))
