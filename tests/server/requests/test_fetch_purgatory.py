# SPDX-License-Identifier: Apache-2.0
"""Parked fetches: woken by enough, or by time, and once."""

import weakref

from kohort.server.requests.fetch_purgatory import FetchPurgatory
from kohort.server.scheduler import never


def parked(waiting, token, keys, *, missing=1, deadline=1000):
    waiting.park(token, token, keys, missing_bytes=missing, deadline=deadline)


def tokens(found):
    return [one.token for one in found]


def test_enough_bytes_wake():
    waiting = FetchPurgatory()
    parked(waiting, "f", ["a", "b"], missing=100)

    assert not waiting.arrived("a", 60)
    assert not waiting.arrived("c", 60)
    assert tokens(waiting.arrived("b", 40)) == ["f"]
    assert not waiting
    assert not waiting.arrived("a", 100)
    assert not waiting.due(5000)


def test_time_wakes_in_order():
    waiting = FetchPurgatory()
    parked(waiting, "late", ["a"], deadline=300)
    parked(waiting, "early", ["a"], deadline=100)
    parked(waiting, "same", ["a"], deadline=100)

    assert waiting.wake_at() == 100
    assert not waiting.due(99)
    assert tokens(waiting.due(100)) == ["early", "same"]
    assert waiting.wake_at() == 300
    assert tokens(waiting.due(900)) == ["late"]
    assert waiting.wake_at() is None


def test_who_has_been_woken_sets_no_alarm():
    waiting = FetchPurgatory()
    parked(waiting, "f", ["a"], deadline=100)
    waiting.arrived("a", 1)

    assert waiting.wake_at() is None


def test_a_client_that_left_is_forgotten():
    waiting = FetchPurgatory()
    parked(waiting, "gone", ["a"])
    parked(waiting, "here", ["a"])
    waiting.cancel("gone")
    waiting.cancel("never there")

    assert len(waiting) == 1
    assert tokens(waiting.arrived("a", 1)) == ["here"]


def test_what_a_client_that_left_has_asked_for_is_not_kept():
    """Its place among the deadlines stays as long as an earlier one is there: for weeks."""

    class Asked:
        def __call__(self):
            raise AssertionError("nobody is there to be answered")

    waiting, asked = FetchPurgatory(), Asked()
    parked(waiting, "first", ["a"], deadline=100)
    gone = waiting.park("gone", asked, ["a"], missing_bytes=1, deadline=200)
    kept = weakref.ref(asked)
    del asked
    waiting.cancel("gone")
    assert kept() is None
    assert not gone.run(never)


def test_a_partition_that_is_gone_wakes_everybody():
    waiting = FetchPurgatory()
    parked(waiting, "one", ["a"], missing=10**6)
    parked(waiting, "two", ["a", "b"], missing=10**6)
    parked(waiting, "three", ["b"], missing=10**6)

    assert tokens(waiting.changed("a")) == ["one", "two"]
    assert len(waiting) == 1


def test_the_same_partition_named_twice_is_no_trouble():
    waiting = FetchPurgatory()
    parked(waiting, "f", ["a", "a"])

    assert tokens(waiting.arrived("a", 1)) == ["f"]
    assert not waiting


def test_answered_fetches_do_not_pile_up_until_their_time_is_over():
    """A client may be willing to wait for weeks, and be answered at once all the same."""
    waiting = FetchPurgatory()
    for number in range(5000):
        waiting.park(number, None, ["p"], missing_bytes=1, deadline=1 << 40)
        waiting.arrived("p", 1)

    assert len(waiting) == 0
    assert len(waiting._deadlines) < 600


def test_those_that_wait_are_listed():
    waiting = FetchPurgatory()
    parked(waiting, "f", ["a"])
    parked(waiting, "g", ["b"])
    waiting.cancel("f")
    assert tokens(waiting) == ["g"]
