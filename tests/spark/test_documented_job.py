# SPDX-License-Identifier: Apache-2.0
"""The job of the documentation for places where a session is there already."""

import shlex
import sys

import pytest

pytest.importorskip("pyspark")

import yaml
from tests import golden_logs
from tests.documented import blocks
from tests.spark.measures import compute_only
from tests.spark.rows import golden

from kohort.pipeline.format.arrow_reader import Tables
from kohort.spark.gold import MEASURES


def test_the_file_of_the_documentation_runs_in_the_session_that_is_there(
    spark, tmp_path, monkeypatch, capsys
):
    folder = golden_logs.unpack("1-written", tmp_path)
    compute_only(monkeypatch, [one for one in MEASURES if one.table.name == "commits"])
    _, code = blocks("operations.md", "A schedule", "python")
    told = [f"log:{folder}", str(tmp_path / "out")]
    name, *names = shlex.split(code.splitlines()[0].removeprefix("# "))
    assert len(names) == len(told)
    monkeypatch.setattr(sys, "argv", [name, *told])

    exec(compile(code, name, "exec"), {})

    assert len(Tables(tmp_path / "out").table("records")) == golden("1-written").num_rows
    assert f"{tmp_path / 'out'}, as of 20" in capsys.readouterr().out
    assert spark.range(3).count() == 3, "the session is not ours to end"


def test_the_bundle_of_the_documentation_names_that_file():
    _, code = blocks("operations.md", "A schedule", "python")
    bundle = yaml.safe_load(blocks("operations.md", "A schedule", "yaml")[0])
    (job,) = bundle["resources"]["jobs"].values()
    (task,) = job["tasks"]
    ran = task["spark_python_task"]
    assert code.startswith(f"# {ran['python_file']} ")
    assert [one.partition(":")[0] for one in ran["parameters"]] == ["cluster", "s3"]
    assert job["max_concurrent_runs"] == 1
