# SPDX-License-Identifier: Apache-2.0
"""One way through Spark, pass after pass in one session: prints seconds as JSON.

python pipeline_spark.py WAY PLACE MASTER PASSES      (a process of benchmarks/pipeline.py)
"""

import json
import os
import sys
import time
from pathlib import Path

from processes import TICKS, tree

ROOT = Path(__file__).parents[1]
PARTITIONS = 50
COLUMNS = (
    "group_id string, topic string, topic_partition int, committed_offset bigint, "
    "metadata string, commit_ms bigint"
)
OURS = COLUMNS.replace("commit_ms bigint", "commit_timestamp timestamp")


def cpu_seconds() -> float:
    """Of this process and of all it ever started; workers that have ended count in who waited."""
    while True:
        try:
            stats = [Path(f"/proc/{pid}/stat").read_text() for pid in tree(os.getpid())]
        except (FileNotFoundError, ProcessLookupError):  # one has just ended
            continue
        fields = [one.rpartition(")")[2].split()[11:15] for one in stats]
        return sum(int(ticks) for one in fields for ticks in one) / TICKS


def session(master, way):
    from kohort.spark.engine.session import session as start

    conf = {"spark.driver.memory": "3g"}
    if way.startswith("connector"):
        from tests.peers.spark_jars import jars

        conf["spark.jars"] = jars()
    return start(master, conf)


def rows(spark, way, place):
    from kohort.spark.sources import registry

    registry.register(spark)
    kind, _, where = place.partition(":")
    if way.startswith("ours"):
        option = "path" if kind == "log" else "bootstrap.servers"
        reader = spark.read.format("kohort.log" if kind == "log" else "kohort.topic")
        if way == "ours":
            reader = reader.schema(OURS)
        return reader.option(option, where).option("rows", "offset_commits").load()
    if way == "connector, our decoder":
        source = registry.source(f"connector:{where}")
        columns = [one.split()[0] for one in OURS.split(", ")]
        return source.frame(spark, source.plan({})).select(*columns)
    from plain_decoder import decode
    from pyspark.sql.functions import udf

    spark.conf.set("spark.sql.streaming.kafka.useDeprecatedOffsetFetching", "true")
    raw = (
        spark.read.format("kafka")
        .option("kafka.bootstrap.servers", where)
        .option("kafka.fetch.max.wait.ms", "10")
        .option("assign", json.dumps({"__consumer_offsets": list(range(PARTITIONS))}))
        .load()
    )
    return raw.select(udf(decode, COLUMNS)("key", "value").alias("commit")).select("commit.*")


def main():
    way, place, master, passes = sys.argv[1:]
    sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]
    spark = session(master, way)
    spark.sparkContext.addPyFile(str(Path(__file__).parent / "plain_decoder.py"))
    told = []
    for _ in range(int(passes)):
        cpu, wall = cpu_seconds(), time.monotonic()
        rows(spark, way, place).write.format("noop").mode("overwrite").save()
        told.append({"cpu_s": cpu_seconds() - cpu, "wall_s": time.monotonic() - wall})
    found = rows(spark, way, place).count()
    print(json.dumps({"rows": found, "passes": told}))
    spark.stop()


if __name__ == "__main__":
    main()
