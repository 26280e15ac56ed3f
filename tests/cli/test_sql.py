# SPDX-License-Identifier: Apache-2.0
"""`kohort pipeline sql`: answers for people, for programs, and one sentence where there is none."""

import io
import sys
from datetime import UTC, datetime

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("duckdb")

from tests.tables.published import publish

AT = datetime(2026, 11, 21, 7, tzinfo=UTC)


@pytest.fixture
def ask(kohort, tmp_path):
    lags = [{"group_id": f"g{n:03}", "at": AT, "lag_records": n} for n in range(150)]
    publish(tmp_path, {"lag": lags, "rebalances": [{"trigger": "join", "triggers": ["join", "x"]}]})
    return lambda *argv: kohort("pipeline", "sql", *argv, "--out", str(tmp_path))


def test_an_answer_in_a_table(ask):
    ran = ask('select group_id, "at", lag_records / 4 as q from lag where lag_records = 3')

    assert (ran.code, ran.err) == (0, "")
    assert ran.rows == [["GROUP_ID", "AT", "Q"], ["g003", "2026-11-21", "07:00:00.000", "0.8"]]


def test_a_long_answer_is_cut_and_says_so(ask):
    cut = ask("from lag order by group_id")
    assert len(cut.rows) == 102
    assert cut.out.endswith("… and more rows: --limit N shows N, --format json, jsonl or csv all\n")
    some = ask("select group_id from lag order by all", "--limit", "2")
    assert some.rows[1:3] == [["g000"], ["g001"]]
    assert "and more rows" not in ask("select count(*) from lag").out
    assert len(ask("from lag", "--format", "json").json) == 150
    assert len(ask("from lag", "--format", "json", "--limit", "7").json) == 7


def test_answers_for_programs(ask):
    query = 'select l."at", r.triggers, null as no from lag l, rebalances r where lag_records = 1'

    assert ask(query, "--format", "json").json == [
        {"at": "2026-11-21T07:00:00Z", "triggers": ["join", "x"], "no": None}
    ]
    assert ask(query, "--format", "csv").out == (
        'at,triggers,no\n2026-11-21T07:00:00Z,"[""join"", ""x""]",\n'
    )


def test_a_query_may_come_from_stdin(ask, monkeypatch):
    def stdin(data):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))

    stdin(b"select count(*) as n from lag")
    assert ask("-").rows == [["N"], ["150"]]
    stdin(b"select '\xff' from lag")
    assert ask("-").complaints[0].endswith("query of stdin: byte 8 is not UTF-8")
    monkeypatch.setattr("kohort.cli.sql.DATA_BYTES_MAX", 10)
    stdin(b"select count(*) as n from lag")
    assert "it has more than 10 bytes, expected 10 at most" in ask("-").complaints[0]


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("select * from lagg", "no table is called 'lagg': did you mean lag?"),
        ("delete from lag", "the tables are only read, expected a SELECT and not DELETE"),
    ],
)
def test_what_cannot_be_answered_is_one_line(ask, query, words):
    ran = ask(query)

    assert (ran.code, ran.out) == (1, "")
    (line,) = ran.complaints
    assert words in line
    assert ask(query, "--format", "json").json["error"]


def test_several_directories_are_asked_as_one(kohort, tmp_path):
    for name in ("east", "west"):
        publish(tmp_path / name, {"lag": [{"group_id": "g"}]}, cluster=name)
    directories = [f"--out={tmp_path / name}" for name in ("east", "west")]

    ran = kohort("pipeline", "sql", "select cluster, group_id from lag order by all", *directories)

    assert ran.rows == [["CLUSTER", "GROUP_ID"], ["east", "g"], ["west", "g"]]
