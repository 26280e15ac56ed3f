# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C while a micro-batch is computed: one line, no traces, and no process that is left."""

import os
import signal
import subprocess
import sys
import threading

import pytest

pytest.importorskip("pyspark")

from tests import golden_logs
from tests.interruptible import started
from tests.waiting import eventually

from kohort.pipeline.format.writer import Writer
from kohort.spark import jobs
from kohort.spark.engine.interrupts import asked_to_end, is_interrupt

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]


@pytest.mark.parametrize("how", [(), ("--stream", "--every", "1s")], ids=["batch", "stream"])
def test_a_run_ends_with_one_line(how, tmp_path):
    log, out = golden_logs.unpack("1-written", tmp_path), tmp_path / "out"
    command = ["pipeline", "run", "--source", f"log:{log}", "--out", str(out), "--master=local[2]"]
    stream = started(
        [sys.executable, "-m", "kohort", *command, *how],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        eventually(
            lambda: [*(out / "rows").glob("increment=*")], "rows are written, and gold is not"
        )
        os.killpg(stream.pid, signal.SIGINT)
        said, complaints = stream.communicate(timeout=200)
    finally:
        stream.kill()
        stream.wait()

    lines = [one for one in complaints.splitlines() if " … " not in one]  # but progress
    assert lines == [f"kohort: interrupted; {out} has no tables yet"]
    assert (said, stream.returncode) == ("", 130)
    with Writer(out):
        assert not list((out / "checkpoints").glob("*"))


@pytest.mark.skipif(
    threading.current_thread() is not threading.main_thread(),
    reason="no main thread",
)
def test_ctrl_c_while_spark_starts_waits_until_it_can_be_ended(tmp_path, monkeypatch):
    """PySpark knows of its JVM only when that has answered: one that was left before stayed, for
    ever.
    """
    begun = []

    def start(*_args, **_more):
        os.kill(os.getpid(), signal.SIGINT)
        begun.append("the JVM answers")

    monkeypatch.setattr(jobs, "session", start)
    of_the_run = signal.signal(signal.SIGINT, signal.default_int_handler)  # it may be ignored
    try:
        given = jobs.SparkConfig(None, None, None)
        with Writer(tmp_path) as writer, pytest.raises(KeyboardInterrupt):
            jobs._session(given, writer, None).__enter__()
        assert begun == ["the JVM answers"]
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, of_the_run)


def test_a_handler_that_was_set_meanwhile_stays():
    before = signal.getsignal(signal.SIGINT)
    try:
        with asked_to_end():
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def _collect():
    try:
        raise KeyboardInterrupt
    finally:
        try:
            _result()
        except ValueError as error:
            raise RuntimeError("Spark failed") from error


def _result():
    raise ValueError("calling o564.getResult")


def test_what_ctrl_c_has_made_fail_is_ctrl_c():
    """Spark collects rows so: the interrupt ends the jobs, and then their failure comes first."""
    with pytest.raises(RuntimeError) as failed:
        _collect()
    assert is_interrupt(failed.value)
    assert not is_interrupt(ValueError("calling o564.getResult"))
    assert not is_interrupt(None)
