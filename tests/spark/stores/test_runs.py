# SPDX-License-Identifier: Apache-2.0
"""Runs into a store: the tables are those of a directory, also after a crash at any point."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests import golden_logs
from tests.pipeline.stores.faulty import keys
from tests.spark import killed
from tests.spark.contents import contents
from tests.spark.measures import compute_only
from tests.spark.tables.test_crashes import FEW, FLIPPED, some
from tests.tables.published import publish

pytest.importorskip("pyspark")

import kohort.spark
import kohort.tables
from kohort.cli.main import main
from kohort.pipeline.format.manifest import TablesError, load, load_or_none
from kohort.pipeline.stores import parquet
from kohort.pipeline.stores.places import place_of
from kohort.spark import jobs
from kohort.spark.tables import spark_writer

ROOT = Path(__file__).parents[3]
COMMANDS = (
    ("show", "lag"),
    ("show", "deletable"),
    ("sql", "select topic, max(lag_records) from lag group by all order by 1"),
)


def in_every_store(*, in_s3_at_once=False):
    """In `make prove`, or in S3 in every run of the tests: what is above a store is the same for
    each, and what a store itself has to keep is tried without Spark.
    """
    marks = {"hdfs": pytest.mark.java, "azure": pytest.mark.clouds, "google": pytest.mark.clouds}
    s3 = pytest.param("s3", marks=() if in_s3_at_once else pytest.mark.prove)
    others = [pytest.param(name, marks=[mark, pytest.mark.prove]) for name, mark in marks.items()]
    return pytest.mark.parametrize("server", [s3, *others], indirect=True)


def run(place, folder, spark, **more):
    return jobs.run(f"log:{folder}", str(place), spark=spark, as_of=killed.AS_OF, **more)


def in_part(tmp_path):
    """A log when two thirds of it were there, and the whole."""
    part = golden_logs.unpack("1-written", tmp_path / "part")
    for file in part.rglob("__consumer_offsets-*/*.log"):
        with file.open("r+b") as opened:
            opened.truncate(file.stat().st_size * 2 // 3)
    return part, golden_logs.unpack("1-written", tmp_path / "whole")


def is_clean(place):
    """Every object below the folders of rows is named."""
    manifest = load(place)
    named = {f"{path}/{name}" for path, files in manifest.files.items() for name in files}
    there = {one for one in keys(place) if "/" in one and "/_delta_log/" not in one}
    return there == named


@in_every_store()
@pytest.mark.timeout(600)
def test_runs_and_increments_are_those_of_a_directory(spark, place, tmp_path, capsys):
    part, whole = in_part(tmp_path)
    out = tmp_path / "out"
    for folder in (part, whole):
        there, here = run(place, folder, spark), run(out, folder, spark)
        assert there.rows == here.rows
        assert there.gold == here.gold
        assert contents(str(place)) == contents(out)
    assert is_clean(place)

    assert run(place, whole, spark).unchanged
    lag = kohort.spark.read(str(place), "lag", spark)
    assert lag.count() == kohort.tables.read(str(place), "lag").num_rows > 0
    views = kohort.spark.views(spark, str(place), "there_")
    assert "there_rebalances" in views
    counted = spark.sql("select trigger, count(*) as n from there_rebalances group by 1").collect()
    query = "select trigger, count(*) as n from rebalances group by 1"
    assert {(one["trigger"], one["n"]) for one in counted} == {
        (one["trigger"], one["n"]) for one in kohort.tables.sql(str(place), query).to_pylist()
    }
    for name in ("records", "offset_commit", "end_offsets", "commits"):
        query = f"select * from {name}"
        rows = [kohort.tables.sql(str(one), query).to_pylist() for one in (place, out)]
        assert sorted(map(repr, rows[0])) == sorted(map(repr, rows[1])), name
    assert jobs.report(str(place)).read_bytes().startswith(b"<!DOCTYPE html>")
    again = ("pipeline", "run", "--source", f"log:{whole}", "--as-of", "2026-11-22")
    assert main((*again, "--out", str(place))) == 0  # nothing is new, and the report is up to date
    assert capsys.readouterr().out.splitlines()[-1] == f"report: {place}/report.html"
    assert jobs.verify(str(place)).findings == ()
    assert kohort.tables.check(str(place)).state == kohort.tables.check(out).state
    for command in COMMANDS:
        said = []
        for one in (place, out):
            code = main(("pipeline", *command, "--out", str(one)))
            said.append((code, sorted(capsys.readouterr().out.splitlines())))
        assert said[0] == said[1], command
        assert said[0][1], command


@in_every_store()
@pytest.mark.timeout(600)
@some({**killed.POINTS}, "gold is half written")
def test_killed_at_each_point_and_run_again(points, spark, place, tmp_path, monkeypatch):
    compute_only(monkeypatch, killed.chosen(FEW))
    folder = golden_logs.unpack("1-written", tmp_path)
    run(tmp_path / "undisturbed", folder, spark)
    wanted = contents(tmp_path / "undisturbed")

    for point in points:
        done = subprocess.run(
            [sys.executable, killed.__file__, str(folder), str(place), FEW, point],
            start_new_session=True,
            capture_output=True,
            check=False,
            cwd=ROOT,
            timeout=500,
        )
        assert (done.returncode, done.stdout) == (-signal.SIGKILL, b"working\n"), done.stderr
        assert (load_or_none(place) is not None) == (point == FLIPPED)
    assert FLIPPED not in points or contents(str(place)) == wanted

    assert (run(place, folder, spark).rows == {}) == (FLIPPED in points)
    assert contents(str(place)) == wanted
    assert is_clean(place)


@in_every_store(in_s3_at_once=True)
@pytest.mark.timeout(600)
def test_a_store_that_fails_in_the_middle_leaves_what_was(
    spark, server, place, tmp_path, quick, monkeypatch
):
    compute_only(monkeypatch, killed.chosen(FEW))
    part, whole = in_part(tmp_path)
    run(place, part, spark)
    before, number = contents(str(place)), load(place).number

    def away(*asked):
        return "away" if server.is_flip(place, *asked) else None

    with server.failing(away), pytest.raises(TablesError, match="the store answered 503"):
        run(place, whole, spark)
    assert (contents(str(place)), load(place).number) == (before, number)

    run(place, whole, spark)
    run(tmp_path / "out", whole, spark)
    assert contents(str(place)) == contents(tmp_path / "out")
    assert is_clean(place)


@in_every_store()
@pytest.mark.timeout(600)
def test_a_stream_is_the_same(spark, place, tmp_path, monkeypatch):
    compute_only(monkeypatch, killed.chosen(FEW))
    folder = golden_logs.unpack("1-written", tmp_path)
    run(tmp_path / "out", folder, spark)
    jobs.stream(f"log:{folder}", str(place), max_records=200, spark=spark, as_of=killed.AS_OF)
    assert contents(str(place)) == contents(tmp_path / "out")
    assert load(place).number > 2


def test_what_another_attempt_has_written_does_not_count(spark, place):
    """Three attempts have written files, and the last is the one that is counted."""
    frame = spark.range(0, 10, 1, 2)
    for attempt in range(3):
        folder = place_of(str(place)) / "gold/lag/1"
        assert spark_writer.write(frame, folder) == 10
        assert len(keys(place)) == 2 * (attempt + 1)
        assert parquet.read(folder).num_rows == 10


@in_every_store()
def test_the_format_of_spark_reads_it(spark, place, tmp_path):
    """Spark plans it in a process that has the environment in which the JVM was started."""
    publish(place, {"group_state": [{"partition": 0, "group_id": one} for one in "abc"]})
    program = (
        "import sys, kohort.spark\n"
        "from kohort.spark.engine.session import session\n"
        "spark = session('local[1]', {}, quick=True)\n"
        "kohort.spark.register(spark)\n"
        "read = spark.read.format('kohort.tables').option('path', sys.argv[1])\n"
        "found = read.option('table', 'group_state').load().where(\"group_id > 'a'\")\n"
        "print([one.group_id for one in found.collect()])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(place)], capture_output=True, check=False, timeout=300
    )
    assert done.stdout == b"['b', 'c']\n", done.stderr
