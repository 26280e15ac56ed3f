# SPDX-License-Identifier: Apache-2.0
"""Words that every floor knows."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from kohort.terms import EPOCH, NO_TOPIC_ID, millis_of


def test_nothing_is_its_own_topic_id():
    assert bytes(16) == NO_TOPIC_ID


def test_a_time_is_the_very_millisecond_that_it_was_made_of():
    """By way of a float the first two, of 2004, come out one too low."""
    for number in (1_073_747_268_419, 1_099_502_897_962, 0, 1, 1_774_000_000_001, 2**45 + 1):
        moment = EPOCH + timedelta(milliseconds=number)
        assert millis_of(moment) == number
        assert millis_of(moment.astimezone(timezone(timedelta(hours=5, minutes=45)))) == number
        assert millis_of(moment + timedelta(microseconds=999)) == number


def test_a_time_before_1970_is_in_the_millisecond_that_it_is_in():
    assert millis_of(datetime(1969, 12, 31, 23, 59, 59, 999_500, UTC)) == -1


def test_a_time_without_a_zone_is_none():
    with pytest.raises(ValueError, match="2026-01-01T00:00:00 has no time zone"):
        millis_of(datetime(2026, 1, 1))  # noqa: DTZ001
