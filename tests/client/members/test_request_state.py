# SPDX-License-Identifier: Apache-2.0
"""One request at a time: which answer counts, and when the next request may leave."""

from kohort.client.members.request_state import AT_ONCE, InFlightRequest, RequestState
from kohort.client.members.retry_backoff import RetryBackoff
from kohort.terms import Millis

NOW, LATER = Millis(1000), Millis(2000)


def asking() -> RequestState:
    made = RequestState(RetryBackoff())
    made.has_coordinator = True
    return made


def test_only_the_answer_to_the_last_request_counts() -> None:
    one = asking()
    first = one.ask(NOW)
    one.failed(NOW)
    second = one.ask(LATER)
    assert one.answered(first) is None
    assert one.answered(second) == InFlightRequest(second, LATER)
    assert one.answered(second) is None


def test_a_request_at_a_time_and_only_to_a_coordinator() -> None:
    one = asking()
    assert one.possible
    one.ask(NOW)
    assert not one.possible
    one.forget()
    assert one.possible
    one.lose_coordinator()
    assert not one.possible


def test_each_failure_in_a_row_makes_the_pause_longer() -> None:
    one = asking()
    ends = []
    for _ in range(3):
        one.failed(NOW)
        ends.append(one.not_before - NOW)
    assert ends == [100, 200, 400]
    one.succeeded()
    assert one.not_before == AT_ONCE
    one.failed(NOW)
    assert one.not_before == NOW + 100


def test_another_coordinator_is_asked_at_once_the_first_time() -> None:
    one = asking()
    assert one.moved(NOW)
    assert one.not_before == AT_ONCE
    assert not one.moved(NOW), "nobody has found it yet"
    assert one.not_before == NOW + 200
