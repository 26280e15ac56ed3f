# SPDX-License-Identifier: Apache-2.0
"""What is known of a partition: whether it may be asked for, and what there is to hand out."""

from typing import Any

import pytest
from tests.client.fetcher.batches import T0, answer, batch

from kohort.client.fetcher.partition_state import TopicPartitionState
from kohort.client.fetcher.record import OffsetAndEpoch
from kohort.client.fetcher.session import PartitionFetch
from kohort.client.fetcher.settings import FetchSettings
from kohort.client.network.cluster import Node
from kohort.errors import ApiError, ErrorCode
from kohort.terms import TopicId

LEADER, REPLICA = Node(1, "a", 1), Node(2, "b", 2)
REFUSED = ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)


def state(place: OffsetAndEpoch | str | None = None, **settings: Any) -> TopicPartitionState:
    """A partition that begins at 5, and whose leader is known."""
    made = TopicPartitionState(T0, FetchSettings(**settings))
    made.go_to(OffsetAndEpoch(5) if place is None else place)
    made.leader, made.leader_epoch = LEADER, 4
    return made


def test_a_partition_is_asked_for_where_it_goes_on() -> None:
    one = state(OffsetAndEpoch(5, 3))
    one.checked_epoch = 4
    one.topic_id = TopicId(b"i" * 16)
    assert one.wanted(0.0) == PartitionFetch(5, 4, 3, 1 << 20, one.topic_id)
    assert one.buffer is not None
    one.buffer.add(answer(batch(5, 6, epoch=4)))
    assert one.wanted(0.0) == PartitionFetch(7, 4, 4, 1 << 20, one.topic_id)
    assert one.position == OffsetAndEpoch(5, 3)


def test_what_keeps_a_partition_from_being_asked_for() -> None:
    def paused(one: TopicPartitionState) -> None:
        one.paused = True

    def nobody(one: TopicPartitionState) -> None:
        one.look_up(0.0)

    def rests(one: TopicPartitionState) -> None:
        one.not_before = 10.5

    def refused(one: TopicPartitionState) -> None:
        one.error = REFUSED

    def damaged(one: TopicPartitionState) -> None:
        assert one.buffer is not None
        one.buffer.add(answer(b"x" * 70))

    def full(one: TopicPartitionState) -> None:
        assert one.buffer is not None
        one.buffer.add(answer(batch(5)))

    def unknown(one: TopicPartitionState) -> None:
        one.go_to("latest")

    def unchecked(one: TopicPartitionState) -> None:
        one.go_to(OffsetAndEpoch(5, 3))

    for keep in (paused, nobody, rests, refused, damaged, full, unknown, unchecked):
        one = state(max_partition_fetch_bytes=len(batch(5)))
        one.checked_epoch = 4
        assert one.wanted(10.0) is not None, keep
        keep(one)
        assert one.wanted(10.0) is None, keep


def test_a_share_is_kept_ready_and_no_more() -> None:
    one = state(max_partition_fetch_bytes=len(batch(5)) + 1)
    one.checked_epoch = 4
    assert one.buffer is not None
    one.buffer.add(answer(batch(5)))
    assert one.wanted(0.0) is not None
    one.buffer.add(answer(batch(6)))
    assert one.wanted(0.0) is None
    one.take(1)
    assert one.wanted(0.0) is None  # that answer is not known yet to be read to its end
    one.take(1)
    assert one.wanted(0.0) is not None


@pytest.mark.parametrize(
    ("place", "leader_epoch", "checked_epoch", "expected"),
    [
        (OffsetAndEpoch(5, 3), 4, 3, True),  # the leader is a new one
        (OffsetAndEpoch(5, 3), 4, 4, False),
        (OffsetAndEpoch(5, 3), 4, 5, False),  # what is known of leaders may be old
        (OffsetAndEpoch(5, 3), 4, -1, True),  # as after a seek
        (OffsetAndEpoch(5, -1), 4, -1, False),  # nothing is known of the record before
        (OffsetAndEpoch(5, 3), -1, -1, False),  # a broker that tells no epochs
        ("latest", 4, -1, False),
    ],
)
def test_a_new_leader_has_to_be_checked(
    place: Any,
    leader_epoch: int,
    checked_epoch: int,
    expected: bool,  # noqa: FBT001
) -> None:
    one = state(place)
    one.leader_epoch, one.checked_epoch = leader_epoch, checked_epoch
    assert one.has_to_be_checked is expected


def test_who_is_asked() -> None:
    one = state()
    assert one.node == LEADER
    one.replica = REPLICA
    assert one.node == REPLICA
    one.look_up(7.0)
    assert (one.node, one.leader, one.not_before) == (None, None, 7.0)


@pytest.mark.parametrize(
    ("where", "reset"), [("earliest", "earliest"), ("latest", "latest"), (None, "by_duration:PT1H")]
)
def test_to_go_where_nobody_knows_yet(where: str | None, reset: str) -> None:
    one = state(auto_offset_reset="by_duration:PT1H")
    one.error = REFUSED
    one.go_to(where)
    assert (one.position, one.reset, one.error) == (None, reset, None)
    assert not one.is_ready
    assert one.take(5) == []


def test_to_go_to_a_place_drops_what_was_there() -> None:
    one = state()
    assert one.buffer is not None
    one.buffer.add(answer(batch(5, 6)))
    one.error, one.checked_epoch = REFUSED, 4
    one.go_to(OffsetAndEpoch(6))
    assert (one.position, one.reset, one.error) == (OffsetAndEpoch(6), None, None)
    assert (one.is_ready, one.checked_epoch, one.take(5)) == (False, -1, [])


def test_what_is_paused_stays() -> None:
    one = state()
    assert one.buffer is not None
    one.buffer.add(answer(batch(5, 6)))
    assert [record.offset for record in one.take(1)] == [5]
    one.paused = True
    assert (one.is_ready, one.take(1), one.position) == (False, [], OffsetAndEpoch(6, 0))
    one.error = REFUSED
    assert not one.is_ready
    one.paused = False
    assert [record.offset for record in one.take(5)] == [6]
    assert one.trouble is REFUSED


def test_trouble_of_the_partition_and_of_its_bytes() -> None:
    one = state()
    assert one.trouble is None
    assert one.buffer is not None
    one.buffer.add(answer(b"x" * 70))
    assert one.trouble is one.buffer.error is not None
    assert one.is_ready  # somebody has to be told
    one.error = REFUSED
    assert one.trouble is REFUSED
    one.go_to("latest")
    assert one.trouble is None
