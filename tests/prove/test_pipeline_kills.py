"""A pipeline whose driver is killed at random instants: the tables are those of a quiet run."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random

import pytest

pytest.importorskip("pyspark")

from tests import golden_logs
from tests.spark import killed
from tests.spark.contents import contents

ROOT = Path(__file__).parents[2]
KILLS = int(os.environ.get("KOHORT_KILLS", "20"))


def run(folder, out, when="never"):
    """Run until the end or the kill; tells whether it was killed, and the seconds it worked."""
    command = [sys.executable, killed.__file__, str(folder), str(out), "all", str(when)]
    with subprocess.Popen(
        command, cwd=ROOT, start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout.readline() == b"working\n", process.stderr.read()
        began = time.monotonic()
        _, errors = process.communicate()
    assert process.returncode in (0, -signal.SIGKILL), errors
    return process.returncode != 0, time.monotonic() - began


@pytest.mark.prove
@pytest.mark.spark
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", [5])
def test_killed_at_random_instants(tmp_path, seed):
    random = Random(seed)
    folder = golden_logs.unpack("1-written", tmp_path)
    _, seconds = run(folder, tmp_path / "undisturbed")
    wanted = contents(tmp_path / "undisturbed")
    kills, number = 0, 0
    out = tmp_path / f"out-{number}"
    while kills < KILLS:
        was_killed, _ = run(folder, out, random.uniform(0.1, seconds))
        kills += was_killed
        if not was_killed:  # and so it has come to its end, after some kills
            assert contents(out) == wanted
            number += 1
            out = tmp_path / f"out-{number}"
    run(folder, out)
    assert contents(out) == wanted
    print(f"{kills} kills in {number + 1} directories")
