# SPDX-License-Identifier: Apache-2.0
"""A figure of a table with its bound and its reason: no figure is shown without the two.

`FIGURES` says of each column that has a bound which other columns tell it. The report, `show` and
`check` read figures by it and print them by `Figure.text`, so that a lower bound looks like one in
all of them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

Row = Mapping[str, Any]
Number = Callable[[float], str]
"""How a place prints a value of this column."""

BEFORE_SAMPLES = "before_samples"
"""The reason of `lag` that is about seconds only: the records are exact all the same."""
_LOOKED_AT_TIMES = "between runs nobody looks"
_SEVERAL = "some moments are unknown, and so are some partitions"


def counted(number: float, thing: str, things: str = "") -> str:
    """`1 member`, `2,000 members`; `things` where it is no `thing` with an s."""
    return f"{number:,.0f} {thing if number == 1 else things or thing + 's'}"


class Bound(StrEnum):
    """What a value is to the truth; as text, the word before the value."""

    EXACT = ""
    AT_LEAST = "at least"
    AT_MOST = "at most"
    ABOUT = "about"
    RANGE = "from"
    UNKNOWN = "unknown"
    NONE = "none"
    """There is no value, and that is known."""


@dataclass(frozen=True)
class Figure:
    """A value, or none, with what is known of its distance from the truth."""

    value: float | None
    bound: Bound = Bound.EXACT
    error: float | None = 0.0
    """The truth is in plus or minus this, where the bound is EXACT; for a RANGE its length."""
    reason: str | None = None

    @property
    def low(self) -> float | None:
        """The least that the truth may be; None where nothing is known of that."""
        if self.value is None or self.bound in (Bound.AT_MOST, Bound.ABOUT):
            return None
        return self.value if self.bound else max(0.0, self.value - (self.error or 0.0))

    @property
    def high(self) -> float | None:
        """The most that the truth may be; None where nothing is known of that."""
        if self.value is None or self.bound in (Bound.AT_LEAST, Bound.ABOUT):
            return None
        return self.value if self.bound is Bound.AT_MOST else self.value + (self.error or 0.0)

    def text(self, number: Number, after: str = "") -> str:
        """`5 s`, `5 s ± 1 s`, `at least 5 s (before_samples)`, `unknown (no_end_offset)`. Words
        `after` a value stand before its reason.
        """
        why = f" ({self.reason})" if self.reason else ""
        if self.value is None:
            return f"{self.bound or Bound.UNKNOWN}{why}"
        if self.bound is Bound.RANGE:
            return f"{number(self.value)} to {number(self.value + (self.error or 0.0))}{after}{why}"
        word = f"{self.bound} " if self.bound else ""
        around = f" \u00b1 {number(self.error)}" if self.error and not self.bound else ""
        return f"{word}{number(self.value)}{around}{after}{why}"


@dataclass(frozen=True)
class Column:
    """A column with figures, and the columns of the same row that it takes to read one."""

    read: Callable[[Row], Figure]
    beside: tuple[str, ...]


def figure(table: str, column: str, row: Row) -> Figure:
    """The figure in a column. The row has at least that column and those `beside` it."""
    return FIGURES[table][column].read(row)


def beside(table: str, columns: "list[str] | tuple[str, ...]") -> list[str]:
    """The columns that it takes to read the figures of these, without these themselves."""
    known = FIGURES.get(table, {})
    wanted = [name for column in columns if column in known for name in known[column].beside]
    return [name for name in dict.fromkeys(wanted) if name not in columns]


def duration(seconds: float) -> str:
    """A time in its two largest units: `3 d 4 h`, `12.5 s`, `40 ms`."""
    if seconds < 0:
        return f"-{duration(-seconds)}"
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms" if seconds else "0 s"
    if seconds < 60:
        return f"{seconds:.3g} s"
    for name, size, small, part in (
        ("d", 86400, "h", 3600),
        ("h", 3600, "min", 60),
        ("min", 60, "s", 1),
    ):
        if seconds >= size:
            rest = int(seconds % size // part)
            return f"{int(seconds // size)} {name}" + (f" {rest} {small}" if rest else "")
    raise AssertionError(seconds)


def _records(name: str) -> Column:
    """Of several partitions the sum of those that are known."""

    def read(row: Row) -> Figure:
        reason = None if row["reason"] == BEFORE_SAMPLES else row["reason"]
        if row[name] is None:
            return Figure(None, Bound.UNKNOWN, None, reason)
        bound = Bound.AT_LEAST if row["partitions_unknown"] else Bound.EXACT
        return Figure(row[name], bound, reason=reason)

    return Column(read, ("reason", "partitions_unknown"))


def _seconds(name: str) -> Column:
    """Of several partitions the largest that is known. Without an error it is a lower bound."""

    def read(row: Row) -> Figure:
        value, error = row[name], row["lag_seconds_error"]
        if value is None:
            return Figure(None, Bound.UNKNOWN, None, row["reason"])
        if error is None or row["partitions_unknown"]:
            return Figure(value, Bound.AT_LEAST, None, row["reason"])
        reason = None if row["reason"] == BEFORE_SAMPLES else row["reason"]
        return Figure(value, Bound.EXACT, error, reason)

    return Column(read, ("lag_seconds_error", "reason", "partitions_unknown"))


def _extreme(name: str, unknown: str, *, least: bool) -> Column:
    """The least or the most of the moments that a row of `lag_history` stands for. Moments that are
    not known may have more, or less; partitions that are not known always have more.
    """

    def read(row: Row) -> Figure:
        value, reason = row[name], row["reason"]
        if value is None:
            return Figure(None, Bound.UNKNOWN, None, reason)
        is_time = name.startswith("lag_seconds")
        more = row["partitions_unknown"] or (is_time and reason == BEFORE_SAMPLES)
        if least and more and row[unknown]:
            return Figure(None, Bound.UNKNOWN, None, reason or _SEVERAL)
        if least and row[unknown]:
            return Figure(value, Bound.AT_MOST, reason=reason)
        if more or row[unknown]:
            return Figure(value, Bound.AT_LEAST, reason=reason)
        if not is_time:
            return Figure(value, reason=None if reason == BEFORE_SAMPLES else reason)
        if row["moments"] == 1 and row["lag_seconds_error"] is not None:
            return Figure(value, Bound.EXACT, row["lag_seconds_error"], reason)
        # The error that is kept is that of the last moment, and this value of another one.
        return Figure(value, Bound.ABOUT if row["moments"] != 1 else Bound.AT_LEAST, None, reason)

    needs = ("reason", "partitions_unknown", unknown, "moments", "lag_seconds_error")
    return Column(read, needs)


def _at_least(name: str) -> Column:
    """The most that runs have seen: between two of them it may have been more."""

    def read(row: Row) -> Figure:
        if row[name] is None:
            return Figure(None, Bound.UNKNOWN)
        return Figure(row[name], Bound.AT_LEAST, reason=_LOOKED_AT_TIMES)

    return Column(read, ())


def _took(row: Row) -> Figure:
    """How long a rebalance took; its beginning may be known only to lie between two times."""
    if row["seconds"] is not None:
        return Figure(row["seconds"])
    low, high = row["seconds_at_least"], row["seconds_at_most"]
    if low is None and high is None:
        return Figure(None, Bound.UNKNOWN, None, row["outcome"])
    if high is None:
        return Figure(low, Bound.AT_LEAST)
    if low is None:
        return Figure(high, Bound.AT_MOST)
    return Figure(low, Bound.RANGE, high - low)


def _unread(name: str) -> Column:
    """The sum, or the longest, of the partitions that lost their owner, and of new ones."""

    def read(row: Row) -> Figure:
        partitions = row["unread"] or ()
        whys = sorted({one["unknown"] or "" for one in partitions if one["seconds"] is None})
        reason = ", ".join(why for why in whys if why) or None
        if not partitions and row[name] is None:
            return Figure(None, Bound.NONE, None, "no partition lost its owner")
        if row[name] is None:
            return Figure(None, Bound.UNKNOWN, None, reason)
        if whys:
            return Figure(row[name], Bound.AT_LEAST, None, reason)
        errors = [of_partition(one).error or 0.0 for one in partitions]
        error = sum(errors) if name == "unread_seconds" else max(errors, default=0.0)
        return Figure(row[name], Bound.EXACT, error)

    return Column(read, ("unread",))


def of_partition(unread: Row) -> Figure:
    """For how long one partition was unread, out of the list `unread` of a rebalance."""
    if unread["seconds"] is not None:
        return Figure(unread["seconds"], Bound.EXACT, unread.get("error_seconds") or 0.0)
    since, until = unread.get("since"), unread.get("until")
    if since is not None and until is not None and until > since:
        return Figure((until - since).total_seconds(), Bound.AT_LEAST, None, unread["unknown"])
    return Figure(None, Bound.UNKNOWN, None, unread["unknown"])


def longest_unowned(rebalance: Row) -> Figure | None:
    """For how long a partition had no owner at worst; None where each kept one."""
    gaps = [gap["seconds"] for gap in rebalance["unowned"] or ()]
    if not any(seconds is None or seconds for seconds in gaps):
        return None
    known = max((seconds for seconds in gaps if seconds is not None), default=None)
    if None not in gaps:
        return Figure(known)
    reason = "a partition has no owner yet"
    return Figure(known, Bound.UNKNOWN if known is None else Bound.AT_LEAST, None, reason)


FIGURES: Mapping[str, Mapping[str, Column]] = {
    "lag": {
        "lag_records": _records("lag_records"),
        "records_lost": _records("records_lost"),
        "lag_seconds": _seconds("lag_seconds"),
    },
    "lag_history": {
        "lag_records": _records("lag_records"),
        "records_lost": _records("records_lost"),
        "lag_seconds": _seconds("lag_seconds"),
        "lag_records_min": _extreme("lag_records_min", "moments_unknown", least=True),
        "lag_records_max": _extreme("lag_records_max", "moments_unknown", least=False),
        "lag_seconds_min": _extreme("lag_seconds_min", "moments_timeless", least=True),
        "lag_seconds_max": _extreme("lag_seconds_max", "moments_timeless", least=False),
    },
    "status": {
        "lag_records": _records("lag_records"),
        "lag_seconds": _seconds("lag_seconds"),
    },
    "status_history": {
        "worst_lag_records": _at_least("worst_lag_records"),
        "worst_lag_seconds": _at_least("worst_lag_seconds"),
    },
    "rebalances": {
        "seconds": Column(_took, ("seconds_at_least", "seconds_at_most", "outcome")),
        "unread_seconds": _unread("unread_seconds"),
        "longest_unread_seconds": _unread("longest_unread_seconds"),
    },
}
"""Table -> column -> how its figures are read."""
