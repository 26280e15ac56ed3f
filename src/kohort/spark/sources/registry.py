# SPDX-License-Identifier: Apache-2.0
"""The sources by the words that name them, and the formats of Spark."""

from collections.abc import Callable

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource

from kohort.pipeline.sources.cluster_place import CONFIG
from kohort.pipeline.sources.log_position import SourceError
from kohort.security.settings import NO_SECURITY, Security
from kohort.spark.sources.connector import ConnectorSource
from kohort.spark.sources.groups import KohortGroups
from kohort.spark.sources.log import KohortLog, LogSource
from kohort.spark.sources.offsets import KohortOffsets
from kohort.spark.sources.parquet import ParquetSource
from kohort.spark.sources.source import Source
from kohort.spark.sources.topic import KohortTopic, TopicSource

SOURCES: dict[str, tuple[Callable[[str], Source], str]] = {
    "log": (LogSource, "log:DIRECTORY"),
    "cluster": (TopicSource, "cluster:HOST:PORT"),
    "parquet": (ParquetSource, "parquet:DIRECTORY"),
    "connector": (ConnectorSource, "connector:HOST:PORT"),
}
"""The word before the colon -> the class, and how it is written."""

FORMATS: tuple[type[DataSource], ...] = (KohortLog, KohortTopic, KohortGroups, KohortOffsets)


def source(text: str, security: Security = NO_SECURITY) -> Source:
    """The source that a text such as `log:DIR` or `cluster:HOST:PORT` names; `security` is for a
    cluster. Raises SourceError.
    """
    word, _, place = text.partition(":")
    if word not in SOURCES or not place.strip():
        forms = ", ".join(form for _, form in SOURCES.values())
        raise SourceError(f"{text!r} is not a source, expected one of {forms}")
    if word == "cluster":
        return TopicSource(place.strip(), security=security)
    if word == "connector" and security != NO_SECURITY and CONFIG not in place:
        raise SourceError(
            f"{text} needs its settings of TLS and SASL in a file, expected {text}{CONFIG}FILE"
        )
    return SOURCES[word][0](place.strip())


def register(spark: SparkSession) -> None:
    """Let the session know every `kohort.…` format."""
    for form in FORMATS:
        spark.dataSource.register(form)
