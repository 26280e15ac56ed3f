# SPDX-License-Identifier: Apache-2.0
"""Keyed deadlines: set, moved, cancelled, met in order, and nothing left behind."""

from random import Random

import pytest

from kohort.machines.deadlines import AGAIN_MS, DeadlineMixin, Deadlines, Session
from kohort.machines.effects import Effects


def due(deadlines, now):
    """The details of everything that is due, in order."""
    found = []
    while (one := deadlines.pop_due(now)) is not None:
        found.append(*one[1])
    return found


def test_deadlines_are_met_in_the_order_of_their_times_then_as_they_were_set():
    deadlines = Deadlines()
    for key, at in [("c", 30), ("a", 10), ("b", 20), ("a2", 10)]:
        deadlines.set(key, at, key)

    assert deadlines.wake_at() == 10
    assert due(deadlines, 9) == []
    assert due(deadlines, 20) == ["a", "a2", "b"]
    assert ("a" in deadlines, "c" in deadlines, len(deadlines)) == (False, True, 1)
    assert due(deadlines, 1000) == ["c"]
    assert deadlines.wake_at() is None


def test_a_moved_deadline_is_met_at_its_later_time_alone():
    deadlines = Deadlines()
    deadlines.set("a", 10, "a")
    deadlines.set("a", 50, "a")

    assert deadlines.at("a") == 50
    assert due(deadlines, 49) == []
    assert deadlines.wake_at() == 50
    assert due(deadlines, 50) == ["a"]
    assert due(deadlines, 1000) == []


def test_setting_a_deadline_again_replaces_it():
    deadlines = Deadlines()
    deadlines.set("a", 10, "first")
    deadlines.set("a", 5, "earlier")
    assert due(deadlines, 7) == ["earlier"]
    deadlines.set("a", 10, "first")
    deadlines.set("a", 20, "later")
    assert due(deadlines, 19) == []
    assert due(deadlines, 20) == ["later"]


def test_a_cancelled_deadline_is_never_met():
    deadlines = Deadlines()
    deadlines.set("a", 10, "a")
    deadlines.cancel("a")
    deadlines.cancel("never set")

    assert deadlines.at("a") is None
    assert deadlines.wake_at() is None
    assert due(deadlines, 1000) == []


@pytest.mark.parametrize("anew", ["cancelled", "earlier"])
def test_what_is_left_in_the_heap_goes_when_it_is_met(anew):
    deadlines = Deadlines()
    for turn in range(100):
        if anew == "cancelled":
            deadlines.cancel("a")
            deadlines.set("a", 1000 + turn, "a")
        else:
            deadlines.set("a", 1000 - turn, "a")
    deadlines.set("a", 5000, "a")

    assert due(deadlines, 1100) == []
    assert len(deadlines) == 1
    assert len(deadlines._heap) == 1  # growth shows nowhere else
    assert due(deadlines, 5000) == ["a"]


@pytest.mark.parametrize("anew", ["cancelled", "earlier"])
def test_the_heap_stays_as_small_as_what_is_live(anew):
    """Long before the time comes that the places left behind are waiting for."""
    deadlines = Deadlines()
    deadlines.set("rests", 1_000_000_000, "rests")
    deadlines.set("first", 1, "first")
    for turn in range(1000):
        if anew == "cancelled":
            deadlines.cancel("a")
        deadlines.set("a", 1_000_000 - turn, "a")
        assert len(deadlines._heap) <= 2 * len(deadlines)

    assert due(deadlines, 2_000_000) == ["first", "a"]
    assert due(deadlines, 1_000_000_000) == ["rests"]


@pytest.mark.parametrize("seed", range(20))
def test_any_mixture_is_as_a_plain_table_would_have_it(seed):
    chance = Random(seed)
    deadlines, table, now = Deadlines(), {}, 0
    for step in range(400):
        key = chance.choice("abcdef")
        match chance.randrange(4):
            case 0:
                at = now + chance.randrange(1, 50)
                deadlines.set(key, at, (key, step))
                table[key] = at, step
            case 1 if key in table:
                at = table[key][0] + chance.randrange(20)
                deadlines.set(key, at, (key, table[key][1]))
                table[key] = at, table[key][1]
            case 2:
                deadlines.cancel(key)
                table.pop(key, None)
            case _:
                now += chance.randrange(20)
                met = sorted((at, one, step) for one, (at, step) in table.items() if at <= now)
                if met:
                    assert deadlines.wake_at() <= met[0][0]
                assert sorted(due(deadlines, now)) == sorted((one, step) for _, one, step in met)
                for _, one, _ in met:
                    del table[one]
        assert len(deadlines) == len(table)


def test_what_was_met_last_can_be_put_off():
    deadlines = Deadlines()
    deadlines.set("a", 10, "a")
    deadlines.put_off(15)
    assert deadlines.at("a") == 10
    assert due(deadlines, 10) == ["a"]
    deadlines.put_off(15)
    deadlines.put_off(12)
    assert due(deadlines, 14) == []
    assert due(deadlines, 15) == ["a"]


def test_a_sign_of_life_begins_a_session_anew():
    deadlines = Deadlines()
    session = Session(("session", "g", "a"), 30)
    deadlines.renew(session, 100)
    assert deadlines.at(session.key) == 130
    deadlines.renew(session, 120)
    assert deadlines.at(session.key) == 150
    deadlines.renew(session._replace(timeout_ms=5), 121)
    assert (deadlines.at(session.key), deadlines.wake_at()) == (126, 126)


class Alarm(DeadlineMixin):
    def __init__(self):
        self.deadlines = Deadlines()
        self.met = []

    def meet(self, kind, now, *about):
        self.met.append((kind, now, *about))
        return Effects()


def test_each_deadline_is_met_with_what_it_is_about():
    alarm = Alarm()
    alarm.deadlines.set(("wake", "ann"), 10, "gently")
    alarm.deadlines.set(("wake", "ben"), 20)
    assert alarm.wake_at() <= 10
    assert len(list(alarm.tick(10))) == 1
    assert alarm.met == [("wake", 10, "ann", "gently")]
    assert 10 < alarm.wake_at() <= 20


def test_one_that_could_not_be_met_comes_again():
    alarm = Alarm()
    alarm.deadlines.set(("wake", "ann"), 10)
    next(alarm.tick(10))
    alarm.put_off(10)
    assert list(alarm.tick(10)) == []
    assert len(list(alarm.tick(10 + AGAIN_MS))) == 1


def test_deadlines_move_with_the_clock():
    alarm = Alarm()
    alarm.deadlines.set(("wake", "ann"), 10)
    alarm.clock_jumped(1000)
    assert list(alarm.tick(1009)) == []
    assert len(list(alarm.tick(1010))) == 1
