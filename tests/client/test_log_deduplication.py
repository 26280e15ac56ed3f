# SPDX-License-Identifier: Apache-2.0
"""What is tried again and again is not said again and again."""

from kohort.client.log_deduplication import LASTS_S, LogDeduplicator


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


def test_the_same_text_is_said_once_and_again_where_it_lasts():
    clock = Clock()
    repeats = LogDeduplicator(clock)
    assert [repeats.is_due("away") for _ in range(3)] == [True, False, False]
    clock.now += LASTS_S - 1
    assert not repeats.is_due("away")
    clock.now += 1
    assert [repeats.is_due("away") for _ in range(2)] == [True, False]


def test_another_text_is_said_at_once():
    repeats = LogDeduplicator(Clock())
    assert [repeats.is_due(text) for text in ("a", "b", "b", "a")] == [True, True, False, True]


def test_what_has_worked_meanwhile_is_said_again():
    repeats = LogDeduplicator(Clock())
    assert repeats.is_due("away")
    repeats.end()
    assert repeats.is_due("away")
