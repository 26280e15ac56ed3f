# SPDX-License-Identifier: Apache-2.0
"""Pauses grow up to a bound, and differ between members."""

import pytest

from kohort.client.members.retry_backoff import RetryBackoff


@pytest.mark.parametrize(
    ("failures", "pause_ms"), [(1, 100), (2, 200), (3, 400), (4, 800), (5, 1000), (99, 1000)]
)
def test_a_pause_doubles_up_to_the_bound(failures: int, pause_ms: int) -> None:
    assert RetryBackoff().after(failures) == pause_ms


@pytest.mark.parametrize(("jitter", "pause_ms"), [(-200, 160), (0, 200), (200, 240)])
def test_jitter_is_in_thousandths(jitter: int, pause_ms: int) -> None:
    assert RetryBackoff(jitter_permille=jitter).after(2) == pause_ms
