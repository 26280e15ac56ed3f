# SPDX-License-Identifier: Apache-2.0
"""What a table is for stays on a terminal of 80 columns."""

import io
import re
from datetime import UTC, datetime

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from kohort.cli.render import Output
from kohort.cli.show import _cell_of, cell
from kohort.cli.table_columns import SHOWN
from kohort.pipeline.format.catalog import known_tables
from kohort.pipeline.schemas import END_OFFSETS, GOLD, OBSERVED_HISTORY

NAMES = {
    "group_id": "invoices-eu1",
    "topic": "payments-eu",
    "client_id": "checkout-7",
    "client_host": "/10.11.12.13",
    "member_id": "checkout-7-2ff3b4c5-1b1c-4cf4-9a5e-8a1be36ddf42",
    "trigger": "subscription change",
    "likely": "went silent",
    "unread_seconds": "none (no partition lost its owner)",
    "evidence": "checkout-7 at /10.11.12.13 is gone: last heartbeat 55 s before, last commit 43 s",
    "status": "UNKNOWN",
    "rule": "lag_allowed",
    "rules": "kohort",
    "state": "Reconciling",
    "group_type": "consumer",
    "reason": "it has members, and committed within the last seven days of the log",
    "error": "value of an OffsetCommit: 3 bytes are missing at byte 17 of 20",
}
NUMBERS = {"lag_records": 1_234_567, "committed_offset": 98_765_432, "end_offset": 99_999_999}


def sample(field):
    if field.name in NAMES:
        return NAMES[field.name]
    if field.name in NUMBERS:
        return NUMBERS[field.name]
    if pa.types.is_timestamp(field.type):
        return datetime(2026, 11, 21, 7, tzinfo=UTC)
    if pa.types.is_boolean(field.type):
        return True
    if pa.types.is_floating(field.type):
        return 1234.5
    if pa.types.is_integer(field.type):
        return 17
    if pa.types.is_list(field.type):
        return ["orders", "payments"]
    return "text"


def drawn(monkeypatch, table, width):
    """The headers, and all text, of a table with one row."""
    shown = SHOWN[table.name]
    row = {field.name: sample(field) for field in table.arrow}
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("TERM", "xterm")
    stream = io.StringIO()
    stream.isatty = lambda: True
    output = Output(stream)
    headers = [name.upper() for name in shown.names]
    output.table(headers, [[cell(row[name]) for name in shown.names]], spare=shown.spare)
    output.end()
    text = re.sub("\x1b\\[[0-9;]*m", "", stream.getvalue())
    return text, row


@pytest.mark.parametrize("name", SHOWN)
def test_the_columns_that_are_shown_are_there(name):
    shown = SHOWN[name]
    assert set(shown.names) <= set(known_tables()[name].names)
    assert shown.purpose <= set(shown.names)
    assert len(set(shown.names)) == len(shown.names)
    assert {one.lower() for one in shown.spare} | shown.purpose == set(shown.names)


@pytest.mark.parametrize("name", [one.name for one in (*GOLD, *OBSERVED_HISTORY, END_OFFSETS)])
def test_every_table_of_results_says_what_it_is_for(name):
    assert name in SHOWN


@pytest.mark.parametrize("name", SHOWN)
def test_what_a_table_is_for_stays_in_eighty_columns(name, monkeypatch):
    table = known_tables()[name]
    text, row = drawn(monkeypatch, table, 80)
    lines = text.splitlines()
    assert max(len(line) for line in lines if not line.startswith("(too narrow")) <= 80
    missing = re.search(r"\(too narrow for (.*)\)", " ".join(lines))
    left_out = set(missing[1].lower().split(", ")) if missing else set()
    assert left_out.isdisjoint(SHOWN[name].purpose)
    assert any("─" in line for line in lines), "it is a table, not a list of fields"
    for one in SHOWN[name].purpose & {"group_id", "topic", "likely", "status"}:
        assert str(row[one]) in text


def test_of_members_that_are_gone_only_what_is_likely_is_shown():
    gone = [{"client_id": "a", "likely": "went silent", "silent_seconds": 95.0}, {"likely": None}]
    assert _cell_of("rebalances", "likely", {"likely": [*gone, gone[0]]}) == "went silent"
    assert _cell_of("rebalances", "likely", {"likely": None}) == ""


def test_a_bound_and_its_reason_stay_beside_their_figure(monkeypatch):
    """Each word of them may take a line, before the figure itself is left out."""
    bounded = {"lag_records": "unknown (no_end_offset)", "lag_seconds": "at least 82.0 (stalled)"}
    monkeypatch.setitem(NAMES, "lag_records", bounded["lag_records"])
    monkeypatch.setitem(NAMES, "lag_seconds", bounded["lag_seconds"])
    text, _ = drawn(monkeypatch, known_tables()["lag"], 80)
    assert max(len(line) for line in text.splitlines() if not line.startswith("(too")) <= 80
    assert {*" ".join(bounded.values()).split()} <= {*text.split()}
    assert "─" in text


def test_a_member_id_that_is_too_long_shows_how_it_begins_and_ends(monkeypatch):
    text, _ = drawn(monkeypatch, known_tables()["assignments"], 80)
    assert re.search(r"checkout-7-\w*…df42", text)
    wide, _ = drawn(monkeypatch, known_tables()["assignments"], 200)
    assert NAMES["member_id"] in wide
