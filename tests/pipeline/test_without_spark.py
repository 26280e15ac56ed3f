# SPDX-License-Identifier: Apache-2.0
"""What needs no Spark works where there is none, and says what to install where it cannot."""

import json
import subprocess
import sys

import pytest

pytest.importorskip("altair")

import pyarrow.parquet as pq
from tests.pipeline.report import report_tables

from kohort.pipeline.format.manifest import Gold, Part
from kohort.pipeline.format.writer import Writer
from kohort.pipeline.schemas import GOLD
from kohort.spark.gold import MEASURES
from kohort.testing import Broker

HIDING = """
import sys

class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {hidden!r}:
            raise ModuleNotFoundError(f"no module named {{name}}", name=name)

for name in {hidden!r}:
    if name not in {{"numpy", "pandas"}}:  # which others look for among the modules
        sys.modules[name] = None
sys.meta_path.insert(0, Hidden())
from kohort.cli.main import main
sys.exit(main(sys.argv[1:]))
"""
SPARK = ["pyspark", "py4j", "numpy", "pandas"]


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    """A day of some groups."""
    directory = tmp_path_factory.mktemp("tables")
    tables = report_tables.day(groups=3)
    gold = {}
    with Writer(directory) as writer:
        for table in GOLD:
            rows = tables.get(table.name)
            if rows is not None:
                place = f"gold/{table.name}/{writer.new_name('')}"
                (directory / place).mkdir(parents=True)
                pq.write_table(rows.cast(table.arrow), directory / place / "part.parquet")
                gold[table.name] = Gold(columns="", parts=(Part(path=place, rows=len(rows)),))
        writer.publish(writer.manifest.with_(gold=gold))
    return str(directory)


def pipeline(*argv, hidden=SPARK):
    return subprocess.run(
        [sys.executable, "-c", HIDING.format(hidden=hidden), "pipeline", *argv],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_show_report_and_snapshot(out):
    shown = pipeline("show", "rebalances", "--out", out, "--format", "json")
    reported = pipeline("report", "--out", out)
    with Broker(in_memory=True) as broker:
        server = ("--bootstrap-server", broker.bootstrap)
        sampled = pipeline("snapshot", *server, "--out", out)
    samples = pipeline("show", "end_offsets", "--out", out)

    for ran in (shown, reported, sampled, samples):
        assert (ran.returncode, ran.stderr) == (0, "")
    assert len(json.loads(shown.stdout)["rows"]) > 3
    assert reported.stdout == f"report: {out}/report.html\n"
    assert sampled.stdout.endswith("ends of 0 partitions\n")


def test_sql_export_and_check(out, tmp_path):
    pytest.importorskip("duckdb")
    asked = pipeline("sql", "select count(*) as n from rebalances", "--out", out)
    exported = pipeline("export", "--out", out, "--to", str(tmp_path), "--format", "csv")
    checked = pipeline("check", "--out", out, "--lag-records", "1,1000000")

    assert (asked.returncode, asked.stderr) == (0, "")
    assert int(asked.stdout.split()[1]) > 3
    assert (exported.returncode, exported.stderr) == (0, "")
    assert (tmp_path / "lag.csv").stat().st_size > 1000
    assert checked.stderr == ""
    assert checked.stdout.startswith("CRITICAL - ")


@pytest.mark.parametrize(
    ("hidden", "argv", "said"),
    [
        (
            SPARK[:1],
            ["run", "--source", "log:."],
            "pyspark is not installed: pip install '.[spark]' in a clone of Kohort",
        ),
        (
            ["pyarrow"],
            ["show", "lag"],
            "pyarrow is not installed: pip install '.[tables]' in a clone of Kohort",
        ),
        (
            ["duckdb"],
            ["sql", "select 1"],
            "duckdb is not installed: pip install '.[sql]' in a clone of Kohort",
        ),
        (
            ["altair"],
            ["report"],
            "altair is not installed: pip install '.[tables]' in a clone of Kohort",
        ),
    ],
)
def test_what_is_missing_is_named_with_its_extra(out, hidden, argv, said):
    ran = pipeline(*argv, "--out", out, hidden=hidden)

    (line,) = ran.stderr.splitlines()
    assert line.startswith(f"kohort: {said}")
    assert ran.returncode == 1


def test_the_tables_that_are_known_are_those_that_are_computed():
    assert tuple(one.table for one in MEASURES) == GOLD
