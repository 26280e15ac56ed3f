"""A JVM without memory ends, and its run with it: a thread of Spark's that has died for want of it
leaves those who wait for its answer waiting for ever. A JVM that is killed ends its run as well.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from tests import golden_logs

from kohort.spark.engine import session as sessions
from kohort.spark.engine.session import what_ended_jvm
from kohort.spark.tables.writer import Writer

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

JAVA = "java\n"
RUN = """
import sys
from kohort.errors import KohortError
from kohort.spark import jobs
from kohort.spark.tables.writer import Writer

given = jobs.Given(None, "local[1]", None)
try:
    with Writer(sys.argv[1]) as writer, jobs._session(given, writer, None) as spark:
        gateway = spark.sparkContext._gateway
        gateway.new_array(gateway.jvm.long, 1 << 28)
except KohortError as error:
    sys.exit(str(error))
"""


def test_a_run_whose_jvm_has_no_memory_ends_and_says_so(tmp_path):
    run = subprocess.run(
        [sys.executable, "-c", RUN, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert run.stderr.splitlines() == [
        "Spark failed: its JVM has run out of memory: give it more, as by -X spark.driver.memory=4g"
    ]
    assert (run.stdout, run.returncode) == ("", 1)


def test_a_run_whose_jvm_is_killed_leaves_the_tables_as_they_were(tmp_path):
    """As the system does when the machine has no memory left."""
    log, out = golden_logs.unpack("1-written", tmp_path), tmp_path / "out"
    command = [sys.executable, "-m", "kohort", "pipeline", "run", "--source", f"log:{log}"]
    command += ["--out", str(out), "--master=local[2]"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as run:
        for line in run.stderr:
            if line.startswith("computing"):
                break
        (java,) = (
            child for child in children(run.pid) if Path(f"/proc/{child}/comm").read_text() == JAVA
        )
        os.kill(java, signal.SIGKILL)
        _, complaints = run.communicate(timeout=200)

    told = [line for line in complaints.splitlines() if not line.startswith("computing")]
    assert told == ["kohort: Spark failed: its JVM has ended with -9"]
    assert run.returncode == 1
    with Writer(out) as writer:
        assert not writer.manifest.gold


def children(pid):
    """The processes that a process has started."""
    for task in Path(f"/proc/{pid}/task").iterdir():
        yield from map(int, (task / "children").read_text().split())


class Java:
    """A process that has ended, or has not."""

    def __init__(self, code):
        self.code = code

    def wait(self, seconds):
        if self.code is None:
            raise subprocess.TimeoutExpired("java", seconds)
        return self.code


@pytest.mark.parametrize(
    ("java", "told"),
    [(None, None), (Java(None), None), (Java(3), "run out of memory"), (Java(-9), "ended with -9")],
    ids=["not ours", "works", "no memory", "killed"],
)
def test_why_a_jvm_has_ended(java, told, monkeypatch):
    monkeypatch.setattr(sessions, "_jvm_or_none", lambda: java)
    found = what_ended_jvm()
    assert found is None if told is None else told in found
