# SPDX-License-Identifier: Apache-2.0
"""`kohort pipeline`: what the commands ask of the jobs, and what they print."""

import errno
import io
import json
import os
import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark")

from tests import golden_logs
from tests.tables.published import publish

from kohort import Security, Store
from kohort.cli import pipeline, show
from kohort.cli.render import Output
from kohort.pipeline import report
from kohort.pipeline.format import arrow_reader, up_to_date
from kohort.pipeline.format.catalog import SHORT, known_tables
from kohort.pipeline.format.manifest import (
    Basis,
    Gold,
    Increment,
    Part,
    RunArguments,
    TablesError,
    load,
)
from kohort.pipeline.format.report_mark import mark_of
from kohort.pipeline.format.summary import Summary
from kohort.pipeline.format.writer import Writer
from kohort.pipeline.schemas import END_OFFSETS
from kohort.pipeline.schemas.membership import REBALANCES
from kohort.pipeline.schemas.progress import DELETABLE_GROUPS, LAG
from kohort.pipeline.sources import sampler
from kohort.pipeline.sources.log_position import Note
from kohort.spark import jobs

AT = datetime(2026, 11, 21, 7, tzinfo=UTC)
LAGS = [
    {"partition": 0, "group_id": group, "level": "partition", "topic": "t", "at": at, **values}
    for group, at, values in [
        ("b", AT.replace(hour=6), {"lag_records": 1, "topic_partition": 0}),
        ("b", AT, {"lag_records": 5, "lag_seconds": 2.25, "topic_partition": 0}),
        ("a", AT, {"topic_partition": 1, "reason": "no_end_offset"}),
    ]
]


@pytest.fixture
def out(tmp_path):
    """A directory with two tables of gold."""
    rows = {
        LAG: LAGS,
        REBALANCES: [{"group_id": "a", "trigger": one} for one in ("join", "leave", "join")],
        DELETABLE_GROUPS: [{"group_id": "old", "deletable": True, "blockers": []}],
    }
    gold = {}
    with Writer(tmp_path) as writer:
        for table, contents in rows.items():
            place = f"gold/{table.name}/{writer.new_name('')}"
            (tmp_path / place).mkdir(parents=True)
            found = pa.Table.from_pylist(contents, schema=table.arrow)
            pq.write_table(found, tmp_path / place / "part.parquet")
            gold[table.name] = Gold(columns="", parts=(Part(path=place, rows=len(contents)),))
        writer.publish(writer.manifest.with_(gold=gold))
    return str(tmp_path)


def test_show_prints_the_newest_moment_by_group(kohort, out):
    ran = kohort("pipeline", "show", "lag", "--out", out)

    assert ran.code == 0
    header, first, second = ran.rows
    assert header[:3] == ["GROUP_ID", "TOPIC", "TOPIC_PARTITION"]
    unknown = ["unknown", "(no_end_offset)"]
    assert first == ["a", "t", "1", *unknown, *unknown, "partition", *"--", *str_of(AT)]
    assert second == ["b", "t", "0", "5", "at", "least", "2.2", "partition", *"--", *str_of(AT)]


def str_of(at):
    return at.isoformat(" ", "milliseconds").removesuffix("+00:00").split()


def test_show_speaks_json(kohort, out):
    ran = kohort(
        "pipeline", "show", "lag", "--out", out, "--group", "b", "--history", "--format", "json"
    )

    assert [row["at"] for row in ran.json] == ["2026-11-21T06:00:00Z", "2026-11-21T07:00:00Z"]
    assert set(ran.json[0]) == set(LAG.names)
    assert ran.json[1]["lag_seconds"] == 2.25


def test_show_knows_short_names_columns_and_limits(kohort, out):
    shown = kohort(
        "pipeline", "show", "deletable", "--out", out, "--columns", "group_id,deletable,group_id"
    )
    assert shown.rows == [["GROUP_ID", "DELETABLE"], ["old", "yes"]]

    limited = kohort("pipeline", "show", "rebalances", "--out", out, "--limit", "1")
    assert len(limited.rows) == 3
    assert limited.out.endswith(
        "… and 2 more rows: --limit N shows N, --group those of a group, --format json all\n"
    )

    empty = kohort("pipeline", "show", "quarantine", "--out", out)
    assert (empty.code, len(empty.rows)) == (0, 1)


def test_show_holds_no_more_in_memory_than_it_shows(kohort, tmp_path, monkeypatch):
    groups = [f"g{number * 7919 % 1000:03}" for number in range(1000)]
    rows = [{"group_id": one, "trigger": "join"} if one != "g004" else {} for one in groups]
    table = pa.Table.from_pylist(rows, schema=REBALANCES.arrow)
    with Writer(tmp_path) as writer:
        place = "gold/rebalances/1"
        (tmp_path / place).mkdir(parents=True)
        for number in range(4):
            some = table.slice(250 * number, 250)
            pq.write_table(some, tmp_path / place / f"{number}.parquet")
        gold = Gold(columns="", parts=(Part(path=place, rows=1000),))
        writer.publish(writer.manifest.with_(gold={"rebalances": gold}))
    command = ("pipeline", "show", "rebalances", "--out", str(tmp_path), "--columns", "group_id")
    everything = kohort(*command, "--format", "json").json
    assert [row["group_id"] for row in everything][-1] is None
    monkeypatch.setattr(arrow_reader.Rows, "to_table", None)

    shown = kohort(*command, "--limit", "5")

    assert [row[0] for row in shown.rows[1:6]] == [row["group_id"] for row in everything[:5]]
    assert shown.rows[5] == ["g005"]
    assert "… and 995 more rows" in shown.out


def test_short_names_are_of_tables_that_there_are():
    assert set(SHORT) | set(show.LATEST) <= set(known_tables())


@pytest.mark.parametrize(
    ("argv", "code", "words"),
    [
        (["show", "foo"], 1, "no table is called 'foo', expected one of records, end_offsets, "),
        (["show", "deletabl"], 1, "no table is called 'deletabl': did you mean deletable?"),
        (["show", "foo"], 1, ", deletable"),
        (["show", "lagg"], 1, "no table is called 'lagg': did you mean lag?"),
        (["show", "lag", "--group", "c"], 1, "no group is called 'c' in "),
        (["show", "status"], 1, "has no table status yet: the next `kohort pipeline run`"),
        (
            ["show", "lag", "--columns", "topik"],
            2,
            "table lag has no column 'topik': did you mean topic?",
        ),
        (["show", "lag", "--columns", "x"], 2, "table lag has no column 'x', expected one of par"),
        (["show", "records", "--group", "g"], 2, "table records has no groups, so --group cannot"),
        (["show", "lag", "--limit", "0"], 2, "0 is too small, expected at least 1"),
        (["run"], 2, "the following arguments are required: --source"),
        (["run", "--source", "x:y"], 2, "'x:y' is not a source, expected one of log:DIRECTORY, "),
        (["run", "--source", "log:x", "--every", "5s"], 2, "--every is for --stream"),
        (["run", "--source", "log:x", "--stream", "--to", "2026-01-01"], 2, "--to is not for --st"),
        (
            ["run", "--source", "log:x", "--from", "2026-11-27", "--to", "2026-11-26T07:00Z"],
            2,
            "--from 2026-11-27 00:00:00 is not before --to 2026-11-26 07:00:00, so no record is",
        ),
        (["run", "--source", "log:x", "--from", "soon"], 2, "'soon' is not a time, expected such"),
        (["run", "--source", "log:x", "--every", "5"], 2, "'5' is not a duration, expected such"),
        (["run", "--source", "log:x", "--retention", "d"], 2, "'d' is not a duration"),
        (["run", "--source", "log:x", "--keep", "-1"], 2, "'-1' is not a number of days"),
        (
            ["run", "--source", "log:x", "-X", "a"],
            2,
            "argument -X: expected NAME=VALUE",
        ),
        (["snapshot", "--bootstrap-server", "h:1", "--count", "2"], 2, "--count is for --every"),
        (["snapshot", "--bootstrap-server", "127.0.0.1:1"], 1, "cannot connect to 127.0.0.1:1"),
    ],
)
def test_what_cannot_be_done_is_one_line(kohort, out, argv, code, words):
    ran = kohort("pipeline", *argv, "--out", out)

    assert (ran.code, ran.out) == (code, "")
    (line,) = ran.complaints
    assert words in line


@pytest.mark.parametrize("place", ["ftp://host/tables", "ftp:tables"])
@pytest.mark.parametrize(
    "command",
    [
        ["show", "lag"],
        ["report"],
        ["run", "--source", "log:."],
        ["snapshot", "--bootstrap-server", "127.0.0.1:1"],
    ],
)
def test_a_place_that_is_no_directory(kohort, tmp_path, monkeypatch, command, place):
    monkeypatch.chdir(golden_logs.unpack("1-written", tmp_path))
    monkeypatch.setattr(sampler, "cluster_id", lambda *_: "c-1")

    ran = kohort("pipeline", *command, "--out", place)

    (line,) = ran.complaints
    scheme = place.partition(":")[0]
    assert f"or webhdfs://HOST:PORT/PATH and not {scheme}:…" in line
    assert (ran.code, list(Path().glob("*:*"))) == (1, [])


def test_run_tells_where_a_copy_ends(kohort, out, monkeypatch):
    ended = summary(out)._replace(log_end=AT.replace(microsecond=5000))
    monkeypatch.setattr(jobs, "run", lambda *_, **__: ended)
    monkeypatch.setattr(report, "write", lambda _, path, groups, **__: path)
    command = ("pipeline", "run", "--source", "log:/d", "--out", out)

    lines = kohort(*command).out.splitlines()
    chosen = kohort(*command, "--as-of", "2026-11-22").out.splitlines()

    said = "note: the log ends at 2026-11-21 07:00:00 UTC"
    assert said in chosen
    advice = "if it is a copy, --as-of 2026-11-21T07:00:00.005Z tells how things were at its end"
    assert f"{said}: {advice}" in lines


def test_run_tells_which_tables_are_of_a_later_moment_than_lag(kohort, out, monkeypatch):
    """`--as-of` within a log: lag is that of then, members are those of the log's end."""
    monkeypatch.setattr(jobs, "run", lambda *_, **__: summary(out))
    monkeypatch.setattr(report, "write", lambda _, path, groups, **__: path)
    command = ("pipeline", "run", "--source", "log:/d", "--out", out)
    with Writer(Path(out)) as writer:
        ends = [increment(AT - timedelta(days=1)), increment(AT + timedelta(hours=2))]
        (Path(out) / "rows").mkdir(exist_ok=True)
        moment = int(AT.timestamp() * 1000)
        writer.publish(writer.manifest.with_(increments=tuple(ends), as_of_ms=moment))

    told = kohort(*command).out
    with Writer(Path(out)) as writer:
        writer.publish(writer.manifest.with_(increments=tuple(ends[:1])))
    silent = kohort(*command).out

    assert (
        "note: lag and status are those of 2026-11-21 07:00:00 UTC; the log was read to 2026-11-21 "
        "09:00:00 UTC, and groups, members, offsets and deletable groups are of then. --to with"
    ) in told
    assert "lag and status are those of" not in silent


def test_run_says_what_would_decide_unknown_causes(kohort, tmp_path, monkeypatch):
    monkeypatch.setattr(jobs, "run", lambda *_, **__: summary(tmp_path))
    monkeypatch.setattr(report, "write", lambda _, path, groups, **__: path)
    assumed = "a is gone: last sign of life 12.0 s before, session timeout 45.0 s assumed"
    rows = [
        {"group_id": "g", "trigger": "unknown", "possible": ["leave"], "evidence": evidence}
        for evidence in (assumed, assumed, "b is gone: session timeout 45.0 s assumed", None)
    ]
    publish(tmp_path, {"rebalances": rows})

    ran = kohort("pipeline", "run", "--source", "log:/d", "--out", str(tmp_path))

    assert (
        "note: 2 unknown causes rest on an assumed session timeout: `--session-timeout`" in ran.out
    )


def increment(newest):
    return Increment(
        name=f"{newest:%d%H}",
        ranges={},
        counts={},
        newest_ms=int(newest.timestamp() * 1000),
    )


def test_where_nothing_was_written_yet(kohort, tmp_path):
    for command in (["show", "lag"], ["report"]):
        ran = kohort("pipeline", *command, "--out", str(tmp_path / "nowhere"))
        assert ran.code == 1
        assert "does not exist: write some with `kohort pipeline run" in ran.err


def test_without_spark_it_says_what_to_install(kohort, out, monkeypatch):
    monkeypatch.setattr("kohort.spark.find_spec", lambda _: None)
    ran = kohort("pipeline", "show", "lag", "--out", out)
    hint = "pip install '.[tables]' in a clone of Kohort"
    assert ran.complaints == [f"kohort: pyarrow is not installed: {hint}"]


def test_a_wrong_source_is_told_before_what_is_not_installed(kohort, tmp_path, monkeypatch):
    monkeypatch.setattr("kohort.spark.find_spec", lambda _: None)
    for wrong in ("lgo:data", "data", "log:", "log: "):
        ran = kohort("pipeline", "run", "--source", wrong, "--out", str(tmp_path))
        assert (ran.code, ran.out) == (2, "")
        (line,) = ran.complaints
        assert f"'{wrong}' is not a source, expected one of log:DIRECTORY, cluster:" in line


@pytest.mark.parametrize("command", [("show", "lag"), ("report",), ("snapshot",)])
def test_a_directory_of_tables_is_no_file(kohort, tmp_path, command):
    (tmp_path / "file").write_text("")
    ran = kohort("pipeline", *command, "--out", str(tmp_path / "file"))
    assert (ran.code, ran.out) == (2, "")
    assert "file' is a file, expected a directory" in ran.err


def summary(out):
    notes = (Note(3, 7, "offsets 7 to 9 of partition 3 were removed before they were read"),)
    return Summary(Path(out), {"tombstone": 1200, "quarantine": 0}, {"lag": 3}, notes, AT, 2.5)


@pytest.mark.parametrize(("source", "is_asked"), [("cluster:h:1", True), ("log:/d", False)])
def test_run_has_the_security_of_a_cluster(kohort, out, monkeypatch, tmp_path, source, is_asked):
    asked = {}

    def run(_source, _directory, **options):
        asked.update(options)
        return summary(out)

    monkeypatch.setattr(jobs, "run", run)
    monkeypatch.setattr(report, "write", lambda _, path, groups, **__: path)
    config = tmp_path / "client.properties"
    config.write_text("security.protocol=SSL\nssl.ca.location=ca.pem\n")
    argv = ("pipeline", "run", "--source", source, "--out", out)
    assert kohort(*argv, "--command-config", str(config)).code == 0
    expected = Security(protocol="SSL", trust=Store(path="ca.pem"))
    assert asked.get("security") == (expected if is_asked else None)
    config.write_text("security.protocol=TLS\n")
    assert kohort(*argv, "--command-config", str(config)).code == (2 if is_asked else 0)


def test_run_hands_its_options_on_and_tells_what_it_did(kohort, out, monkeypatch):
    asked = {}

    def run(source, directory, **options):
        asked.update(options, source=source, out=directory)
        return summary(out)

    monkeypatch.setattr(jobs, "run", run)
    monkeypatch.setattr(report, "write", lambda _, path, groups, **__: path)
    ran = kohort(
        *(
            "pipeline",
            "run",
            "--source",
            "log:/d",
            "--out",
            out,
            "--from",
            "2026-11-21T08:00+01:00",
        ),
        *("--to", "1795248000000", "--master", "local[1]", "-X", "a.b=c=d", "--retention", "7d"),
        *("--as-of", "2026-11-22", "--keep", "90", "--cluster", "west"),
        *("--server-log", "a.log", "b*", "--server-log", "c", "--spark-only"),
    )

    assert (ran.code, ran.err) == (0, "")
    progress = asked.pop("progress")
    assert callable(progress)
    assert asked == {
        "source": "log:/d",
        "out": Path(out),
        "cluster": "west",
        "master": "local[1]",
        "from_time": AT,
        "to_time": datetime(2026, 11, 21, 8, tzinfo=UTC),
        "conf": {"a.b": "c=d"},
        "as_of": datetime(2026, 11, 22, tzinfo=UTC),
        "retention_ms": 604_800_000,
        "session_timeout_ms": None,
        "keep_days": 90.0,
        "server_logs": ["a.log", "b*", "c"],
        "alone": True,
        "spark_only": True,
    }
    lines = ran.out.splitlines()
    assert lines[0] == f"read 1,200 records of log:/d into {out} in 2 s"
    assert ["tombstone", "1200"] in ran.rows
    assert not any("quarantine" in line for line in lines)
    assert "note: offsets 7 to 9 of partition 3 were removed before they were read" in lines
    assert lines[-2:] == ["3 rebalances: 2 join, 1 leave", f"report: {out}/report.html"]


def test_where_nothing_is_new_spark_is_not_needed(kohort, out, monkeypatch):
    asked = []

    def same(directory, told):
        asked.append((directory, told))
        return summary(out)._replace(rows={}, unchanged=True, notes=())

    monkeypatch.setattr(up_to_date, "summary_or_none", same)
    monkeypatch.setattr(jobs, "run", lambda *_, **__: pytest.fail("Spark was started"))
    monkeypatch.setattr(report, "write", lambda _, path, groups, **__: path)
    command = ("pipeline", "run", "--source", "log:/d", "--out", out, "--to", "1795248000000")

    lines = kohort(*command, "--retention", "7d").out.splitlines()

    assert lines[0] == f"read 0 records of log:/d into {out} in 2 s"
    said = "nothing is new in it: Spark was not started, and the tables are those of"
    assert lines[1] == f"{said} 2026-11-21 07:00:00 UTC"
    assert lines[-2:] == ["3 rebalances: 2 join, 1 leave", f"report: {out}/report.html"]
    to_us = 1_795_248_000_000_000
    told = RunArguments(source="log:/d", to_us=to_us, retention_ms=604_800_000)
    assert asked == [(Path(out), told)]


def test_a_report_is_drawn_once(kohort, out, monkeypatch):
    same = summary(out)._replace(rows={}, unchanged=True)
    monkeypatch.setattr(up_to_date, "summary_or_none", lambda *_: same)
    drawn = []
    monkeypatch.setattr(report, "write", lambda _, path, groups, **told: drawn.append(told) or path)
    command = ("pipeline", "run", "--source", "log:/d", "--out", out)

    def page(mark):
        (Path(out) / "report.html").write_text(f'<meta name="kohort" content="{mark}">')

    page("")
    assert kohort(*command).code == 0
    with Writer(Path(out)) as writer:
        basis = Basis(log="l", asked=RunArguments(source="log:/d"), code="c", files="f")
        writer.publish(writer.manifest, basis)
    assert kohort(*command).code == 0
    assert len(drawn) == 2
    assert (drawn[0]["mark"], drawn[1]["mark"]) == ("", mark_of(load(Path(out))))
    page(drawn[1]["mark"])
    assert kohort(*command).out.splitlines()[-1] == f"report: {out}/report.html"
    assert len(drawn) == 2
    with Writer(Path(out)) as writer:
        writer.publish(writer.manifest, basis)
    assert kohort(*command).code == 0
    assert len(drawn) == 3


def test_stream_is_a_run_that_may_go_on(kohort, out, monkeypatch):
    asked = []
    monkeypatch.setattr(jobs, "stream", lambda *_, **options: asked.append(options) or summary(out))
    monkeypatch.setattr(report, "write", lambda _, path, groups, **__: path)
    for more in ([], ["--every", "1500ms"]):
        command = ("pipeline", "run", "--source", "log:/d", "--out", out, "--stream", *more)
        assert kohort(*command).code == 0
    assert [one["every_s"] for one in asked] == [None, 1.5]
    assert [one["after_each"] is None for one in asked] == [True, False]


def test_a_stream_goes_on_where_nobody_can_be_told(out, monkeypatch, capsys):
    """Its rows count: a full disk under what it prints, or a reader that has gone, ends nothing."""

    class Full(io.StringIO):
        def write(self, _):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    written = []
    monkeypatch.setattr(report, "write_into", written.append)
    pipeline.MicroBatchReporter(Path(out), Output(Full()))(summary(out))
    assert written == [Path(out)]
    told = capsys.readouterr().err
    assert told == "kohort: cannot write to stdout: No space left on device\n"


def test_a_stream_writes_its_report_as_it_goes(out, monkeypatch, capsys):
    clock, written = [100.0], []
    monkeypatch.setattr(pipeline.time, "monotonic", lambda: clock[0])

    def write(directory):
        written.append(clock[0])
        if len(written) == 2:
            raise TablesError("gold is gone")
        if len(written) == 3:
            raise pa.ArrowInvalid("a file is damaged")
        return directory / "report.html"

    monkeypatch.setattr(report, "write_into", write)
    after_each = pipeline.MicroBatchReporter(Path(out), Output(sys.stdout))
    for clock[0] in (100.0, 110.0, 159.0, 160.0, 170.0, 225.0):
        after_each(summary(out))

    assert written == [100.0, 160.0, 225.0]
    told = capsys.readouterr()
    assert told.err.splitlines() == [
        "kohort: the report was not written: gold is gone",
        "kohort: the report was not written: a file is damaged",
    ]
    lines = told.out.splitlines()
    assert (
        lines[1::2]
        == ["note: offsets 7 to 9 of partition 3 were removed before they were read"] * 6
    )
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC: [\d,]+ records in [\d.]+ s", lines[0])


def test_snapshot_counts_the_partitions(kohort, tmp_path, monkeypatch):
    row = {"sampled_at": AT, "topic": "t", "topic_partition": 0, "origin": "cluster"}
    sampled = pa.Table.from_pylist([{**row, "end_offset": 1}], schema=END_OFFSETS.arrow)
    monkeypatch.setattr(sampler, "cluster_id", lambda *_: "c-1")
    monkeypatch.setattr(sampler, "sample_cluster", lambda *_: sampled)

    ran = kohort(
        *("pipeline", "snapshot", "--bootstrap-server", "h:1", "--out", str(tmp_path)),
        *("--every", "1ms", "--count", "2"),
    )

    assert (ran.code, len(ran.rows)) == (0, 2)
    assert re.fullmatch(
        r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d ends of 1 partitions", ran.out.split("\n")[0]
    )
    shown = kohort("pipeline", "show", "end_offsets", "--out", str(tmp_path), "--format", "json")
    assert [one["end_offset"] for one in shown.json] == [1, 1]


@pytest.mark.parametrize("place", ["first", "noun", "environment"])
def test_snapshot_takes_the_cluster_from_where_others_do(kohort, tmp_path, monkeypatch, place):
    asked = []
    monkeypatch.setattr(sampler, "snapshot", lambda server, *_, **__: asked.append(server))
    option = ("--bootstrap-server", "h:7")
    if place == "environment":
        monkeypatch.setenv("KOHORT_BOOTSTRAP_SERVER", "h:7")
    ran = kohort(
        *(option if place == "first" else ()),
        "pipeline",
        *(option if place == "noun" else ()),
        *("snapshot", "--out", str(tmp_path)),
    )
    assert (ran.code, asked) == (0, ["h:7"])


@pytest.mark.spark
@pytest.mark.timeout(300)
def test_from_a_log_to_a_report(tmp_path):
    """The whole of it, as from a shell."""
    folder = golden_logs.unpack("1-written", tmp_path)
    out = tmp_path / "out"

    def kohort(*argv):
        command = [sys.executable, "-m", "kohort", "pipeline", *argv, "--out", str(out)]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    ran = kohort("run", "--source", f"log:{folder}", "--as-of", "2026-11-22")

    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("read 344 records of log:")
    assert re.search(r"^\d+ rebalances: \d+ \w+", ran.stdout, re.MULTILINE)
    assert not [line for line in ran.stderr.splitlines() if "WARN" in line]
    assert (out / "report.html").stat().st_size > 100_000
    shown = kohort("show", "members", "--group", "consumer-two", "--format", "json")
    assert {one["member_id"] for one in json.loads(shown.stdout)["rows"]} == {"m-a", "m-b"}
    again = kohort("report", "--group", "consumer-two")
    assert again.stdout == f"report: {out / 'report.html'}\n"


def test_show_tells_several_clusters_apart_and_names_the_one_that_is_damaged(kohort, tmp_path):
    early, late = AT, AT.replace(hour=AT.hour + 1)
    for name, at in (("east", early), ("west", late)):
        rows = [{"group_id": "g", "at": at}, {"group_id": name, "at": at}]
        publish(tmp_path / name, {"lag": rows}, cluster=name)
    directories = [f"--out={tmp_path / name}" for name in ("east", "west", "lost")]
    show = ("pipeline", "show", "lag", *directories)

    ran = kohort(*show, "--columns", "cluster,group_id")

    assert ran.code == 1
    assert ran.rows[1:] == [["east", "east"], ["east", "g"], ["west", "g"], ["west", "west"]]
    (line,) = ran.complaints
    assert f"{tmp_path / 'lost'} does not exist" in line
    assert ran.complaints[0].endswith(": what is here is without it")
    found = kohort(*show, "--group", "west", "--format", "json").json
    assert [(row["cluster"], row["group_id"]) for row in found] == [("west", "west")]
    assert kohort(*show).rows[0][-1] == "CLUSTER"
    assert "and 1 more row:" in kohort(*show, "--limit", "3").out
