# SPDX-License-Identifier: Apache-2.0
"""What is said of durations: percentiles of the last ones, and the longest of late."""

from kohort.server.metrics.durations import SAMPLES_MAX, WINDOW_NS, Durations, Turns

MS = 1_000_000


class Clock:
    def __init__(self):
        self.ns = 0

    def __call__(self):
        return self.ns


def test_nothing_measured_is_zero():
    assert Durations().read() == {"max": 0.0, "p50": 0.0, "p95": 0.0, "p99": 0.0, "p999": 0.0}
    assert Turns().idle_ratio(7) == 1.0


def test_percentiles():
    durations = Durations()
    for taken in range(1, 1001):
        durations.add(taken * MS)
    assert durations.read() == {"max": 1000, "p50": 501, "p95": 951, "p99": 991, "p999": 1000}


def test_only_the_last_ones_are_kept():
    durations = Durations()
    for _ in range(SAMPLES_MAX):
        durations.add(9 * MS)
    for _ in range(SAMPLES_MAX):
        durations.add(MS)
    assert durations.read()["p999"] == 1.0
    assert len(durations.samples) == SAMPLES_MAX
    assert durations.count == 2 * SAMPLES_MAX


def test_the_longest_is_told_for_a_window_and_no_longer_than_for_two():
    clock = Clock()
    durations = Durations(clock)
    durations.add(5 * MS)
    assert durations.read()["max"] == 5.0
    clock.ns += WINDOW_NS
    assert durations.read()["max"] == 5.0
    durations.add(MS)
    clock.ns += WINDOW_NS
    assert durations.read()["max"] == 1.0
    clock.ns += WINDOW_NS
    assert durations.read()["max"] == 0.0


def test_what_is_older_than_two_windows_is_forgotten_even_if_nobody_has_read():
    clock = Clock()
    durations = Durations(clock)
    durations.add(5 * MS)
    clock.ns += 2 * WINDOW_NS
    assert durations.read()["max"] == 0.0


def test_turns_tell_how_long_was_waited_and_how_long_worked():
    turns = Turns(Clock())
    turns.add(0, 2 * MS, 3 * MS)
    turns.add(10 * MS, 10 * MS, 13 * MS)
    assert turns.read_queued()["max"] == 2.0
    assert turns.read_taken()["max"] == 3.0
    assert turns.read_taken()["p50"] == 3.0
    assert turns.idle_ratio(18 * MS) == 0.75
