"""A JVM without memory ends, and its run with it: a thread of Spark's that has died for want of it
leaves those who wait for its answer waiting for ever.
"""

import subprocess
import sys

import pytest

pytest.importorskip("pyspark")

from kohort.spark.engine import session as sessions
from kohort.spark.engine.session import what_ended_jvm

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

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
    told = run.stderr.splitlines()[-1]
    assert told == (
        "Spark failed: its JVM has run out of memory: give it more, as by -X spark.driver.memory=4g"
    )
    assert (run.stdout, run.returncode) == ("", 1)
    assert "Terminating" not in run.stderr


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
