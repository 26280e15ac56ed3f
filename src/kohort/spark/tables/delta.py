"""The tables as Delta tables, for those who want them in other engines too.

Delta commits each table by itself. So the manifest names the version of each table, and a reader
asks for that version: all tables flip together here as well. No manifest names what a crashed
writer committed: its increment is ignored and goes with the next commit, and its table of gold is
then written whole. Old versions stay until somebody runs VACUUM.

Samples of end offsets stay Parquet, because processes without Spark add them. Spark writes the
tables; delta-rs tells which versions and files there are, without a JVM.
"""

from collections.abc import Iterable
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from kohort.spark.schemas import DECODED
from kohort.spark.stores.layout import ROWS
from kohort.spark.stores.places import Folder
from kohort.spark.tables import delta_files
from kohort.spark.tables.manifest import Increment, Part, TablesError
from kohort.spark.tables.writer import Writer

SETTINGS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.databricks.delta.snapshotPartitions": "2",  # its log is small, and 50 tasks are not
}
"""What a session needs besides the jars."""

_WHOLE_FILES = ("delta.enableDeletionVectors", "false")
"""A property of new tables: their files are all that a reader must know, whatever the session's
default is."""


def check(spark: SparkSession, directory: Folder) -> None:
    """Raises TablesError in a session without Delta."""
    path = delta_files.on_disk(directory)
    try:
        spark.read.format("delta").load(str(path))
    except PySparkException as error:
        if "DATA_SOURCE_NOT_FOUND" in str(error):
            raise TablesError(
                "Delta is not in this Spark: give its jars with -X spark.jars=…, to pyspark 4.2, "
                "or write --format parquet"
            ) from error


def append_rows(writer: Writer, frame: DataFrame, name: str) -> int:
    """Commit an increment; returns the version of the table of rows."""
    path = delta_files.on_disk(writer.directory) / ROWS
    live = [increment.name.partition("=")[2] for increment in writer.manifest.increments]
    mine = frame.withColumn("increment", F.lit(name.partition("=")[2]))
    output = (
        mine.write.format("delta")
        .option(*_WHOLE_FILES)
        .option("mergeSchema", "true")  # a table of an earlier version lacks columns
        .partitionBy("increment", "kind")
        .option("txnAppId", f"kohort {name}")
        .option("txnVersion", writer.manifest.number + 1)
    )
    if delta_files.latest(path) is None:
        output.mode("append").save(str(path))
    else:
        dead = f"increment not in ({', '.join(repr(increment) for increment in ('', *live))})"
        output.mode("overwrite").option("replaceWhere", dead).save(str(path))
    return _written(path)


def rows(
    spark: SparkSession, directory: Folder, version: int | None, increments: Iterable[Increment]
) -> DataFrame:
    """The rows of increments, with the name of their increment; null in columns that the version
    does not have.
    """
    names = [increment.name.partition("=")[2] for increment in increments]
    frame = _at(spark, delta_files.on_disk(directory) / ROWS, version).where(
        F.col("increment").isin(names)
    )
    lacking = [field for field in DECODED.spark if field.name not in frame.columns]
    return frame.withColumns({field.name: F.lit(None).cast(field.dataType) for field in lacking})


def write_part(
    spark: SparkSession,
    writer: Writer,
    frame: DataFrame,
    where: str,
    partitions: tuple[int, ...] | None,
    before: Part | None,
) -> Part:
    """Commit a table of gold, or the rows of some partitions of the log in place of those there."""
    path = delta_files.on_disk(writer.directory) / where
    latest = delta_files.latest(path)
    output = frame.write.format("delta").mode("overwrite").option(*_WHOLE_FILES)
    if partitions is None or before is None:
        output.option("overwriteSchema", "true").save(str(path))
    elif before.version == latest:
        listed = ", ".join(map(str, partitions))
        output.option("replaceWhere", f"partition in ({listed})").save(str(path))
    else:
        others = part(spark, writer.directory, before).where(
            ~F.col("partition").isin(list(partitions))
        )
        frame.unionByName(others).write.format("delta").mode("overwrite").save(str(path))
    version = _written(path)
    return Part(path=where, rows=_at(spark, path, version).count(), version=version)


def part(spark: SparkSession, directory: Folder, wanted: Part) -> DataFrame:
    """The rows of a part in the version that the manifest names."""
    return _at(spark, delta_files.on_disk(directory) / wanted.path, wanted.version)


def _at(spark: SparkSession, path: Path, version: int | None) -> DataFrame:
    return spark.read.format("delta").option("versionAsOf", str(version)).load(str(path))


def _written(path: Path) -> int:
    version = delta_files.latest(path)
    if version is None:
        raise TablesError(f"{path} is no Delta table after it was written as one")
    return version
