# SPDX-License-Identifier: Apache-2.0
"""A pipeline that is killed at random instants while it adds to tables.

Whoever reads the tables after a kill finds those from before the run or those of an undisturbed
one, of every layer; and whatever the kills left behind, in the end they are the latter.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from random import Random

import pytest

pytest.importorskip("pyspark")

from tests import golden_logs
from tests.spark import killed
from tests.spark.contents import contents

ROOT = Path(__file__).parents[2]
KILLS = int(os.environ.get("KOHORT_KILLS", "20"))
BEYOND = 1.1  # times as long as an undisturbed run works: some come to their end


class Run:
    """A run in a process of its own, which has a session by now."""

    def __init__(self, log, out):
        command = [sys.executable, killed.__file__, str(log), str(out), "all", "never"]
        self.errors = out.with_suffix(".errors")
        with self.errors.open("wb") as errors:
            self.process = subprocess.Popen(
                command, cwd=ROOT, start_new_session=True, stdout=subprocess.PIPE, stderr=errors
            )
        assert self.process.stdout.readline() == b"working\n", self.errors.read_text()

    def to_its_end(self, seconds):
        """Whether it comes to its end within so many seconds."""
        try:
            status = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        assert status == 0, self.errors.read_text()
        return True

    def kill(self, *, jvm):
        """Kill the driver; without `jvm` its JVM may still write while it notices."""
        if jvm:
            os.killpg(self.process.pid, signal.SIGKILL)
        else:
            self.process.kill()
        assert self.process.wait() == -signal.SIGKILL, self.errors.read_text()

    def clean(self):
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.stdout.close()


def half(folder, place):
    """A copy of a broker's logs as they were when it had written half of each, in mid-batch."""
    shutil.copytree(folder, place)
    for file in place.glob("__consumer_offsets-*/*.log"):
        os.truncate(file, file.stat().st_size // 2)
    return place


def undisturbed(log, out):
    """Run to the end; the seconds that it worked."""
    run = Run(log, out)
    began = time.monotonic()
    assert run.to_its_end(None)
    run.clean()
    return time.monotonic() - began


@pytest.mark.prove
@pytest.mark.spark
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", [5])
def test_killed_at_random_instants(tmp_path, seed):
    random, uniform = Random(seed).random, Random(seed + 1).uniform
    log = golden_logs.unpack("1-written", tmp_path)
    begun, whole = tmp_path / "begun", tmp_path / "whole"
    undisturbed(half(log, tmp_path / "half"), begun)
    shutil.copytree(begun, whole)
    seconds = undisturbed(log, whole)
    before, after = contents(begun), contents(whole)
    assert all(len(before[name]) < len(after[name]) for name in ("records", "commits", "members"))
    kills = flipped = finished = 0
    while kills < KILLS:
        out = tmp_path / f"out-{finished}"
        shutil.copytree(begun, out)
        with ExitStack() as stack:
            ended = False
            while not ended:
                run = Run(log, out)
                stack.callback(run.clean)
                ended = run.to_its_end(uniform(0, BEYOND * seconds) if kills < KILLS else None)
                if not ended:
                    run.kill(jvm=random() < 0.5)
                    kills += 1
                    found = contents(out)
                    assert found in (before, after)
                    flipped += found == after
        assert contents(out) == after
        finished += 1
    print(f"{kills} kills, {flipped} of them after the flip; {finished} directories at their end")
