"""Frames that come from nowhere."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType


def empty(spark: SparkSession, schema: StructType) -> DataFrame:
    """A frame without rows. Spark drops all that is joined or united with it.

    Of an empty list it knows no more than of a full one: it would plan all of it, and start a
    worker in Python to hear that there is nothing.
    """
    return spark.createDataFrame(to_arrow_schema(schema, timezone="UTC").empty_table(), schema)
