# SPDX-License-Identifier: Apache-2.0
"""What a member has: first it lets go, then it takes."""

import pytest

from kohort.client.members.events import PartitionsAssigned, PartitionsLost, PartitionsRevoked
from kohort.client.members.owned_partitions import OwnedPartitions
from kohort.errors import ApiError, ErrorCode
from kohort.terms import Millis

SOON, LATER = Millis(1000), Millis(2000)
NO = ApiError(ErrorCode.UNKNOWN_MEMBER_ID)


def holding(*partitions: int) -> OwnedPartitions[int]:
    made: OwnedPartitions[int] = OwnedPartitions()
    made.take(set(partitions))
    return made


def test_only_what_is_new_is_taken() -> None:
    one = holding(1)
    assert one.take({3, 2, 1}) == [PartitionsAssigned((2, 3))]
    assert one.take({2}) == []
    assert one.owned == one.not_revoking == {1, 2, 3}


def test_what_is_revoked_stays_owned_until_it_is_released() -> None:
    one = holding(1, 2, 3)
    assert one.revoke([3, 2, 9], SOON) == [PartitionsRevoked((2, 3))]
    assert one.owned == {1, 2, 3}
    assert one.not_revoking == {1}
    one.release(frozenset({2}))
    assert (one.owned, one.revoking) == ({1, 3}, {3})


def test_nothing_is_taken_before_all_is_released() -> None:
    one = holding(1)
    one.revoke([1], SOON)
    assert one.take({2}) == []
    one.release(frozenset({1}))
    assert one.take({2}) == [PartitionsAssigned((2,))]


def test_nothing_is_revoked_twice_and_the_first_deadline_stands() -> None:
    one = holding(1, 2)
    one.revoke([1], SOON)
    assert one.revoke([1], LATER) == []
    assert one.revoke([1, 2], LATER) == [PartitionsRevoked((2,))]
    assert one.release_by == SOON
    one.release(frozenset({1}))
    assert one.release_by == SOON
    one.release(frozenset({2}))
    assert one.release_by is None


def test_all_is_lost_at_once_and_without_a_deadline() -> None:
    one = holding(1, 2)
    assert one.lose(NO) == [PartitionsLost((1, 2), NO)]
    assert (one.not_revoking, one.release_by) == (frozenset(), None)
    assert holding().lose(NO) == []


def test_what_is_revoked_and_then_lost_is_named_and_released_once() -> None:
    one = holding(1, 2)
    one.revoke([1], SOON)
    assert one.lose(NO) == [PartitionsLost((2,), NO)]
    assert (one.owned, one.not_revoking, one.release_by) == ({1, 2}, frozenset(), None)
    one.release(frozenset({1}))
    assert one.take({1}) == []
    one.release(frozenset({2}))
    assert one.take({1}) == [PartitionsAssigned((1,))]


def test_nothing_is_lost_that_was_revoked_already() -> None:
    one = holding(1, 2)
    one.revoke([1, 2], SOON)
    assert one.lose(NO) == []
    assert one.lose(NO) == []
    assert (one.owned, one.release_by) == ({1, 2}, None)


@pytest.mark.parametrize("partitions", [{2}, {7}, {2, 7}, {}])
def test_a_release_of_what_is_not_to_be_given_up_gives_nothing_away(partitions: set[int]) -> None:
    one = holding(1, 2)
    one.revoke([1], SOON)
    one.release(frozenset(partitions))
    assert (one.owned, one.not_revoking, one.release_by) == ({1, 2}, {2}, SOON)


def test_a_release_that_is_repeated_after_the_partition_was_taken_again_is_harmless() -> None:
    one = holding(1)
    one.revoke([1], SOON)
    one.release(frozenset({1}))
    one.take({1})
    one.release(frozenset({1}))
    assert one.owned == one.not_revoking == {1}


def test_what_returns_from_an_eager_rebalance_is_named() -> None:
    mine = holding(1, 2)
    assert mine.lend(SOON) == [PartitionsRevoked((1, 2))]
    mine.release(frozenset({1, 2}))
    assert mine.take({2, 3}) == [PartitionsAssigned((2, 3), (2,))]
    mine.lend(SOON)
    mine.release(frozenset({2, 3}))
    assert mine.take(set()) == []  # others have it now
    assert mine.take({2}) == [PartitionsAssigned((2,))]
