# SPDX-License-Identifier: Apache-2.0
"""`format("kohort.tables")`: a table of the pipeline as a source of Spark, read by Arrow.

The manifest at the time of planning says which rows count. Filters that Arrow answers exactly as
Spark does are handed down to the files; Spark evaluates all others.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import datasource as sources
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StringType, StructField, StructType

from kohort.pipeline.format.arrow_reader import Place, Tables, all_of, rows_of
from kohort.pipeline.format.catalog import chosen_columns, did_you_mean, known_tables
from kohort.pipeline.format.cluster import CLUSTER, cluster_of, inner, with_cluster
from kohort.pipeline.format.manifest import TablesError
from kohort.pipeline.schemas import Table
from kohort.pipeline.stores import settings
from kohort.pipeline.stores.places import Folder
from kohort.spark.engine.frames import struct_of
from kohort.spark.tables.filter_pushdown import condition_or_none

PUSHDOWN = {"spark.sql.python.filterPushdown.enabled": "true"}
"""What a session must have set: without it Spark refuses a source that takes filters."""
TASK_BYTES = 32 << 20
_OPTIONS = ("path", "table", "columns")


class KohortTables(DataSource):
    """Options: `path`, the directory of the tables; `table`; `columns`, names with commas between
    them (default: all of them).
    """

    def __init__(self, options: MutableMapping[str, str]) -> None:
        """Raises TablesError: there is no such option, directory, table or column."""
        super().__init__(options)
        given = {option.lower(): value for option, value in options.items()}
        for option in given:
            if option not in _OPTIONS:
                raise TablesError(
                    f"kohort.tables has no option {option!r}"
                    + (did_you_mean(option, _OPTIONS) or f", expected {', '.join(_OPTIONS)}")
                )
        for option in ("path", "table"):
            if not given.get(option, "").strip():
                raise TablesError(f"kohort.tables needs the option {option}")
        self.tables = Tables(given["path"])
        self.table = self.tables.table_of(given["table"])
        wanted = given.get("columns")
        names = None if wanted is None else [name.strip() for name in wanted.split(",")]
        self._columns = chosen_columns(self.table, names)

    @classmethod
    def name(cls) -> str:
        return "kohort.tables"

    def schema(self) -> StructType:
        fields = {field.name: field for field in struct_of(self.table)}
        fields[CLUSTER] = StructField(CLUSTER, StringType())
        return StructType([fields[name] for name in self._columns])

    def reader(self, schema: StructType) -> "TableReader":
        cluster = cluster_of(self.tables.manifest)
        return TableReader(self.tables.directory, self.table, schema.fieldNames(), cluster)


@dataclass(frozen=True)
class TablePartition(InputPartition):
    """Files that a task reads."""

    files: tuple[str, ...] = ()
    partitions: tuple[int, ...] | None = None
    cuts: tuple[tuple[int, int], ...] = ()


class TableReader(DataSourceReader):
    """Reads some columns of a table; a schema of the user's names them, too."""

    def __init__(
        self, directory: Folder, table: Table, columns: Sequence[str], cluster: str | None
    ) -> None:
        self._directory = directory
        self._cluster = cluster
        self._name = table.name
        self._columns = chosen_columns(table, columns)
        self._conditions: list[pc.Expression] = []
        self._settings = settings.of_this_process()

    def pushFilters(self, filters: list[sources.Filter]) -> Iterable[sources.Filter]:  # noqa: N802
        """Keeps what Arrow can answer, and gives back the rest."""
        schema = known_tables()[self._name].arrow
        for filtered in filters:
            condition = condition_or_none(filtered, schema)
            if condition is None:
                yield filtered
            else:
                self._conditions.append(condition)

    def partitions(self) -> Sequence[TablePartition]:
        tables = Tables(self._directory)
        places = tables.places(tables.table_of(self._name))
        return [share for place in places for share in _shares(place, tables.size_of)] or [
            TablePartition()
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, TablePartition)
        settings.adopt(self._settings)
        if partition.files:
            place = Place(list(partition.files), partition.partitions, dict(partition.cuts))
            where = all_of(*self._conditions)
            table = known_tables()[self._name]
            rows = rows_of(table, [place]).to_batches(inner(self._columns, table.names), where)
            fields = {field.name: field for field in (*table.arrow, pa.field(CLUSTER, pa.string()))}
            schema = pa.schema([fields[name] for name in self._columns])
            yield from with_cluster(rows, schema, self._cluster)


def _shares(place: Place, size_of: Callable[[str], int]) -> Iterator[TablePartition]:
    """The files of a place in tasks of some 32 MiB."""
    rest: Mapping[str, int] = {file: size_of(file) for file in place.files}
    chosen: list[str] = []
    weight = 0
    for file, size in rest.items():
        if chosen and weight + size > TASK_BYTES:
            yield TablePartition(tuple(chosen), place.partitions, tuple(place.cuts.items()))
            chosen, weight = [], 0
        chosen.append(file)
        weight += size
    if chosen:
        yield TablePartition(tuple(chosen), place.partitions, tuple(place.cuts.items()))
