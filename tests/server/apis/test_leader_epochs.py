"""OffsetForLeaderEpoch: where an epoch ended."""

import pytest

from kohort.errors import ErrorCode
from kohort.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)


@pytest.mark.parametrize(
    ("current", "asked", "expected"),
    [
        (0, 0, (0, 0, 1)),
        (-1, 0, (0, 0, 1)),
        (-1, 5, (0, -1, -1)),
        (-1, -1, (0, -1, -1)),
        (-1, -2, (0, -2, 0)),  # before all that are known: where the first of these began
        (9, 0, (ErrorCode.UNKNOWN_LEADER_EPOCH, -1, -1)),
    ],
)
def test_where_an_epoch_ended(desk, current, asked, expected):
    desk.create()
    desk.produce()
    wanted = OffsetForLeaderPartition(partition=0, current_leader_epoch=current, leader_epoch=asked)
    topics = [OffsetForLeaderTopic(topic="orders", partitions=[wanted])]
    (answer,) = desk.ask(OffsetForLeaderEpochRequest(topics=topics), 4).topics

    (one,) = answer.partitions
    assert (one.error_code, one.leader_epoch, one.end_offset) == expected
