# SPDX-License-Identifier: Apache-2.0
"""What members may say about their assignors."""

import pytest
from tests.coordinator.assigning import offer
from tests.coordinator.consumers import beat
from tests.coordinator.desk import Desk

from kohort.coordinator.consumer.client_side import offers
from kohort.coordinator.consumer.client_side.offers import ClientAssignor
from kohort.errors import ApiError, ErrorCode

BAD = {
    "has no name": [offer(" ")],
    "client assignor x is listed twice": [offer("x"), offer("y"), offer("x")],
    "reads 3 to 2, expected the lower first": [offer("x", 3, 2)],
    "has metadata of version 4, which it does not read itself": [offer("x", 1, 3, version=4)],
    "has metadata of version 0, which it does not read itself: expected 1 to 3": [
        offer("x", 1, 3, version=0)
    ],
}


@pytest.mark.parametrize("why", BAD)
def test_what_makes_no_sense_is_refused_before_any_group_is_asked(why):
    """K848-138."""
    with pytest.raises(ApiError, match=why) as refused:
        offers.check(BAD[why])
    assert refused.value.code is ErrorCode.INVALID_REQUEST
    desk = Desk()
    answer = beat(desk, "a", 0, client_assignors=BAD[why])
    assert (answer.error_code, desk.log) == (ErrorCode.INVALID_REQUEST, [])


@pytest.mark.parametrize(
    "fine",
    [
        None,
        [],
        [offer()],
        [offer("x", -1, 7, version=-1), offer("y", 3, 3)],
        [offer("x", reason=-128)],
    ],
)
def test_what_makes_sense_is_taken(fine):
    """K848-015, K848-138."""
    offers.check(fine)
    assert beat(Desk(), "a", 0, client_assignors=fine).error_code in (0, 20000)


def test_order_and_all_else_stay_as_they_were_said():
    """K848-015, K848-069."""
    listed = [
        offer("y", -1, 3, reason=-7, version=2, metadata=b"\0\xff\x01"),
        offer("x"),
    ]
    assert offers.of_heartbeat(listed) == (
        ClientAssignor("y", -1, 3, -7, 2, b"\0\xff\x01"),
        ClientAssignor("x", 0, 0, 0, 0, b""),
    )


@pytest.mark.parametrize(
    ("lowest", "highest", "reads"), [(1, 3, True), (2, 2, True), (0, 1, False), (3, 4, False)]
)
def test_which_versions_it_reads(lowest, highest, reads):
    assert ClientAssignor("x", 1, 3).reads(lowest, highest) is reads


def test_an_assignor_of_a_classic_member():
    """K848-119."""
    assert offers.of_classic("sticky", b"ab") == ("sticky", -1, -1, 0, -1, b"ab")
    silent = offers.of_classic("sticky", b"")
    assert silent.reads(-5, 300)
    assert (silent.version, silent.metadata) == (-1, b"")


def test_metadata_that_no_record_has_room_for_is_refused():
    offers.check_size([ClientAssignor("x", metadata=b"m" * 50), ClientAssignor("y")], 100)
    with pytest.raises(ApiError, match="takes 51 bytes, expected at most 50"):
        offers.check_size(
            [ClientAssignor("x", metadata=b"m" * 50), ClientAssignor("y", metadata=b"m")], 100
        )


def test_ten_megabytes_are_refused_and_the_member_stays():
    desk = Desk()
    assert beat(desk, "a", 0, client_assignors=[offer()]).error_code == 20000
    written = len(desk.log)
    answer = beat(desk, "a", 1, client_assignors=[offer(metadata=bytes(10_000_000))])
    assert answer.error_code == ErrorCode.INVALID_REQUEST
    assert "takes 10000000 bytes, expected at most 524288" in answer.error_message
    assert len(desk.log) == written
    assert beat(desk, "a", 1).error_code == 20000
