# SPDX-License-Identifier: Apache-2.0
"""Runs the pipeline in a session of another kind, in a process of its own; prints the rows it read.

python elsewhere.py cluster MASTER LOG OUT
python elsewhere.py connect - LOG OUT
python elsewhere.py java - LOG OUT
python elsewhere.py losses MASTER LOG OUT      an executor is killed whenever rows are kept
"""

import json
import os
import signal
import sys
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from pyspark.sql import SparkSession

from kohort.spark import jobs
from kohort.spark.engine import small_runs
from kohort.spark.engine.session import INTERPRETED, QUICK, session
from kohort.spark.gold import MEASURES
from kohort.spark.tables import compute, histories, progress

AS_OF = datetime(2026, 11, 22, tzinfo=UTC)
CONF = {
    **QUICK,
    **INTERPRETED,
    "spark.sql.shuffle.partitions": "2",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    "spark.executor.memory": "512m",
}
ALL = [one.table.name for one in MEASURES]
GOLD = {"cluster": ["rebalances", "commits"], "connect": ["commits"], "java": [], "losses": ALL}


def executors(application):
    """The processes of an application's executors."""
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            command = (folder / "cmdline").read_text()
            if "CoarseGrainedExecutorBackend" in command and application in command:
                yield int(folder.name)


def lose_executors():
    """Nothing is few here, and of each keeping of rows one of the keepers dies. Returns their
    numbers, which grow.
    """
    lost = []

    def losing(keep):
        def call(frame):
            rows = keep(frame)
            victim = max(executors(frame.sparkSession.sparkContext.applicationId))
            os.kill(victim, signal.SIGKILL)
            lost.append(victim)
            return rows

        return call

    small_runs.ONE_FILE_ROWS = small_runs.DRIVER_REPLAY_ROWS = 0
    for module in (histories, progress):
        module.kept = losing(module.kept)
    return lost


def main():
    kind, master, log, out = sys.argv[1:]
    compute.MEASURES = tuple(one for one in MEASURES if one.table.name in GOLD[kind])
    if kind == "connect":
        spark = SparkSession.builder.remote("local[2]").config(map=CONF).getOrCreate()
    else:
        spark = session("local[1]" if master == "-" else master, CONF)
    lost = lose_executors() if kind == "losses" else []
    summary = jobs.run(f"log:{log}", out, spark=spark, as_of=AS_OF, spark_only=kind == "cluster")
    streamed = None
    if kind == "connect":
        streamed = jobs.stream(f"log:{log}", f"{out}-streamed", spark=spark, as_of=AS_OF).rows
    told = {"rows": summary.rows, "gold": summary.gold, "streamed": streamed, "lost": len(lost)}
    print(json.dumps(told))
    spark.stop()


if __name__ == "__main__":
    main()
