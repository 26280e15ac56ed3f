"""What is not there yet is refused in words."""

import pytest
from tests.server.desk import Desk

from kohort.errors import ErrorCode
from kohort.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kohort.wire.messages.heartbeat import HeartbeatRequest
from kohort.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)


@pytest.fixture
def desk():
    desk = Desk()
    desk.create()
    return desk


@pytest.mark.parametrize(
    ("asked", "version"),
    [
        (HeartbeatRequest(group_id="g", generation_id=1, member_id="m", group_instance_id="i"), 4),
        (ConsumerGroupHeartbeatRequest(group_id="g", member_epoch=0, instance_id="i"), 0),
    ],
)
def test_static_membership_is_refused(desk, asked, version):
    answer = desk.ask(asked, version)

    assert answer.error_code == ErrorCode.INVALID_REQUEST
    text = getattr(answer, "error_message", "static membership is not supported yet")
    assert "static membership is not supported yet" in text


def test_commits_of_static_members_are_refused(desk):
    partition = OffsetCommitRequestPartition(
        partition_index=0, committed_offset=1, committed_metadata=""
    )
    topic = OffsetCommitRequestTopic(name="orders", partitions=[partition])
    asked = OffsetCommitRequest(group_id="g", member_id="", group_instance_id="i", topics=[topic])
    answer = desk.ask(asked, 9)

    assert answer.topics[0].partitions[0].error_code == ErrorCode.INVALID_REQUEST
