"""What is not there yet is refused in words."""

import pytest
from tests.server.desk import Desk

from kohort.errors import ErrorCode
from kohort.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest


@pytest.fixture
def desk():
    desk = Desk()
    desk.create()
    return desk


def test_a_regular_expression_is_refused(desk):
    asked = ConsumerGroupHeartbeatRequest(
        group_id="g", member_id="m", member_epoch=0, subscribed_topic_regex="a.*"
    )
    answer = desk.ask(asked, 1)

    assert answer.error_code == ErrorCode.INVALID_REQUEST
    assert "'a.*': server-side regular expressions are not supported yet" in answer.error_message
