# SPDX-License-Identifier: Apache-2.0
"""The clocks of the machine, whatever a test has done to `time`."""

import subprocess
import sys
import time
from unittest import mock

import pytest
import time_machine
from freezegun import freeze_time

from kohort.runtime import clocks

FAR = "2076-01-01"


def mtime(path):
    """What the system says the time is: no Python takes part in it."""
    path.write_bytes(b"")
    return path.stat().st_mtime


PATCHES = {
    "freezegun": lambda: freeze_time(FAR),
    "freezegun ticks": lambda: freeze_time(FAR, tick=True),
    "time-machine": lambda: time_machine.travel(FAR, tick=False),
    "mock": lambda: mock.patch.multiple(
        time, **dict.fromkeys(("time", "monotonic", "perf_counter"), lambda: 7.0)
    ),
}


@pytest.mark.parametrize("patch", PATCHES)
def test_they_go_on_while_a_test_has_patched_time(patch, tmp_path):
    with PATCHES[patch]():
        began = clocks.monotonic(), clocks.perf_counter(), clocks.perf_counter_ns()
        clocks.sleep(0.01)
        ended = clocks.monotonic(), clocks.perf_counter(), clocks.perf_counter_ns()
        assert all(later - sooner > 0.005 for sooner, later in zip(began, ended, strict=True))
        assert abs(clocks.wall() - mtime(tmp_path / "now")) < 60


@pytest.mark.parametrize(
    "patch",
    [
        "freezegun.freeze_time('2076-01-01')",
        "time_machine.travel('2076-01-01')",
        "unittest.mock.patch('time.time', return_value=7.0)",
    ],
)
def test_they_are_the_same_when_they_are_imported_in_the_middle_of_it(patch, tmp_path):
    program = f"""
import pathlib, sys, unittest.mock
import freezegun, time_machine
with {patch}:
    from kohort.runtime import clocks
    path = pathlib.Path(sys.argv[1])
    path.write_bytes(b"")
    assert abs(clocks.wall() - path.stat().st_mtime) < 60, clocks.wall()
    began = clocks.monotonic()
    clocks.sleep(0.01)
    assert clocks.monotonic() > began
"""
    command = [sys.executable, "-c", program, str(tmp_path / "now")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
