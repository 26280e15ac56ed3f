# SPDX-License-Identifier: Apache-2.0
"""No figure leaves a table without its bound and its reason: by `show`, `check` or the report."""

import re
from datetime import UTC, datetime, timedelta
from html import unescape

import pytest

pytest.importorskip("pyarrow")

from tests.tables.published import publish

from kohort.figures import FIGURES, beside
from kohort.pipeline import report
from kohort.pipeline.format.catalog import known_tables
from kohort.pipeline.report import picks

AT = datetime.now(UTC).replace(microsecond=0) - timedelta(minutes=1)
EXACT = {"lag_seconds": 82.0, "lag_seconds_error": 0.0}
KINDS = {  # a kind of bound -> lag of a group, and what every place has to say
    "exact": (EXACT, ["1 min 22 s"], []),
    "around": (EXACT | {"lag_seconds_error": 4.0}, ["1 min 22 s \u00b1 4 s"], []),
    "at-least": (
        EXACT | {"lag_seconds_error": None, "reason": "before_samples"},
        ["at least 1 min 22 s", "(before_samples)"],
        [],
    ),
    "partly": (
        EXACT | {"partitions_unknown": 1, "reason": "never_committed"},
        ["at least 1 min 22 s", "(never_committed)"],
        ["at least 7,000", "(never_committed)"],
    ),
    "dark": (
        {"lag_records": None, "partitions_unknown": 3, "reason": "no_end_offset"},
        ["unknown", "(no_end_offset)"],
        ["unknown", "(no_end_offset)"],
    ),
}


def row(group, **more):
    return {
        "group_id": group,
        "level": "group",
        "at": AT,
        "lag_records": 7000,
        "partitions": 3,
        "partitions_unknown": 0,
        **more,
    }


def of_kind(kind):
    lag = row(kind, **KINDS[kind][0])
    return {
        "lag": [lag],
        "status": [lag | {"rules": "kohort", "status": "ERR", "rule": "stopped"}],
        "group_state": [{"group_id": kind, "state": "Stable", "members": 1}],
        "rebalances": [],
        **{name: [] for name in ("assignments", "members", "deletable_groups")},
    }


def tables_of(kind):
    names = [*of_kind(kind), "lag_history"]
    rows = of_kind(kind) | {"lag_history": []}
    before = {"at": AT - timedelta(minutes=5)}  # a chart takes two moments
    rows["lag"] = [{**one, **more} for one in rows["lag"] for more in (before, {})]
    import pyarrow as pa

    return {
        name: pa.Table.from_pylist(rows[name], schema=known_tables()[name].arrow) for name in names
    }


@pytest.mark.parametrize("kind", KINDS)
def test_check_says_the_bound_of_lag(kohort, tmp_path, kind):
    publish(tmp_path, of_kind(kind), as_of_ms=int(AT.timestamp() * 1000))
    _, seconds, records = KINDS[kind]
    limits = ("--lag-seconds", "1,2", "--lag-records", "1,2")

    found = kohort("pipeline", "check", "--out", str(tmp_path), *limits, "--format", "json").json

    whys = {one["rule"]: one for one in found["findings"]}
    for word in seconds:
        assert word in whys["lag_seconds"]["why"]
    for word in records:
        assert word in whys["lag_records"]["why"]
    lag = KINDS[kind][0]
    assert whys["lag_seconds"]["reason"] == lag.get("reason")
    is_bound = bool(seconds[0].startswith("at least") or seconds[0] == "unknown")
    assert (whys["lag_seconds"]["at_most"] is None) == is_bound


@pytest.mark.parametrize("kind", KINDS)
def test_the_report_says_the_bound_of_lag_wherever_it_has_one(tmp_path, kind):
    tables = tables_of(kind)
    _, seconds, records = KINDS[kind]

    path = report.write(tables.__getitem__, tmp_path / "report.html")

    text = unescape(path.read_text(encoding="utf-8")).replace("\u202f", ",")
    tiles = re.search(r'<div class="tiles">.*?</div>\n', text, re.DOTALL) or text[: len(text) // 2]
    places = {
        "tile": tiles if isinstance(tiles, str) else tiles[0],
        "table": re.search(r'id="status".*?</section>', text, re.DOTALL)[0],
        "fold": re.search(r"<summary>.*?</summary>", text, re.DOTALL)[0],
    }
    if kind != "dark":  # of which nothing can be drawn
        places["chart"] = re.search(r'<figure id="lag-seconds".*?</figure>', text, re.DOTALL)[0]
    for place, found in places.items():
        for word in {*(seconds if kind != "dark" or place != "fold" else []), *records}:
            assert word in found, (place, word)


@pytest.mark.parametrize("table", FIGURES)
@pytest.mark.parametrize("kind", KINDS)
def test_show_says_the_bound_even_where_the_columns_that_tell_it_are_not_shown(
    kohort, tmp_path, table, kind
):
    lag = row(kind, **KINDS[kind][0])
    columns = known_tables()[table].names
    unread = {
        "exact": [{"seconds": 7.0, "error_seconds": 0.0}],
        "around": [{"seconds": 7.0, "error_seconds": 4.0}],
        "at-least": [{"seconds": 7.0, "error_seconds": 0.0}, {"unknown": "idle"}],
        "partly": [{"seconds": 7.0, "error_seconds": 0.0}, {"unknown": "idle"}],
        "dark": [{"unknown": "idle"}],
    }
    value = None if kind == "dark" else 7.0
    some = {name: value for name in FIGURES[table] if name not in lag}
    rows = lag | some | {"unread": unread[kind], "outcome": "open", "moments": 1, "rules": "kohort"}
    publish(
        tmp_path,
        {table: [{name: told for name, told in rows.items() if name in columns}]},
        as_of_ms=int(AT.timestamp() * 1000),
    )
    for column in FIGURES[table]:
        ran = kohort("pipeline", "show", table, "--out", str(tmp_path), "--columns", column)

        assert ran.code == 0
        shown = ran.out.splitlines()[1].strip()
        if kind == "dark":
            assert shown.startswith("unknown"), (column, shown)
        elif table in ("lag", "status") and column == "lag_seconds":
            word = {"exact": "82.0", "around": "82.0 \u00b1 4.0"}.get(kind, "at least 82.0 (")
            assert shown.startswith(word), shown
        elif table == "rebalances" and column != "seconds":
            word = {"exact": "7.0", "around": "7.0 \u00b1 4.0"}.get(kind, "at least 7.0 (idle)")
            assert shown == word
        elif table == "status_history":
            assert shown.startswith("at least 7"), shown
        as_json = ("--columns", column, "--format", "json")
        answer = kohort("pipeline", "show", table, "--out", str(tmp_path), *as_json).json
        assert set(answer[0]) == {column, *beside(table, [column])}


def test_a_first_report_does_not_call_a_lower_bound_of_zero_no_lag(tmp_path):
    """The first sample of the ends is that of this moment, so nobody knows since when 7 records
    have been waiting.
    """
    tables = tables_of("at-least")
    lag = row("g", lag_records=7, lag_seconds=0.0, lag_seconds_error=None, reason="before_samples")
    import pyarrow as pa

    for name in ("lag", "status"):
        more = {"rules": "kohort", "status": "OK"} if name == "status" else {}
        tables[name] = pa.Table.from_pylist([lag | more], schema=known_tables()[name].arrow)

    text = report.write(tables.__getitem__, tmp_path / "r.html").read_text(encoding="utf-8")

    assert "<b>at least 0 s (before_samples)</b>" in text
    assert "<b>0 s</b>" not in text
    assert picks.duration_text(0.0) == "0 s"
