# SPDX-License-Identifier: Apache-2.0
"""Times and durations as Java reads them."""

from datetime import timedelta

import pytest

from kohort.drop_in.java import JavaError
from kohort.drop_in.times import duration_of, millis_of

BEGIN_MS = 1_700_000_000_000


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("2023-11-14T22:13:20.000", BEGIN_MS),
        ("2023-11-14T22:13:20.000Z", BEGIN_MS),
        ("2023-11-14T22:13:20.007+00:00", BEGIN_MS + 7),
        ("2023-11-14T23:13:20.000+01:00", BEGIN_MS),
        ("2023-11-14T23:13:20.000+01", BEGIN_MS),
        ("2023-11-14T17:43:20.000-0430", BEGIN_MS),
        ("2023-11-14T22:13:20.5", BEGIN_MS + 5),  # milliseconds, not tenths of a second
        ("2023-11-14T22:13:20.000000", BEGIN_MS),  # as Python writes it
        ("2023-11-14T22:13:20.000000000Z", BEGIN_MS),
        ("2023-11-14T22:13:20.000000+00:00", BEGIN_MS),
        ("2023-11-14T22:13:20.0000-01:00", BEGIN_MS + 3_600_000),
        ("2023-11-14T22:13:20.0012", BEGIN_MS + 12),
        ("1969-12-31T23:59:59.999", -1),
    ],
)
def test_a_time_is_in_utc_unless_a_zone_follows(text, ms):
    assert millis_of(text) == ms


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("yesterday", "does not contain a 'T'"),
        ("2023-11-14", "does not contain a 'T'"),
        ("2023-11-14T22:13:20.123456", "Unparseable date"),
        ("2023-11-14T22:13:20.1000", "Unparseable date"),
        (f"2023-11-14T22:13:20.{'0' * 5000}", "Unparseable date"),
        ("2023-11-14T", "does not contain a 'T'"),
        ("2023-11-14T22:13:20", 'Unparseable date: "2023-11-14T22:13:20Z"'),
        ("2023-02-30T22:13:20.000", 'Unparseable date: "2023-02-30T22:13:20.000Z"'),
        ("2023-11-14T25:13:20.000", "Unparseable date"),
        ("nowT9", "Unparseable date"),
        (f"{'9' * 5000}-01-01T00:00:00.000", "Unparseable date"),
        (f"{'9' * 30}-01-01T00:00:00.000", "Unparseable date"),
        ("\u0662023-11-14T22:13:20.000", "Unparseable date"),
    ],
)
def test_what_is_no_time_is_refused(text, words):
    with pytest.raises(JavaError) as raised:
        millis_of(text)
    assert words in raised.value.text


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("PT0S", timedelta(0)),
        ("P3650D", timedelta(3650)),
        ("P1DT2H3M4.005S", timedelta(1, 4, 5000, minutes=3, hours=2)),
        ("pt1h", timedelta(hours=1)),
        ("P-1D", timedelta(-1)),
        ("-P1DT1H", -timedelta(1, hours=1)),
        ("PT-0.5S", timedelta(milliseconds=-500)),
        ("PT1H-30M", timedelta(minutes=30)),
    ],
)
def test_each_part_of_a_duration_has_a_sign_of_its_own(text, length):
    assert duration_of(text) == length


@pytest.mark.parametrize("text", ["1 day", "P", "PT", "P1DT", "P1H", "1D", "P1W", "PT1.S5", ""])
def test_what_is_no_duration_is_refused(text):
    with pytest.raises(JavaError, match="Text cannot be parsed to a Duration"):
        duration_of(text)
