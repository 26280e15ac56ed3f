# SPDX-License-Identifier: Apache-2.0
"""How long a group had a status: combines the statuses of one run with those of earlier runs.

A run sees a moment, so a status lasts from the first moment at which it was seen to the first at
which it was not. Pure: rows of `status_history` in and out.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

Row = dict[str, Any]
Worst = Mapping[tuple[int, str], tuple[int | None, float | None]]
"""Partition of the log and group -> largest lag in records and in seconds; None for unknown."""

_KEY = ("partition", "group_id", "rules")
_NOTHING = (None, None)


class EpisodeUpdate(NamedTuple):
    """Rows that are over, and those that go on."""

    over: list[Row]
    still: list[Row]


def update_episodes(
    before: Iterable[Row],
    statuses: Iterable[Row],
    at: datetime,
    seen_before: datetime | None,
    between: Worst,
) -> EpisodeUpdate:
    """What goes on, ends and begins when groups have these statuses at a moment. `before` is what
    still lasted at `seen_before`, the moment of the previous run. `between` is the largest lag
    since then, without this moment.

    A moment that is not later than the previous one says that a clock was set back: then nothing
    goes on.
    """
    set_back = seen_before is not None and at <= seen_before
    known = {_key(row): row for row in before}
    over, still = [], []
    for status in statuses:
        last = known.pop(_key(status), None)
        lasting = None if last is None else _worse(last, between.get(_group(last), _NOTHING))
        if lasting is not None and lasting["status"] == status["status"] and not set_back:
            still.append(_seen(lasting, status, at))
            continue
        if lasting is not None:
            over.append(_ended(lasting, at, set_back=set_back))
        still.append(_begun(status, at, None if set_back else seen_before))
    for last in known.values():
        lasting = _worse(last, between.get(_group(last), _NOTHING))
        over.append(_ended(lasting, at, set_back=set_back))
    return EpisodeUpdate(over, still)


def _key(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in _KEY)


def _group(row: Row) -> tuple[int, str]:
    return row["partition"], row["group_id"]


def _begun(status: Row, at: datetime, after: datetime | None) -> Row:
    fresh = {
        **{name: status[name] for name in (*_KEY, "status")},
        "valid_from": at,
        "valid_to": None,
        "started_after": after,
        "runs": 0,
        "runs_unknown": 0,
        "reasons": [],
        "worst_lag_records": None,
        "worst_lag_seconds": None,
    }
    return _seen(fresh, status, at)


def _seen(row: Row, status: Row, at: datetime) -> Row:
    lag = status["lag_records"], status["lag_seconds"]
    return {
        **_worse(row, lag),
        "last_seen_at": at,
        "runs": row["runs"] + 1,
        "runs_unknown": row["runs_unknown"] + (lag[0] is None),
        "reasons": list(dict.fromkeys([*row["reasons"], status["rule"]])),
    }


def _worse(row: Row, lag: tuple[int | None, float | None]) -> Row:
    names = ("worst_lag_records", "worst_lag_seconds")
    worst = {
        name: max((known for known in (row[name], new) if known is not None), default=None)
        for name, new in zip(names, lag, strict=True)
    }
    return {**row, **worst}


def _ended(row: Row, at: datetime, *, set_back: bool) -> Row:
    return {**row, "valid_to": row["last_seen_at"] if set_back else at}
