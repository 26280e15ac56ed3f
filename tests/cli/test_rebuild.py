# SPDX-License-Identifier: Apache-2.0
"""`kohort pipeline rebuild` and `verify`, and what `run` says of log files: what is printed, and
the exit codes.
"""

import io
import json
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark")

from tests.tables.published import publish

from kohort.cli import pipeline
from kohort.cli.rebuild import _print_findings, _print_json, _print_rebuild_result
from kohort.cli.render import Output
from kohort.pipeline.format.code import code
from kohort.pipeline.format.manifest import Gold, Part
from kohort.pipeline.format.rebuild import RebuildResult
from kohort.pipeline.format.server_logs import ServerLog
from kohort.pipeline.format.summary import Summary
from kohort.pipeline.format.writer import Writer
from kohort.pipeline.schemas.progress import LAG
from kohort.spark import jobs
from kohort.spark.tables.verification import VerificationResult

AT = datetime(2026, 11, 21, 7, tzinfo=UTC)


@pytest.fixture
def tables(tmp_path):
    """A table of one row, which its manifest says to be two."""
    with Writer(tmp_path) as writer:
        place = f"gold/lag/{writer.new_name('')}"
        (tmp_path / place).mkdir(parents=True)
        rows = pa.Table.from_pylist([{"group_id": "g"}], schema=LAG.arrow)
        pq.write_table(rows, tmp_path / place / "part.parquet")
        gold = {"lag": Gold(columns="", parts=(Part(path=place, rows=2),))}
        writer.publish(writer.manifest.with_(gold=gold, code=code()))
    return tmp_path, place


def test_damage_is_a_line_each_and_exit_code_1(kohort, tables):
    out, place = tables
    ran = kohort("pipeline", "verify", str(out))
    assert ran.code == 1
    assert ran.out.splitlines() == [
        f"{place}: expected 2 rows, found 1",
        "note: gold was not recomputed, since there is damage",
    ]


def test_the_same_in_json(kohort, tables):
    out, place = tables
    ran = kohort("pipeline", "verify", str(out), "--all", "--format", "json")
    assert ran.code == 1
    assert ran.json == {
        "directory": str(out),
        "findings": [{"file": place, "expected": "2 rows", "found": "1"}],
        "computed_anew": None,
        "why_not": "there is damage",
    }


@pytest.mark.parametrize("command", ["verify", "rebuild"])
def test_where_there_are_no_tables_one_sentence_says_so(kohort, tmp_path, command):
    ran = kohort("pipeline", command, str(tmp_path))
    assert ran.code == 1
    assert "holds no tables" in ran.err
    assert not any(tmp_path.iterdir())


def test_a_missing_log_file_is_one_sentence(kohort, tmp_path):
    source = tmp_path / "__consumer_offsets-0"
    source.mkdir()
    out = tmp_path / "out"
    given = ("--source", f"log:{tmp_path}", "--out", str(out), "--server-log", "no*.log")
    ran = kohort("pipeline", "run", *given)
    assert (ran.code, "server log no*.log does not exist" in ran.err) == (1, True)
    assert not (out / "manifest.json").exists()


def printed(tell, found):
    stream = io.StringIO()
    output = Output(stream, "json" if tell is _print_json else "table")
    tell(found, output)
    output.end()
    return stream.getvalue()


def test_what_is_well_is_one_line(tmp_path):
    text = printed(_print_findings, VerificationResult(tmp_path, (), (0, 3), None))
    assert text == (
        f"{tmp_path} is as it was written, and gold is what the log tells "
        "(recomputed of 2 partitions)\n"
    )
    told = json.loads(printed(_print_json, VerificationResult(tmp_path, (), (0, 3), None)))
    assert (told["computed_anew"], told["findings"]) == ([0, 3], [])


def test_a_rebuild_says_what_it_did(tmp_path):
    found = RebuildResult(tmp_path, 1234, 3, {"lag": (5, 6)}, True, AT, 12.3)
    first, note, _, header, row = printed(_print_rebuild_result, found).splitlines()
    assert first == (
        f"computed 1 tables in {tmp_path} anew from 1,234 rows of 3 partitions in 12 s, as of "
        "2026-11-21 07:00:00 UTC"
    )
    assert note == "note: another Kohort had computed them before"
    assert [*header.split(), *row.split()] == ["GOLD", "ROWS", "BEFORE", "ROWS", "lag", "5", "6"]


def test_a_log_file_that_says_nothing_is_named(tmp_path):
    files = (ServerLog(tmp_path / "a.log", 3, 1), ServerLog(tmp_path / "b.log", 0, 0))
    summary = Summary(tmp_path, {}, {}, (), AT, 1.0, server_logs=files)
    first, note = printed(pipeline._tell_server_logs, summary).splitlines()
    assert first == "server logs: 2 files, 3 lines about members that are gone, 1 of them new"
    assert note.startswith(f"note: {tmp_path / 'b.log'} has no line about a member that is gone")


def test_gold_of_a_kohort_that_did_not_say_its_code_is_there_all_the_same(tmp_path):
    publish(tmp_path, {"lag": [{"group_id": "g"}]})

    found = jobs.verify(tmp_path)

    assert found.why_not == "another Kohort has computed it"
    assert "found that of another: the next run computes it anew" in str(found.findings[0])


def test_without_gold_there_is_nothing_to_compute_anew(tmp_path):
    publish(tmp_path, {})

    assert jobs.verify(tmp_path).why_not == "gold was not computed yet"
