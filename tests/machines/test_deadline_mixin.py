"""Deadlines are met one at a time, and one that could not be met comes again."""

from kohort.machines.deadline_mixin import AGAIN_MS, DeadlineMixin
from kohort.machines.deadlines import Deadlines
from kohort.machines.effects import Effects


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
