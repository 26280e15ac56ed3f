# SPDX-License-Identifier: Apache-2.0
"""TxnOffsetCommit on the wire: who may, and under which code it is refused."""

import pytest
from tests.coordinator.consumers import request
from tests.server.desk import Desk
from tests.server.transactional import Producing, committed

from kohort.errors import ErrorCode


@pytest.fixture
def desk():
    desk = Desk()
    desk.create()
    return desk


@pytest.mark.parametrize(
    ("version", "epoch", "member", "code"),
    [
        (3, 2, "m", 0),
        (5, 2, "m", 0),
        (3, 1, "m", ErrorCode.ILLEGAL_GENERATION),
        (5, 3, "m", ErrorCode.ILLEGAL_GENERATION),
        (3, 2, "other", ErrorCode.UNKNOWN_MEMBER_ID),
        (3, -1, "", 0),
    ],
)
def test_a_member_is_fenced_by_its_epoch(desk, version, epoch, member, code):
    """K848-187."""
    joined = desk.ask(request("m", 0), 1)
    assert joined.member_epoch == 2
    one = Producing(desk)
    assert one.add_offsets() == 0

    assert one.commit_offsets(5, version=version, generation_id=epoch, member_id=member) == code
    one.end()
    assert committed(desk) == (-1 if code else 5)


def test_what_is_refused_before_the_transaction_is_asked(desk):
    one = Producing(desk)

    assert one.commit_offsets(5, topic="nowhere") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert one.commit_offsets(5, partition=3) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert one.commit_offsets(5, group="") == ErrorCode.INVALID_GROUP_ID
    assert one.state() == "Empty"
    one.id += 77
    assert one.commit_offsets(5) == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    one.name = "nobody"
    assert one.commit_offsets(5) == ErrorCode.INVALID_PRODUCER_ID_MAPPING


def test_a_missing_group_has_no_generation(desk):
    one = Producing(desk)

    assert one.commit_offsets(5, generation_id=4, member_id="m") == ErrorCode.ILLEGAL_GENERATION


@pytest.mark.parametrize(("version", "code"), [(1, 15), (2, 14)])
def test_a_coordinator_that_is_loading_is_told_as_older_clients_know_it(desk, version, code):
    one = Producing(desk)
    for driver in desk.cluster.transaction_coordinators.values():
        driver.resign("another node takes over")  # and has not begun to read

    assert one.commit_offsets(5, version=version) == code
