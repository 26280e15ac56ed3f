"""A log of 300 MB goes through the whole pipeline with a driver of 1 GB."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = [pytest.mark.prove, pytest.mark.spark, pytest.mark.timeout(1200)]

RECORDS = 4_000_000


def test_a_log_of_300_mb_in_a_driver_of_1_gb(tmp_path):
    log, out = tmp_path / "log", tmp_path / "out"
    run(str(ROOT / "benchmarks" / "group_log.py"), str(log), "--records", str(RECORDS))
    size = sum(file.stat().st_size for file in log.rglob("*.log"))
    assert size >= 300 * 1024 * 1024

    told = run(
        *("-m", "kohort", "pipeline", "run", "--source", f"log:{log}", "--out", str(out)),
        *("--master", "local[2]", "-X", "spark.driver.memory=1g"),
    )

    assert f"read {RECORDS:,} records" in told
    assert (out / "report.html").exists()


def run(*words: str) -> str:
    done = subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, timeout=1000, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout
