# SPDX-License-Identifier: Apache-2.0
"""Reading tables on an object store by Spark: each task reads some files by Arrow, with no jar.

Spark does not tell such tasks which columns are needed, so they bring all of them.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from kohort.pipeline.stores import parquet, settings
from kohort.pipeline.stores.layout import ROWS
from kohort.pipeline.stores.object_path import ObjectPath
from kohort.spark.engine.frames import empty

TASK_BYTES = 32 << 20
_KIND, _INCREMENT = "kind", "increment"


class _File(NamedTuple):
    """A file, its bytes, and the columns that the names of its folders tell."""

    uri: str
    size: int
    from_folders: dict[str, str]


def rows(
    spark: SparkSession, directory: ObjectPath, increments: Iterable[str], layout: pa.Schema
) -> DataFrame:
    """Decoded rows of increments, with their kinds and increments."""
    files = [
        _File(str(file), file.size(), {_KIND: _value(folder.name), _INCREMENT: _value(name)})
        for name in increments
        for folder in parquet.inside(directory / ROWS / name, f"{_KIND}=*")
        for file in parquet.files_of(folder)
        if isinstance(file, ObjectPath)
    ]
    return _frame(spark, files, layout)


def parts(
    spark: SparkSession, directory: ObjectPath, paths: Iterable[str], layout: pa.Schema
) -> DataFrame:
    """The rows of parts of a table."""
    files = [
        _File(str(file), file.size(), {})
        for path in paths
        for file in parquet.files_of(directory / path)
        if isinstance(file, ObjectPath)
    ]
    return _frame(spark, files, layout)


def _value(folder: str) -> str:
    return folder.partition("=")[2]


def _frame(spark: SparkSession, files: list[_File], layout: pa.Schema) -> DataFrame:
    schema = from_arrow_schema(layout)
    if not files:
        return empty(spark, schema)
    shares = list(_shares(files))
    numbers = spark.range(0, len(shares), 1, len(shares))
    return numbers.mapInArrow(_task(shares, layout), schema)


def _shares(files: list[_File]) -> Iterator[list[_File]]:
    """The files in tasks of some 32 MiB."""
    chosen: list[_File] = []
    for file in files:
        if chosen and sum(each.size for each in chosen) + file.size > TASK_BYTES:
            yield chosen
            chosen = []
        chosen.append(file)
    yield chosen


def _task(
    shares: list[list[_File]], layout: pa.Schema
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    variables = settings.of_this_process()

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settings.adopt(variables)
        for batch in batches:
            for number in batch.column(0).to_pylist():
                for file in shares[number]:
                    yield from _read(file, layout)

    return run


def _read(file: _File, layout: pa.Schema) -> Iterator[pa.RecordBatch]:
    inside = pa.schema([field for field in layout if field.name not in file.from_folders])
    for batch in parquet.dataset([file.uri], inside).to_batches():
        columns = [
            pa.repeat(file.from_folders[field.name], batch.num_rows).cast(field.type)
            if field.name in file.from_folders
            else batch.column(field.name)
            for field in layout
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=layout)
