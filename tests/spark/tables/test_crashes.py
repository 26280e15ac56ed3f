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

from kohort.spark import jobs
from kohort.spark.tables.manifest import load_or_none

ROOT = Path(__file__).parents[3]
FEW = "commits,offsets"
FLIPPED = "all is flipped and nobody was told"


@pytest.mark.timeout(600)
def test_killed_at_each_point_and_run_again(spark, tmp_path, monkeypatch):
    compute_only(monkeypatch, killed.chosen(FEW))
    folder = golden_logs.unpack("1-written", tmp_path)
    jobs.run(f"log:{folder}", tmp_path / "undisturbed", spark=spark, as_of=killed.AS_OF)
    wanted = contents(tmp_path / "undisturbed")
    assert len(wanted["offsets"]) > 5
    out = tmp_path / "out"

    for point in killed.POINTS:
        done = subprocess.run(
            [sys.executable, killed.__file__, str(folder), str(out), FEW, point],
            start_new_session=True,
            capture_output=True,
            check=False,
            cwd=ROOT,
            timeout=500,
        )
        assert (done.returncode, done.stdout) == (-signal.SIGKILL, b"working\n"), done.stderr
        manifest = load_or_none(out)
        assert (manifest is not None) == (point == FLIPPED)
    assert contents(out) == wanted

    summary = jobs.run(f"log:{folder}", out, spark=spark, as_of=killed.AS_OF)

    assert summary.rows == {}
    assert contents(out) == wanted
    assert len(list((out / "rows").iterdir())) == 1
