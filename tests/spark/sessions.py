# SPDX-License-Identifier: Apache-2.0
"""The Spark session of the tests: start it, ask whether it lives, clear away what is dead."""

import sys
from contextlib import suppress
from subprocess import TimeoutExpired


def start():
    """A session in a JVM that runs. What an earlier start has left half done is cleared away."""
    from pyspark import SparkContext

    from kohort.spark.engine.session import session

    if SparkContext._gateway is not None and not lives(SparkContext._active_spark_context):
        clear()
    one = session("local[2]", {"spark.sql.shuffle.partitions": "1"}, quick=True)
    one.sparkContext.setLogLevel("ERROR")
    return one


def lives(one):
    """Whether the JVM of a session, or of a context, answers and has not stopped it."""
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    if one is None or gateway is None or gateway.proc.poll() is not None:
        return False
    with suppress(Exception):  # whatever PySpark says when nobody answers
        context = getattr(one, "sparkContext", one)
        return not context._jsc.sc().isStopped()
    return False


def forget_rows():
    """Whatever was cached is so no more, if there is a session."""
    if "pyspark" not in sys.modules:
        return
    from pyspark.sql import SparkSession

    one = SparkSession._instantiatedSession
    if one is not None and lives(one):
        one.catalog.clearCache()


def clear():
    """End the JVM and have PySpark forget it, so that the next session starts another one."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession, SQLContext

    gateway = SparkContext._gateway
    SparkContext._active_spark_context = None
    SparkContext._gateway = SparkContext._jvm = None
    SparkSession._instantiatedSession = None
    SparkSession._activeSession = None
    SQLContext._instantiatedContext = None
    if gateway is not None:
        gateway.proc.kill()
        with suppress(TimeoutExpired):
            gateway.proc.wait(20)
        with suppress(Exception):
            gateway.shutdown()
