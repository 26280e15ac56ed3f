# SPDX-License-Identifier: Apache-2.0
"""The file for Prometheus: whole at any moment, and never better than what is known."""

from datetime import UTC, datetime

import pytest

pytest.importorskip("pyarrow")

from kohort.errors import KohortError
from kohort.figures import Bound, Figure
from kohort.tables.judging import Finding, Verdict
from kohort.tables.textfile import HELP, text, write
from kohort.tables.thresholds import Limit, State

AT = datetime(2026, 11, 21, 7, tzinfo=UTC)
NOW = datetime(2026, 11, 21, 7, 0, 0, 500_000, tzinfo=UTC)
NAME = 'say "b"\\ü\n'
SLOW = Figure(12, Bound.AT_LEAST)
VERDICT = Verdict(
    (
        Finding("lag_records", NAME, State.WARNING, 12, Limit(10), "slow", figure=SLOW),
        Finding("lag_seconds", "b", State.UNKNOWN, None, Limit(10), "who knows"),
        Finding("age", None, State.OK, 1.5, Limit(10), "new"),
    ),
    AT,
    NOW,
)


def test_every_finding_is_a_sample_and_what_is_unknown_has_no_value():
    samples = [one for one in text(VERDICT, NOW).splitlines() if not one.startswith("#")]

    assert samples == [
        "kohort_check_worst 1",
        f"kohort_check_timestamp_seconds {NOW.timestamp()}",
        f"kohort_check_tables_as_of_seconds {int(AT.timestamp())}",
        'kohort_check_state{rule="lag_records",group="say \\"b\\"\\\\ü\\n"} 1',
        'kohort_check_state{rule="lag_seconds",group="b"} 3',
        'kohort_check_state{rule="age"} 0',
        'kohort_check_value{rule="lag_records",group="say \\"b\\"\\\\ü\\n"} 12',
        'kohort_check_value{rule="age"} 1.5',
        'kohort_check_value_at_least{rule="lag_records",group="say \\"b\\"\\\\ü\\n"} 12',
        'kohort_check_value_at_most{rule="lag_records",group="say \\"b\\"\\\\ü\\n"} +Inf',
    ]


def test_prometheus_itself_reads_it():
    parser = pytest.importorskip("prometheus_client.parser")

    families = {one.name: one for one in parser.text_string_to_metric_families(text(VERDICT, NOW))}

    assert families.keys() == HELP.keys()
    assert {one.type for one in families.values()} == {"gauge"}
    assert families["kohort_check_state"].samples[0].labels == {
        "rule": "lag_records",
        "group": NAME,
    }


def test_a_file_is_replaced_as_a_whole(tmp_path):
    path = tmp_path / "kohort.prom"
    path.write_text("old")

    write(path, VERDICT, NOW)

    assert path.read_text(encoding="utf-8") == text(VERDICT, NOW)
    assert [one.name for one in tmp_path.iterdir()] == ["kohort.prom"]


def test_a_file_that_cannot_be_written_stays_as_it_was(tmp_path, monkeypatch):
    path = tmp_path / "kohort.prom"
    path.write_text("old")
    monkeypatch.setattr("kohort.tables.textfile.text", lambda *_: "\ud800")

    with pytest.raises(UnicodeEncodeError):
        write(path, VERDICT, NOW)
    assert path.read_text() == "old"
    assert [one.name for one in tmp_path.iterdir()] == ["kohort.prom"]
    monkeypatch.undo()
    with pytest.raises(KohortError, match=r"kohort\.prom cannot be written: No such file"):
        write(tmp_path / "no" / "kohort.prom", VERDICT, NOW)


def test_without_a_verdict_it_is_unknown():
    assert [one for one in text(None, NOW).splitlines() if not one.startswith("#")] == [
        "kohort_check_worst 3",
        f"kohort_check_timestamp_seconds {NOW.timestamp()}",
    ]
