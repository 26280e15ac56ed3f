# SPDX-License-Identifier: Apache-2.0
"""What is run on the oldest supported Spark, in a process of its own, with Delta and the Kafka
connector in it. Prints what it has found as JSON; `test_older_spark.py` judges it.

    python older_spark.py LOG_DIRECTORY DIRECTORY JARS BOOTSTRAP
"""

import json
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyspark
from pyspark.sql import SparkSession

import kohort.spark
from kohort.pipeline.format.arrow_reader import Tables
from kohort.pipeline.format.catalog import known_tables
from kohort.pipeline.schemas import END_OFFSETS, GOLD, OBSERVED_HISTORY, SILVER
from kohort.spark import jobs
from kohort.spark.engine.session import INTERPRETED, session
from kohort.spark.sources.registry import source
from kohort.spark.tables.silver import views

AS_OF = datetime(2026, 11, 1, tzinfo=UTC)
DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.databricks.delta.snapshotPartitions": "2",  # a log is small, and 50 tasks are not
}


def main() -> None:
    log, directory, jars, bootstrap = sys.argv[1:]
    conf = {
        "spark.jars": jars,
        "spark.sql.shuffle.partitions": "1",
    }
    spark = session("local[2]", {**conf, **DELTA, **INTERPRETED}, quick=True)
    found = {"version": pyspark.__version__}
    out = Path(directory) / "out"
    for _ in range(2):  # the second one finds nothing new
        jobs.run(f"log:{log}", out, spark=spark, as_of=AS_OF)
    found["tables"] = contents(lambda name: by_spark(spark, out, name))
    found["by Arrow alone"] = contents(Tables(out).table)
    found["by Delta"] = contents(lambda name: by_delta(spark, out, name))
    found["report"] = jobs.report(out).name
    for kind in ("cluster", "connector"):
        one = source(f"{kind}:{bootstrap}")
        rows = one.frame(spark, one.plan({})).where("not control")
        chosen = rows.select("partition", "offset", "timestamp", "key", "value").orderBy(
            "partition", "offset"
        )
        found[kind] = [repr(row) for row in chosen.collect()]
    print(json.dumps(found))
    spark.stop()


def contents(read: Callable[[str], pa.Table]) -> dict[str, list[str]]:
    names = [table.name for table in (*SILVER, *GOLD, *OBSERVED_HISTORY, END_OFFSETS)]
    return {name: sorted(map(repr, read(name).to_pylist())) for name in names}


def by_spark(spark: SparkSession, out: Path, name: str) -> pa.Table:
    table = known_tables()[name]
    found = kohort.spark.read(out, name, spark=spark).select(table.names)
    return found.toArrow().cast(table.arrow)


def by_delta(spark: SparkSession, out: Path, name: str) -> pa.Table:
    """The same by Spark's own format; rows of silver are fields of those in `rows`."""
    table = known_tables()[name]
    if table in SILVER:
        rows = spark.read.format("delta").load(str(out / "rows"))
        found = views(rows)[name]
    else:
        root = "end_offsets" if table is END_OFFSETS else f"{table.layer}/{name}"
        found = spark.read.format("delta").load(str(out / root))
    return found.select(table.names).toArrow().cast(table.arrow)


main()
