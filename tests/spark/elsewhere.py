"""Runs the pipeline in a session of another kind, in a process of its own; prints the rows it read.

python elsewhere.py cluster MASTER LOG OUT
python elsewhere.py connect - LOG OUT
python elsewhere.py java - LOG OUT
"""

import json
import sys
from datetime import UTC, datetime

from pyspark.sql import SparkSession

from kohort.spark import jobs
from kohort.spark.engine.session import QUICK, session
from kohort.spark.gold import MEASURES
from kohort.spark.tables import compute

CONF = {
    **QUICK,
    "spark.sql.shuffle.partitions": "2",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    "spark.executor.memory": "512m",
}
GOLD = {"cluster": [], "connect": ["commits"], "java": []}


def main():
    kind, master, log, out = sys.argv[1:]
    compute.MEASURES = tuple(one for one in MEASURES if one.table.name in GOLD[kind])
    if kind == "connect":
        spark = SparkSession.builder.remote("local[2]").config(map=CONF).getOrCreate()
    else:
        spark = session(master if kind == "cluster" else "local[1]", CONF)
    as_of = datetime(2026, 11, 22, tzinfo=UTC)
    summary = jobs.run(f"log:{log}", out, spark=spark, as_of=as_of)
    streamed = None
    if kind == "connect":
        streamed = jobs.stream(f"log:{log}", f"{out}-streamed", spark=spark, as_of=as_of).rows
    print(json.dumps({"rows": summary.rows, "gold": summary.gold, "streamed": streamed}))
    spark.stop()


if __name__ == "__main__":
    main()
