# SPDX-License-Identifier: Apache-2.0
"""The settings of fetching: what they are where nobody says, and what is refused."""

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.client.fetcher.settings import FetchSettings, duration_of
from kohort.client.settings import settings_of


def of(**settings: Any) -> FetchSettings:
    return settings_of(FetchSettings, {}, settings)


def test_defaults_are_upstreams() -> None:
    found = of()
    assert (found.fetch_min_bytes, found.fetch_max_bytes) == (1, 50 << 20)
    assert (found.fetch_max_wait_ms, found.max_partition_fetch_bytes) == (500, 1 << 20)
    assert (found.isolation_level, found.auto_offset_reset) == ("read_uncommitted", "latest")
    assert (found.check_crcs, found.client_rack, found.request_timeout_ms) == (True, None, 30_000)
    assert (found.key_deserializer, found.value_deserializer) == (None, None)
    assert not found.reads_committed


def test_who_reads_committed_records() -> None:
    assert of(isolation_level="read_committed").reads_committed


@pytest.mark.parametrize("reset", ["earliest", "latest", "none", "by_duration:PT1H"])
def test_resets(reset: str) -> None:
    assert of(auto_offset_reset=reset).auto_offset_reset == reset


@pytest.mark.parametrize(
    ("name", "value", "refusal"),
    [
        ("auto_offset_reset", "smallest", "expected earliest, latest, none or by_duration:"),
        ("auto_offset_reset", None, "auto_offset_reset is None, expected"),
        ("auto_offset_reset", "by_duration:", "'' is no duration, expected one such as PT1H"),
        ("auto_offset_reset", "by_duration:1H", "'1H' is no duration"),
        ("auto_offset_reset", "by_duration:P" + "9" * 400 + "D", "is no duration"),
        ("isolation_level", "committed", "read_uncommitted, read_committed"),
        ("fetch_max_wait_ms", -1, "fetch_max_wait_ms"),
        ("queued_max_bytes", 0, "queued_max_bytes"),
        ("request_timeout_ms", 0, "request_timeout_ms"),
        ("value_deserializer", "int", "value_deserializer"),
    ],
)
def test_what_makes_no_sense_is_refused(name: str, value: Any, refusal: str) -> None:
    with pytest.raises(ValueError, match=refusal):
        of(**{name: value})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("PT1H", timedelta(hours=1)),
        ("P1D", timedelta(days=1)),
        ("P1DT2H30M4.5S", timedelta(days=1, hours=2, minutes=30, seconds=4.5)),
        ("by_duration:PT0.25S", timedelta(milliseconds=250)),
        ("PT90M", timedelta(minutes=90)),
        ("P0D", timedelta()),
    ],
)
def test_durations(text: str, expected: timedelta) -> None:
    assert duration_of(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        *("", "P", "PT", "T1H", "P1H", "PT1D", "PT1", "PT1H1H", "PT1H2", "P1DT", "PTH", "PT.S"),
        *("PT1..5S", "-PT1H", "PT-1H", "pt1h", "PT1H ", "P1Y", "P1M", "P1W", "PT1HT1M", "PT٣H"),
        *("PT1M1H", "PT" + "9" * 30 + "H"),
    ],
)
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="no duration"):
        duration_of(text)


def spelled(days: int, hours: int, minutes: int, seconds: int) -> str:
    times = "".join(
        f"{number}{unit}" for number, unit in ((hours, "H"), (minutes, "M"), (seconds, "S"))
    )
    return f"P{days}DT{times}"


counts = st.integers(0, 10_000)


@given(counts, counts, counts, counts)
def test_every_duration(days: int, hours: int, minutes: int, seconds: int) -> None:
    expected = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
    assert duration_of(spelled(days, hours, minutes, seconds)) == expected


@given(st.text("PTDHMS0123456789.-", max_size=12))
def test_any_text_is_a_duration_or_refused(text: str) -> None:
    try:
        assert duration_of(text) >= timedelta()
    except ValueError as error:
        assert "no duration" in str(error)  # noqa: PT017  (either is fine)
