"""The process of a broker under test."""

import subprocess
import sys
from multiprocessing.connection import Pipe

from tests.testing.test_stage import plan
from tests.waiting import SOON_S


def started():
    ours, theirs = Pipe()
    process = subprocess.Popen(
        [sys.executable, "-m", "kohort.testing.child", str(theirs.fileno())],
        pass_fds=(theirs.fileno(),),
        stderr=subprocess.PIPE,
        text=True,
    )
    theirs.close()
    return ours, process


def test_it_ends_with_the_test_that_has_started_it():
    pipe, process = started()
    pipe.send(plan())
    assert ":" in pipe.recv()
    pipe.send(("time_ms", (), {}))
    assert pipe.recv() == 1_000
    pipe.close()
    assert process.wait(SOON_S) == 0
    process.stderr.close()


def test_it_says_why_it_does_not_start(tmp_path):
    (tmp_path / "file").write_text("")
    pipe, process = started()
    pipe.send(plan(data_dir=str(tmp_path / "file")))
    assert str(tmp_path / "file") in str(pipe.recv())
    assert process.wait(SOON_S) == 0
    assert "Traceback" not in process.stderr.read()
    process.stderr.close()
    pipe.close()
