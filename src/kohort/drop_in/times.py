# SPDX-License-Identifier: Apache-2.0
"""Times and durations as the Java tools read them."""

import re
from datetime import UTC, datetime, timedelta

from kohort.drop_in.java import JavaError, at_run_time

_TIME = re.compile(
    r"(\d{4,})-(\d\d?)-(\d\d?)T(\d\d?):(\d\d?):(\d\d?)\.(0*\d{1,3})(Z|[-+]\d\d(?::?\d\d)?)",
    re.ASCII,
)
_DURATION = re.compile(
    r"([-+]?)P(?:([-+]?\d+)D)?"
    r"(T(?:([-+]?\d+)H)?(?:([-+]?\d+)M)?(?:([-+]?\d+)(?:[.,](\d{0,9}))?S)?)?",
    re.IGNORECASE | re.ASCII,
)


def millis_of(text: str) -> int:
    """Milliseconds since 1970 of `YYYY-MM-DDTHH:MM:SS.sss`, which is in UTC unless a zone follows.
    What stands behind the point is a number of milliseconds, as in Java: `.5` and `.0005` are five.

    Raises JavaError.
    """
    date, found, time = text.partition("T")
    if not date or not found or not time:
        raise _unparsable(
            "Error parsing timestamp. It does not contain a 'T' according to ISO8601 format"
        )
    whole = text if any(sign in time for sign in "+-Z") else f"{text}Z"
    match = _TIME.fullmatch(whole)
    if match is None:
        raise _unparsable(f'Unparseable date: "{whole}"')
    *fields, zone = match.groups()
    try:
        year, month, day, hour, minute, second, millis = map(int, fields)
        moment = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except (ValueError, OverflowError):
        raise _unparsable(f'Unparseable date: "{whole}"') from None
    since = moment - datetime(1970, 1, 1, tzinfo=UTC) - _offset(zone)
    return since // timedelta(milliseconds=1) + millis


def _offset(zone: str) -> timedelta:
    if zone == "Z":
        return timedelta(0)
    digits = zone[1:].replace(":", "")
    offset = timedelta(hours=int(digits[:2]), minutes=int(digits[2:] or 0))
    return -offset if zone[0] == "-" else offset


def duration_of(text: str) -> timedelta:
    """The length of a text such as P1DT2H3M4.5S, in which each part may have a sign. Raises
    JavaError.
    """
    match = _DURATION.fullmatch(text)
    if match is None or (match[2] is None and match[3] is None) or match[3] in ("T", "t"):
        raise _no_duration()
    fraction = int((match[7] or "").ljust(9, "0")[:6])
    if (match[6] or "").startswith("-"):
        fraction = -fraction
    try:
        days, hours, minutes, seconds = (int(match[group] or 0) for group in (2, 4, 5, 6))
        found = timedelta(days, seconds, fraction, minutes=minutes, hours=hours)
    except (ValueError, OverflowError):  # Python reads no number of thousands of digits
        raise _no_duration() from None
    return -found if match[1] == "-" else found


def _unparsable(text: str) -> JavaError:
    return at_run_time(JavaError("java.text.ParseException", text))


def _no_duration() -> JavaError:
    name = "java.time.format.DateTimeParseException"
    return JavaError(name, "Text cannot be parsed to a Duration")
