"""The one place where Spark is configured."""

import os
import sys
from collections.abc import Mapping

from pyspark.sql import SparkSession

LOCAL = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
}


def session(master: str = "local[2]", conf: Mapping[str, str] | None = None) -> SparkSession:
    """A session, or the one that is there already."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.master(master).appName("kohort")
    for name, value in {**LOCAL, **(conf or {})}.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()
