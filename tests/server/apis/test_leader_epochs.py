# SPDX-License-Identifier: Apache-2.0
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
    assert epoch_end(desk, current, asked) == expected


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (-2, (-2, 0)),
        (0, (0, 3)),  # where the next that has records begins
        (1, (0, 3)),  # it led, and wrote nothing
        (2, (2, 5)),
        (3, (2, 5)),
        (4, (4, 6)),
        (5, (-1, -1)),
    ],
)
def test_an_epoch_ends_where_the_next_one_begins(desk, asked, expected):
    """KIP-101: the largest epoch up to the one that is asked for."""
    led_in_turn(desk)
    assert epoch_end(desk, -1, asked) == (0, *expected)


def test_epochs_whose_records_are_gone_end_where_the_log_begins(desk):
    partition = led_in_turn(desk)
    partition.log.move_start(4)
    found = [epoch_end(desk, -1, asked)[1:] for asked in range(5)]
    assert found == [(0, 4), (1, 4), (2, 5), (2, 5), (4, 6)]


def led_in_turn(desk):
    """Epoch 0 has offsets 0 to 2, epoch 2 has 3 and 4, epoch 4 has 5."""
    desk.create()
    partition = desk.cluster.partition("orders", 0)
    for records, leaders in ((3, 2), (2, 2), (1, 0)):
        desk.produce(records=records)
        for _ in range(leaders):
            partition.log.next_leader()
    return partition


def epoch_end(desk, current, asked):
    """Error, epoch and end."""
    wanted = OffsetForLeaderPartition(partition=0, current_leader_epoch=current, leader_epoch=asked)
    topics = [OffsetForLeaderTopic(topic="orders", partitions=[wanted])]
    (answer,) = desk.ask(OffsetForLeaderEpochRequest(topics=topics), 4).topics

    (one,) = answer.partitions
    return one.error_code, one.leader_epoch, one.end_offset
