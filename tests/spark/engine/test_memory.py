# SPDX-License-Identifier: Apache-2.0
"""A JVM without memory ends, and its run with it: a thread of Spark's that has died for want of it
leaves those who wait for its answer waiting for ever. A JVM that is killed ends its run as well.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from pyspark.sql import functions as F  # noqa: N812
from tests import golden_logs
from tests.waiting import eventually

from kohort.pipeline.format.writer import Writer
from kohort.pipeline.stores import parquet
from kohort.spark.engine import session as sessions
from kohort.spark.engine.session import what_ended_jvm

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

JAVA = "java\n"
ROWS, WIDTH = 2000, 300_000
SORTS = 30
WIDE = """
import sys
from kohort.spark import jobs
from kohort.pipeline.format.writer import Writer

given = jobs.SparkConfig(None, "local[1]", {"spark.driver.memory": "512m"})
with Writer(sys.argv[1]) as writer, jobs._session(given, writer, None) as spark:
    print(spark.read.parquet(sys.argv[2]).selectExpr("sum(length(value))").collect()[0][0])
"""
RUN = """
import sys
from kohort.errors import KohortError
from kohort.spark import jobs
from kohort.pipeline.format.writer import Writer

given = jobs.SparkConfig(None, "local[1]", None)
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


@pytest.mark.prove
def test_rows_of_hundreds_of_kilobytes_are_not_read_by_the_thousand(tmp_path):
    rows = pa.table({"value": pa.array([number.to_bytes(WIDTH) for number in range(ROWS)])})
    parquet.write(rows, tmp_path / "wide.parquet")
    command = [sys.executable, "-c", WIDE, str(tmp_path / "out"), str(tmp_path / "wide.parquet")]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.stderr == ""
    assert int(run.stdout) == ROWS * WIDTH


def test_a_task_with_dozens_of_sorts_takes_little_memory(spark):
    """Each has a page, by default of 8 MB: for a handful of rows they took much of the heap."""
    jvm = spark._jvm.java.lang
    joined = spark.range(8)
    for number in range(SORTS):
        other = spark.range(8).withColumn(f"value_{number}", F.col("id") + number)
        joined = joined.join(other.hint("merge"), "id")
    jvm.System.gc()
    pools = list(jvm.management.ManagementFactory.getMemoryPoolMXBeans())
    (old,) = (pool for pool in pools if "Old" in pool.getName())
    before = old.getUsage().getUsed()
    old.resetPeakUsage()

    assert len(joined.collect()) == 8

    assert old.getPeakUsage().getUsed() - before < SORTS * (6 << 20)


def test_a_run_whose_jvm_is_killed_leaves_the_tables_as_they_were(tmp_path):
    """As the system does when the machine has no memory left."""
    log, out = golden_logs.unpack("1-written", tmp_path), tmp_path / "out"
    command = [sys.executable, "-m", "kohort", "pipeline", "run", "--source", f"log:{log}"]
    command += ["--out", str(out), "--master=local[2]"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as run:
        eventually(
            lambda: [*(out / "rows").glob("increment=*")], "rows are written, and gold is not"
        )
        (java,) = (
            child for child in children(run.pid) if Path(f"/proc/{child}/comm").read_text() == JAVA
        )
        os.kill(java, signal.SIGKILL)
        _, complaints = run.communicate(timeout=200)

    told = [line for line in complaints.splitlines() if " … " not in line]  # but progress
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
