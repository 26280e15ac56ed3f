# SPDX-License-Identifier: Apache-2.0
"""Arguments that commands of the pipeline have in common: times, durations, numbers, the tables."""

from argparse import ArgumentParser, ArgumentTypeError
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from kohort.cli.command import NO_SETTING, decimal_or_none

if TYPE_CHECKING:  # imported where it is needed: commands for groups have no directories
    from pathlib import Path

# As `kohort.spark.sources.registry`, which cannot be asked where Spark is not installed.
SOURCE_FORMS = {
    "log": "log:DIRECTORY",
    "cluster": "cluster:HOST:PORT",
    "parquet": "parquet:DIRECTORY",
    "connector": "connector:HOST:PORT",
}
_FIRST = datetime(1970, 1, 1, tzinfo=UTC)
LONGEST_MS = 100_000 * 86_400_000
UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def moment(text: str) -> datetime:
    """A time in ISO 8601, in UTC where it names no zone, or milliseconds since 1970."""
    try:
        if text.isascii() and text.isdigit() and len(text) > 8:
            return datetime.fromtimestamp(int(text) / 1000, UTC)
        found = datetime.fromisoformat(text)
    except (ValueError, OverflowError, OSError):
        raise ArgumentTypeError(
            f"{text!r} is not a time, expected such as 2026-11-21T07:00Z, or milliseconds since "
            "1970 of 9 digits or more"
        ) from None
    found = found if found.tzinfo is not None else found.replace(tzinfo=UTC)
    if found < _FIRST:
        raise ArgumentTypeError(f"{text!r} is before 1970, expected a time since then")
    return found


def duration(text: str) -> int:
    """Milliseconds."""
    number = text.rstrip("dhms")
    unit = UNITS.get(text[len(number) :])
    if unit is None or not (number.isascii() and number.isdigit()) or not int(number[:20]):
        raise ArgumentTypeError(f"{text!r} is not a duration, expected such as 10s, 90m or 7d")
    if len(number) > 20 or int(number) * unit > LONGEST_MS:
        raise ArgumentTypeError(f"{text!r} is too long, expected at most 100000d")
    return int(number) * unit


def days(text: str) -> float:
    days = decimal_or_none(text.removesuffix("d"))
    if days is None or not 0 < days < 100_000:
        raise ArgumentTypeError(f"{text!r} is not a number of days, expected one above 0")
    return days


def count(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise ArgumentTypeError(f"{text!r} is no count, expected a number of at least 1")
    if not int(text):
        raise ArgumentTypeError(f"{text} is too small, expected at least 1")
    return int(text)


def pair(text: str) -> tuple[str, str]:
    name, found, value = text.partition("=")
    if not found or not name.strip():
        raise ArgumentTypeError(NO_SETTING)
    return name.strip(), value.strip()


def require(extra: str) -> None:
    """What comes with this extra is there, or the command ends with one sentence."""
    from kohort import spark

    spark.require(extra)


def add_out(parser: ArgumentParser, *, several: bool = False) -> None:
    """The directory of the tables; with `several` a list of them."""
    parser.add_argument(
        "--out",
        required=True,
        type=directory,
        action="append" if several else "store",
        metavar="DIR",
        help="the directory of the tables, s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, "
        "abfs://CONTAINER@ACCOUNT.dfs.core.windows.net/PREFIX, or webhdfs://HOST:PORT/PATH"
        + ("; of several clusters, one for each" if several else ""),
    )


def directory(text: str) -> "Path | str":
    """A directory, which may not be there yet; a URI is left as it is: what it is about shows
    later.
    """
    if ":" in text.partition("/")[0]:
        return text
    path = _path(text)
    if path.is_file():
        raise ArgumentTypeError(f"{text!r} is a file, expected a directory")
    return path


def local_directory(text: str) -> "Path":
    """A directory of this machine, which may not be there yet."""
    if "://" in text:
        raise ArgumentTypeError(f"{text!r} is a URI, expected a directory of this machine")
    return _path(text)


def _path(text: str) -> "Path":
    from pathlib import Path

    return Path(text)


def source(text: str) -> str:
    """A source of a run, by its form alone: where it leads shows later."""
    word, _, place = text.partition(":")
    if word not in SOURCE_FORMS or not place.strip():
        forms = ", ".join(SOURCE_FORMS.values())
        raise ArgumentTypeError(f"{text!r} is not a source, expected one of {forms}")
    return text


def add_group(parser: ArgumentParser, text: str) -> None:
    parser.add_argument("--group", action="append", default=[], metavar="GROUP", help=text)
