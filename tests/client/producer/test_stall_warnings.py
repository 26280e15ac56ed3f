# SPDX-License-Identifier: Apache-2.0
"""What a producer says of what it waits for."""

import pytest

from kohort.client.producer.stall_warnings import LASTS_S, StallWarnings


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_what_lasts_is_said_once_and_so_is_its_end(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    patience = StallWarnings(clock)
    for _ in range(7):
        patience.failed("node 1", "refused")
        clock.now += LASTS_S / 2
    assert caplog.messages == ["records wait for node 1: refused"]
    patience.passed("node 1")
    patience.passed("node 1")
    assert caplog.messages[1:] == ["records have waited 3.5 s for node 1"]
    assert {one.levelname for one in caplog.records} == {"WARNING"}


def test_what_passes_at_once_is_not_worth_a_line(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    patience = StallWarnings(clock)
    for _ in range(5):
        patience.failed("node 1", "refused")
        patience.passed("node 1")
        clock.now += LASTS_S
    assert caplog.messages == []


def test_one_that_fails_is_not_excused_by_another_that_works(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    patience = StallWarnings(clock)
    for _ in range(2):
        patience.failed("node 1", "refused")
        patience.passed("node 2")
        clock.now += LASTS_S
    assert caplog.messages == ["records wait for node 1: refused"]
