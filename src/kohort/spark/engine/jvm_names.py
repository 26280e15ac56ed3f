# SPDX-License-Identifier: Apache-2.0
"""Java's functions by name, looked up once. For every column PySpark asks the JVM what a name is,
which looks into all its archives, and gold has thousands of columns.
"""

from contextlib import suppress
from typing import Any

from pyspark.sql import SparkSession

_CLASSES = (
    "functions",
    "org.apache.spark.sql.functions",
    "PythonUtils",
    "PythonSQLUtils",
)
"""As PySpark calls the classes that expressions are made by."""


class _JavaClass:
    """A class of Java whose static members are asked for once."""

    def __init__(self, java_class: Any) -> None:
        self._java_class = java_class

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._java_class, name)
        vars(self)[name] = found
        return found


def remember(spark: SparkSession) -> None:
    """Have PySpark remember what it finds. Without a JVM of its own it asks nobody."""
    with suppress(Exception):  # on Spark Connect, and where PySpark looks elsewhere
        jvm = spark.sparkContext._jvm  # noqa: SLF001
        for name in _CLASSES:
            if name not in vars(jvm):
                vars(jvm)[name] = _JavaClass(getattr(jvm, name))
