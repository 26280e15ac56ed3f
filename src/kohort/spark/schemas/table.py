"""What a table is: its columns with their types and meanings. The pages of documentation are
generated from this, so a column is described where it is declared.

Who reads tables without Spark needs this too, so Spark is imported when it is asked for.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeVar

import pyarrow as pa

Frame = TypeVar("Frame")
Layer = Literal["rows", "bronze", "silver", "gold", "past"]

TIME = pa.timestamp("us", "UTC")
TEXTS = pa.list_(pa.string())


@dataclass(frozen=True)
class Column:
    """A column; `text` tells its meaning and unit, and when it is null."""

    name: str
    type: pa.DataType
    text: str


@dataclass(frozen=True)
class Table:
    """A table: what it holds, how it is computed, and what it cannot know."""

    name: str
    layer: Layer
    text: str
    columns: tuple[Column, ...]
    computed: str = ""
    unknown: str = ""

    @cached_property
    def names(self) -> list[str]:
        """The names of the columns, in order."""
        return [column.name for column in self.columns]

    @cached_property
    def arrow(self) -> pa.Schema:
        """The columns as Arrow has them: what sources and decoders give."""
        return pa.schema([(column.name, column.type) for column in self.columns])

    @cached_property
    def spark(self) -> Any:
        """The columns as Spark has them: a `StructType`."""
        from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415  (see above)

        return from_arrow_schema(self.arrow)

    def conform(self, frame: Frame) -> Frame:
        """A frame of Spark with exactly these columns, in this order, of these types."""
        from pyspark.sql import functions as F  # noqa: N812, PLC0415

        of_spark: Any = frame
        conformed: Frame = of_spark.select(
            *(F.col(name).cast(kind).alias(name) for name, kind in self._casts)
        )
        return conformed

    @cached_property
    def _casts(self) -> list[tuple[str, Any]]:
        """Of each column what it is cast to; as a name where it has one, which PySpark hands on as
        it is. Types it describes in JSON, after it has asked the JVM for the session.
        """
        from pyspark.sql.types import AtomicType  # noqa: PLC0415

        return [
            (field.name, field.dataType.simpleString())
            if isinstance(field.dataType, AtomicType)
            else (field.name, field.dataType)
            for field in self.spark
        ]
