# SPDX-License-Identifier: Apache-2.0
"""The wall may jump; what is waited for takes as long as ever."""

import pytest
from tests.coordinator.consumers import request
from tests.server.desk import Desk

from kohort.errors import ErrorCode
from kohort.server.clock import Clock


class Time:
    def __init__(self):
        self.wall, self.steady = 1_700_000_000.0, 50.0

    def pass_(self, seconds):
        self.wall += seconds
        self.steady += seconds


def test_it_goes_as_the_monotonic_clock_does_until_it_looks():
    time = Time()
    clock = Clock(lambda: time.wall, lambda: time.steady)
    begun = clock()
    time.pass_(10)
    assert clock() == begun + 10_000
    time.wall += 7200  # the machine was asleep: the monotonic clock stood still
    assert clock() == begun + 10_000

    assert clock.look() == 7_200_000
    assert clock() == begun + 7_210_000
    assert clock.look() == 0


def test_it_may_be_set_back_and_small_steps_are_let_be():
    time = Time()
    clock = Clock(lambda: time.wall, lambda: time.steady)
    begun = clock()
    time.wall += 0.4
    assert (clock.look(), clock()) == (0, begun)
    time.wall -= 3600.4
    assert (clock.look(), clock()) == (-3_600_000, begun - 3_600_000)


def join(desk, member_id):
    return desk.ask(request(member_id, 0), 1)


@pytest.mark.parametrize("jump_ms", [7_200_000, -3_600_000])
def test_a_jump_ends_no_session_and_none_lasts_longer(jump_ms):
    desk = Desk()
    desk.create()
    epoch = join(desk, "a").member_epoch
    desk.wait(40_000)
    desk.jump(jump_ms)

    desk.wait(4_000)
    assert desk.ask(request("a", epoch), 1).error_code == 0
    desk.jump(-jump_ms)
    desk.wait(46_000)
    assert desk.ask(request("a", epoch), 1).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_records_carry_the_time_of_the_wall():
    """A producer whose clock is right is not refused after the machine was asleep."""
    desk = Desk()
    desk.create()
    desk.jump(7_200_000)
    assert desk.produce().error_code == 0
    log = desk.cluster.partition("orders", 0).log
    assert log.max_timestamp == desk.now
