"""A frame without rows."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType


def empty(spark: SparkSession, schema: StructType) -> DataFrame:
    """A frame that Spark knows to be empty: it plans nothing of what is joined with it.

    Of a list it does not look whether that is empty. It would plan everything, and start a worker
    in Python.
    """
    return spark.createDataFrame(to_arrow_schema(schema, timezone="UTC").empty_table(), schema)
