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
from kohort.spark import jobs
from kohort.spark.engine.session import session
from kohort.spark.schemas import GOLD, SILVER
from kohort.spark.sources.named import source
from kohort.spark.tables.arrow_reader import Tables
from kohort.spark.tables.catalog import known_tables

AS_OF = datetime(2026, 11, 1, tzinfo=UTC)


def main() -> None:
    log, directory, jars, bootstrap = sys.argv[1:]
    conf = {
        "spark.jars": jars,
        "spark.sql.shuffle.partitions": "1",
    }
    spark = session("local[2]", conf, quick=True)
    found = {"version": pyspark.__version__}
    out = Path(directory) / "out"
    for _ in range(2):  # the second one finds nothing new
        jobs.run(f"log:{log}", out, spark=spark, as_of=AS_OF)
    found["tables"] = contents(lambda name: by_spark(spark, out, name))
    found["by Arrow alone"] = contents(Tables(out).table)
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
    names = [table.name for table in (*SILVER, *GOLD)]
    return {name: sorted(map(repr, read(name).to_pylist())) for name in names}


def by_spark(spark: SparkSession, out: Path, name: str) -> pa.Table:
    table = known_tables()[name]
    found = kohort.spark.read(out, name, spark=spark).select(table.names)
    return found.toArrow().cast(table.arrow)


main()
