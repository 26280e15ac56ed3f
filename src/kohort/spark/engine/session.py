# SPDX-License-Identifier: Apache-2.0
"""The one place where Spark is configured, and found.

What a run needs of a session that somebody else made, `settings` sets and sets back.
"""

import atexit
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from functools import cache
from typing import Any

import pyspark
from pyspark import SparkContext
from pyspark.sql import SparkSession

from kohort.errors import KohortError, how_to_install
from kohort.spark.engine import class_archive
from kohort.spark.engine.java import find_java
from kohort.spark.engine.jvm_names import remember
from kohort.spark.engine.silent_jvm import quiet_end, quiet_start

VERSIONS = ((4, 2), (4, 4))
"""The first that is supported, and the first that is not."""

_ARROW = "-Darrow.enable_unsafe_memory_access=true -Darrow.enable_null_check_for_get=false"
"""What comes from a worker is right: to check each access takes a tenth of the time of a read."""
_FAIL_FAST = "-XX:+ExitOnOutOfMemoryError -XX:+DisplayVMOutputToStderr"
"""Else a thread of Spark's may die for want of memory, and whoever waits for it waits for ever.
What the JVM says then must not stand among the output of a command.
"""
_OUT_OF_MEMORY = 3  # the exit code of a JVM that has none
_OPTIONS = "spark.driver.extraJavaOptions"
_CLASS_PATH = "spark.driver.extraClassPath"
"""With it a JVM has classes that no archive knows."""
LOCAL = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    _OPTIONS: f"{_ARROW} {_FAIL_FAST}",
    # A task has a page for each of its sorts, joins and aggregations, of which ours have dozens. By
    # default a page is as large as if there were sixteen: of a heap of 1 GB, 8 MB on two cores and
    # 16 on one. With its header it just fills two regions of such a heap.
    "spark.buffer.pageSize": str((2 << 20) - 16),
}
DEFAULTS = {
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "1g",
    # Else every column asks the JVM a dozen questions, to name our lines in errors.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
}
INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""For the fewest rows: to compile the plans of gold takes two seconds more than to interpret them.
"""
ONE_TASK = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.leafNodeDefaultParallelism": "1",
}
"""For few rows: to plan again behind each shuffle makes a job of each, and one task has done what
several would begin.
"""
QUICK = {_OPTIONS: f"{_ARROW} {_FAIL_FAST} -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m"}
"""For a process that does nothing but a run over few rows: a JVM stays as it was started. The first
compiler alone would fill its code cache, which is small.
"""
WIDE_ROWS = {"spark.sql.parquet.columnarReaderBatchSize": "64"}
"""How many rows of a file Spark has in memory at a time, by default 4,096. The state of a group or
a record of a classic one may take hundreds of kilobytes. Over a million commits 64 rows at a time
cost no more than 4,096; with 16 a run took a tenth longer.
"""
_CAUSE = re.compile(r".*\b(?:[a-z]\w*\.)+(\w*(?:Error|Exception)): (.+)")
# Whoever brings a cluster manager of their own has a scheme of their own.
_MASTER = re.compile(r"local(\[.+\])?|local-cluster\[.+\]|yarn|[a-z0-9+.-]+://.+")
_JAVA_ENDS_S = 20
_JAVA_IS_GONE_S = 2  # from the end of its connections to its own
NEEDED = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.sources.partitionOverwriteMode": "static",
}
"""What the results depend on."""


class SessionError(KohortError):
    """Spark cannot be started; the text is one sentence that says what to do."""


def session(
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    *,
    quick: bool = False,
    alone: bool = False,
) -> SparkSession:
    """A session, or the one that is there already. Raises SessionError.

    Without a master it is that of `spark-submit`, else all cores of this machine. A master
    `sc://HOST:PORT` is a Spark Connect server. `quick` is for a process that has few rows to
    work on and then ends. `alone` is for one that ends, with few rows or many: an archive of
    classes that is not there may be made after it.
    """
    check_version(pyspark.__version__)
    given = dict(conf or {})
    master = given.pop("spark.master", None) if master is None else master
    if master is not None and not _MASTER.fullmatch(master):
        raise SessionError(
            f"{master!r} is not a master of Spark, expected local, local[N], spark://HOST:PORT, "
            "yarn, k8s://URL or sc://HOST:PORT"
        )
    if master is not None and master.startswith("sc://"):
        builder = SparkSession.builder.remote(master)
        return _start(builder, NEEDED, given, master)
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    if master is None and not submitted:
        master = "local[*]"
    workers = given.get("spark.pyspark.python")
    if workers is not None:
        os.environ["PYSPARK_PYTHON"] = workers
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    defaults = {**DEFAULTS, **NEEDED}
    if master is not None and is_local(master):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        defaults |= LOCAL | {"spark.sql.shuffle.partitions": str(cores(master))}
        defaults |= QUICK if quick else {}
    if not submitted:
        home = find_java()
        if master is not None and is_local(master) and _CLASS_PATH not in given:
            defaults[_OPTIONS] += f" {class_archive.options(home, record=alone)}"
    builder = SparkSession.builder.appName("kohort")
    if master is not None:
        builder = builder.master(master)
    return _start(builder, defaults, given, master)


def _start(
    builder: "SparkSession.Builder",
    defaults: Mapping[str, str],
    given: Mapping[str, str],
    master: str | None,
) -> SparkSession:
    """A session that is there already keeps its own settings where none are given."""
    there = SparkSession.getActiveSession()
    for name, value in (given if there else {**defaults, **given}).items():
        builder = builder.config(name, value)
    try:
        with nullcontext() if there else quiet_start():
            spark = builder.getOrCreate()
    except Exception as error:  # what the JVM throws is of no class that can be named here
        raise SessionError(
            f"Spark does not start on {master or 'this cluster'}: {sentence(error)}"
        ) from error
    if there is None:
        _end_with_us()
        with suppress(Exception):  # not on Spark Connect
            spark.sparkContext.setLogLevel("FATAL")
            quiet_end(spark.sparkContext._accumulatorServer)  # noqa: SLF001
    remember(spark)
    return spark


def _end_with_us() -> None:
    """Whoever waits for this process shall find that its JVM has ended, too."""
    java = _jvm_or_none()
    if java is not None:
        _end_at_exit(java)


@cache
def _end_at_exit(java: Any) -> None:
    atexit.register(_end, java)


def is_running() -> bool:
    """Whether this process has a session already, in whatever thread; not on Spark Connect."""
    return SparkContext._active_spark_context is not None  # noqa: SLF001


def begin_end() -> None:
    """Let the JVM of our own process end while this process goes on. Whoever is about to end, and
    asks nothing of Spark any more, waits less for it then. Ctrl-C is Python's own from now on.
    """
    java = _jvm_or_none()
    if java is None:
        return
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)  # Spark's would ask the JVM
    java.stdin.close()


def end_jvm() -> None:
    """End the JVM of the session that is there, if it is of our own process, and wait for it."""
    java = _jvm_or_none()
    if java is not None:
        _end(java)


def what_ended_jvm() -> str | None:
    """Why the JVM of our own process has ended without being asked to; None while it works. To be
    asked when a connection to it has failed.
    """
    java = _jvm_or_none()
    if java is None:
        return None
    try:
        code = java.wait(_JAVA_IS_GONE_S)
    except subprocess.TimeoutExpired:
        return None
    if code == _OUT_OF_MEMORY:
        return "its JVM has run out of memory: give it more, as by -X spark.driver.memory=4g"
    return f"its JVM has ended with {code}"


def _jvm_or_none() -> Any:
    """None on Spark Connect and under spark-submit."""
    return getattr(getattr(SparkContext, "_gateway", None), "proc", None)


def _end(java: Any) -> None:
    context = SparkContext._active_spark_context  # noqa: SLF001
    is_ending = java.stdin.closed
    if context is not None and not is_ending and java.poll() is None:
        context.stop()  # else PySpark complains of a lost JVM
    java.stdin.close()
    with suppress(subprocess.TimeoutExpired):
        java.wait(_JAVA_ENDS_S)


def check_version(version: str) -> None:
    """Raises SessionError for a version of Spark that is not supported."""
    numbers = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
    first, beyond = VERSIONS
    if not first <= numbers < beyond:
        raise SessionError(
            f"pyspark is {version}, expected {first[0]}.{first[1]} or newer but older than "
            f"{beyond[0]}.{beyond[1]}: {how_to_install('spark')}"
        )


def is_local(master: str) -> bool:
    """Whether the executors are the driver's own process."""
    return re.fullmatch(r"local(\[.*\])?", master) is not None


def cores(master: str) -> int:
    """How many tasks a local master runs at a time."""
    found = re.match(r"local\[(\d+|\*)", master)
    if found is None:
        return 1
    return (os.cpu_count() or 1) if found[1] == "*" else int(found[1])


@contextmanager
def settings(spark: SparkSession, more: Mapping[str, str] | None = None) -> Iterator[None]:
    """Whatever session it is: what the results depend on is set while the block lasts, and what
    else is given.
    """
    wanted = {**(more or {}), **NEEDED}
    before = {name: spark.conf.get(name, None) for name in wanted}
    try:
        for name, value in wanted.items():
            if before[name] != value:
                spark.conf.set(name, value)
        yield
    finally:
        for name, old in before.items():
            if old != wanted[name]:
                if old is None:
                    spark.conf.unset(name)
                else:
                    spark.conf.set(name, old)


def sentence(error: BaseException) -> str:
    """What an error of Spark says, without the traces of two languages.

    What our own code raised in a worker is the last line of a trace inside of it. What Java says
    came about by something else, whose name and words stand last.
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    ours = [found[1] for line in lines if (found := re.match(r"kohort\.[\w.]+: (.+)", line))]
    if ours:
        return ours[-1]
    theirs = [line for line in lines if re.match(r"\w*(Error|Exception)\b.*: ", line)]
    of_java = [line for line in lines if line.startswith((": ", "Caused by: "))]
    cause = _CAUSE.match(of_java[-1]) if of_java and not theirs else None
    if cause is not None:
        return f"{cause[1]}: {cause[2]}"
    return (theirs or lines or [type(error).__name__])[-1 if theirs else 0]


def active_session() -> SparkSession:
    """The session that is there, or a new local one."""
    return SparkSession.getActiveSession() or session()
