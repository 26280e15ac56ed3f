# SPDX-License-Identifier: Apache-2.0
"""What members of both protocols do alike: lose connections, let go, and say good-bye."""

from enum import StrEnum
from typing import NamedTuple

import pytest

from kohort.client.members.any_membership import AnyMembership
from kohort.client.members.events import CoordinatorWanted, Event, GroupLeft, HangUp, PartitionsLost
from kohort.errors import ApiError, ErrorCode
from kohort.terms import GroupId, MemberId, Millis

NOW = Millis(1000)


class Step(StrEnum):
    OUTSIDE = "outside"
    INSIDE = "inside"
    LEAVING = "leaving"


class Wish(NamedTuple):
    rebalance_timeout_ms: int = 300


class Member(AnyMembership[int, Wish, Step]):
    """Says nothing; `asks_anew` counts how often it would not know what became of a request."""

    def __init__(self, *, known: bool = True) -> None:
        super().__init__(GroupId("g"), Wish(), None, outside=Step.OUTSIDE, leaving=Step.LEAVING)
        self.known = known
        self.asks_anew = 0
        self.stage = Step.INSIDE
        self.coordinator_found()

    def _ask_anew(self) -> None:
        self.asks_anew += 1

    def _start_over(self) -> None:
        self._request_state.forget()

    def _has_to_say_good_bye(self) -> bool:
        return self.known

    @property
    def commits_as(self) -> tuple[MemberId, int] | None:
        return MemberId("m"), 1

    def _due(self) -> Millis | None:
        return self._soon if self._request_state.possible else None

    def _silence_ms(self) -> int:
        return 500

    def _denied(self, error: ApiError, _now: Millis) -> list[Event[int]]:
        return self._put_out(error)

    def _put_out(self, error: ApiError) -> list[Event[int]]:
        self._start_over()
        return [*self._owned_partitions.lose(error)]


def leaving() -> Member:
    member = Member()
    assert member._depart() == []
    assert member.stage is Step.LEAVING
    member._request_state.ask(NOW)
    return member


def test_a_lost_connection_ends_the_request_and_the_coordinator_is_looked_for_once() -> None:
    member = Member()
    member._request_state.ask(NOW)
    assert member.waits_for_answer
    assert member.connection_lost(NOW) == [CoordinatorWanted()]
    assert not member.waits_for_answer
    assert member.asks_anew == 1
    assert member.connection_lost(NOW) == []


def test_nobody_outside_looks_for_a_coordinator() -> None:
    member = Member()
    member.stage = Step.OUTSIDE
    assert member.connection_lost(NOW) == []


def test_what_is_being_given_up_is_owned_and_not_consumable() -> None:
    member = Member()
    member._owned_partitions.take({1, 2})
    member._owned_partitions.revoke([2], member._patience(NOW))
    assert (member.owned, member.consumable) == ({1, 2}, {1})
    assert member.release_by == NOW + 300


def test_nobody_departs_with_a_partition() -> None:
    member = Member()
    member._owned_partitions.take({1})
    assert member._depart() == []
    assert member.stage is Step.INSIDE


def test_whom_nobody_knows_is_out_without_a_good_bye() -> None:
    member = Member(known=False)
    assert member._depart() == [GroupLeft()]
    assert member.stage is Step.OUTSIDE


@pytest.mark.parametrize("code", [None, ErrorCode.UNKNOWN_MEMBER_ID])
def test_a_good_bye_that_is_heard_or_refused_for_good_is_one(code: ErrorCode | None) -> None:
    member = leaving()
    assert member._heard_good_bye(ApiError(code) if code else None, NOW) == [GroupLeft()]
    assert member.stage is Step.OUTSIDE


@pytest.mark.parametrize(
    ("code", "looks"),
    [(ErrorCode.NOT_COORDINATOR, True), (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, False)],
)
def test_a_good_bye_is_said_again_after_any_other_error(code: ErrorCode, looks: bool) -> None:  # noqa: FBT001
    member = leaving()
    assert member._heard_good_bye(ApiError(code), NOW) == ([CoordinatorWanted()] if looks else [])
    assert member.stage is Step.LEAVING
    assert not member.waits_for_answer


GONE = ApiError(ErrorCode.UNKNOWN_MEMBER_ID)


def test_a_refusal_counts_where_it_names_the_present_epoch() -> None:
    member = Member()
    member._owned_partitions.take({1})
    assert member.refused_as(MemberId("other"), 1, GONE, NOW) == []
    assert member.wake_at() is None
    assert member.refused_as(MemberId("m"), 0, GONE, NOW) == []
    assert member.wake_at() == NOW  # to hear what is true now
    assert member.refused_as(MemberId("m"), 1, GONE, NOW) == [PartitionsLost((1,), GONE)]


def test_who_says_good_bye_is_out_already() -> None:
    assert leaving().refused_as(MemberId("m"), 1, GONE, NOW) == []


def test_what_was_asked_before_the_refusal_is_not_to_be_carried_out_later() -> None:
    member = Member()
    member._request_state.ask(NOW)
    assert member.refused_as(MemberId("m"), 1, GONE, NOW) == [HangUp()]


def test_silence_counts_from_when_the_coordinator_was_asked_last() -> None:
    member = Member()
    member._heard_at = NOW
    assert member.silent_at() is None  # it owns nothing
    member._owned_partitions.take({1})
    assert member.wake_at() == member.silent_at() == NOW + 500
    member.ask_soon(NOW)
    assert member.wake_at() == NOW
    assert member.expire(Millis(NOW + 499)) == []
    lost, wanted = member.expire(Millis(NOW + 500))
    assert isinstance(lost, PartitionsLost)
    assert lost.error.message == "the coordinator has said nothing for 500 ms, which is a session"
    assert wanted == CoordinatorWanted()
