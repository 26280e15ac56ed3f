# SPDX-License-Identifier: Apache-2.0
"""A driver that is killed doubles nothing and loses nothing, and silver and gold are of one run."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from tests import golden_logs
from tests.spark import killed
from tests.spark.contents import contents
from tests.spark.measures import compute_only

from kohort.pipeline.format.manifest import load_or_none
from kohort.spark import jobs

ROOT = Path(__file__).parents[3]
FEW = "commits,offsets"
MEMBERSHIP = "members,assignments,rebalances"
FLIPPED = "all is flipped and nobody was told"


def some(points, *one):
    """One of them, if any, and in `make prove` all: each takes half a minute."""
    assert set(one) <= points.keys()
    every = pytest.param([*points], id="all", marks=pytest.mark.prove)
    return pytest.mark.parametrize("points", [*(pytest.param([it], id="one") for it in one), every])


def die(folder, out, names, point):
    """A run that dies there."""
    done = subprocess.run(
        [sys.executable, killed.__file__, str(folder), str(out), names, point],
        start_new_session=True,
        capture_output=True,
        check=False,
        cwd=ROOT,
        timeout=500,
    )
    assert (done.returncode, done.stdout) == (-signal.SIGKILL, b"working\n"), done.stderr


def part_then_whole(spark, tmp_path):
    """A log, tables made when two thirds of it were there, what they hold, and what they should
    hold after the whole.
    """
    part = golden_logs.unpack("1-written", tmp_path / "part")
    for file in part.rglob("__consumer_offsets-*/*.log"):
        with file.open("r+b") as opened:
            opened.truncate(file.stat().st_size * 2 // 3)
    folder = golden_logs.unpack("1-written", tmp_path / "whole")
    out = tmp_path / "out"
    jobs.run(f"log:{part}", out, spark=spark, as_of=killed.AS_OF)
    jobs.run(f"log:{folder}", tmp_path / "undisturbed", spark=spark, as_of=killed.AS_OF)
    return folder, out, contents(out), contents(tmp_path / "undisturbed")


def is_clean(out, states):
    """No file of this folder is unknown to the manifest."""
    manifest = load_or_none(out)
    named = {*manifest.paths(), *(one.path for one in manifest.retired)}
    there = {f"{states}/{one.name}" for one in (out / states).iterdir()}
    return there == {one for one in named if one.startswith(f"{states}/")}


@pytest.mark.timeout(600)
@some({**killed.POINTS}, "gold is half written")
def test_killed_at_each_point_and_run_again(points, spark, tmp_path, monkeypatch):
    compute_only(monkeypatch, killed.chosen(FEW))
    folder = golden_logs.unpack("1-written", tmp_path)
    jobs.run(f"log:{folder}", tmp_path / "undisturbed", spark=spark, as_of=killed.AS_OF)
    wanted = contents(tmp_path / "undisturbed")
    assert len(wanted["offsets"]) > 5
    out = tmp_path / "out"

    for point in points:
        die(folder, out, FEW, point)
        manifest = load_or_none(out)
        assert (manifest is not None) == (point == FLIPPED)
    assert FLIPPED not in points or contents(out) == wanted

    summary = jobs.run(f"log:{folder}", out, spark=spark, as_of=killed.AS_OF)

    assert (summary.rows == {}) == (FLIPPED in points)
    assert contents(out) == wanted
    assert len(list((out / "rows").glob("increment=*"))) == 1


@pytest.mark.timeout(900)
@some(killed.GOING_ON)
def test_killed_while_histories_go_on(points, spark, tmp_path, monkeypatch):
    """Tables and states are of one run at every moment, the old one or the new."""
    compute_only(monkeypatch, killed.chosen(MEMBERSHIP))
    folder, out, before, wanted = part_then_whole(spark, tmp_path)
    states = load_or_none(out).histories
    assert 10 < len(before["members"]) < len(wanted["members"])

    for point in points:
        die(folder, out, MEMBERSHIP, point)
        assert contents(out) == (wanted if point == FLIPPED else before), point
        assert (load_or_none(out).histories == states) == (point != FLIPPED)

    summary = jobs.run(f"log:{folder}", out, spark=spark, as_of=killed.AS_OF)

    assert (summary.rows == {}) == (FLIPPED in points)
    assert contents(out) == wanted
    assert is_clean(out, "histories")


@pytest.mark.timeout(900)
@some(killed.ADDING)
def test_killed_while_progress_goes_on(points, spark, tmp_path):
    """Tables and what they go on from are of one run at every moment, the old one or the new."""
    folder, out, before, wanted = part_then_whole(spark, tmp_path)
    known, past = load_or_none(out).progress, load_or_none(out).past
    assert 10 < len(before["commits"]) < len(wanted["commits"])

    for point in points:
        die(folder, out, "all", point)
        assert contents(out) == (wanted if point == FLIPPED else before), point
        assert (load_or_none(out).progress == known) == (point != FLIPPED)
        assert load_or_none(out).past == past, "its moment was there"

    summary = jobs.run(f"log:{folder}", out, spark=spark, as_of=killed.AS_OF)

    assert (summary.rows == {}) == (FLIPPED in points)
    assert contents(out) == wanted
    assert is_clean(out, "progress")
