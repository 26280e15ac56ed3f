# SPDX-License-Identifier: Apache-2.0
"""SQL over one moment of the tables, by DuckDB: a view for each, over the files that count.

The session can do nothing but read these files: statements that are no queries are refused, and
DuckDB's own access to files, networks, extensions and settings is locked before the query is seen.
"""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self

import duckdb
import pyarrow as pa

from kohort.errors import KohortError
from kohort.pipeline.format.arrow_reader import GoneError, Place, inside_of
from kohort.pipeline.format.catalog import SHORT, did_you_mean, unknown_table
from kohort.pipeline.format.cluster import CLUSTER
from kohort.pipeline.format.manifest import TablesError
from kohort.pipeline.schemas import DECODED, END_OFFSETS, Table
from kohort.pipeline.stores import parquet
from kohort.pipeline.stores.places import is_object
from kohort.tables.snapshots import Snapshots

SETTINGS: dict[str, Any] = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
}
LOCKS = (
    "SET TimeZone = 'UTC'",
    "SET enable_external_access = false",
    "SET lock_configuration = true",
)
_TYPES = {
    pa.bool_(): "BOOLEAN",
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INTEGER",
    pa.int64(): "BIGINT",
    pa.float64(): "DOUBLE",
    pa.string(): "VARCHAR",
    pa.binary(): "BLOB",
    pa.timestamp("us", "UTC"): "TIMESTAMPTZ",
}
_PLACE = (pa.field("partition", pa.int32()), pa.field("offset", pa.int64()))
_READING = (duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN)
_KEYWORDS = ' (columns that are words of SQL stand in double quotes: "at", "offset")'
_NO_TABLE = re.compile(r"Table with name (.+) does not exist!")
_NO_COLUMN = re.compile(r'Referenced column "(.+?)" not found .*?\nCandidate bindings: (.+)')


class SqlError(KohortError):
    """A query that cannot be answered; the text is one sentence."""


class Session:
    """DuckDB with a view for each table of snapshots, for as long as the block lasts."""

    def __init__(self, snapshots: Snapshots) -> None:
        """Raises GoneError: files of the tables are gone. A table of which a file is damaged is
        told to be so when somebody asks for it.
        """
        self._snapshots = snapshots
        self._datasets = 0
        views, files = {}, set()
        self._damaged: dict[str, KohortError] = {}
        self._engine = duckdb.connect(":memory:", config=SETTINGS)
        for name in snapshots.names:
            table, selected = snapshots.table(name), []
            try:
                places = [member.tables.places(table) for member in snapshots.members]
            except TablesError as error:  # who asks for another one need not care
                self._damaged[name] = self._damaged[SHORT.get(name, name)] = error
                continue
            for member, some in zip(snapshots.members, places, strict=True):
                selected.append(_of_cluster(self._select(table, some), member.cluster))
                files |= {file for place in some for file in place.files if not is_object(file)}
            views[SHORT.get(name, name)] = views[name] = " UNION ALL ".join(selected)
        self._names = list(views)
        allowed = sorted(files | {_escaped(file) for file in files})
        self._engine.execute(f"SET allowed_paths = {_texts(allowed)}")
        for name, text in views.items():
            try:
                with self._one_sentence():
                    self._engine.execute(f"CREATE VIEW {_name(name)} AS {text}")
            except SqlError as error:
                self._damaged[name] = error
        for lock in LOCKS:
            self._engine.execute(lock)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._engine.close()

    def ask(self, query: str, limit: int | None = None) -> pa.RecordBatchReader:
        """What a query answers, or the first rows of it, some thousand at a time while the block
        lasts.

        Raises SqlError, and TablesError for a table that is not there; GoneError.
        """
        with self._one_sentence():
            statements = self._engine.extract_statements(query)
            if len(statements) != 1:
                found = f"{len(statements)} statements" if statements else "none"
                raise SqlError(f"expected one query, found {found}")
            if statements[0].type not in _READING:
                kind = statements[0].type.name.replace("_", " ")
                raise SqlError(f"the tables are only read, expected a SELECT and not {kind}")
            reader = self._engine.sql(query).to_arrow_reader()
        return pa.RecordBatchReader.from_batches(reader.schema, self._batches(reader, limit))

    def _batches(self, reader: pa.RecordBatchReader, limit: int | None) -> Iterator[pa.RecordBatch]:
        with self._one_sentence():
            for batch in reader:
                yield batch if limit is None else batch.slice(0, limit)
                if limit is not None:
                    limit -= min(limit, batch.num_rows)
                    if not limit:
                        return

    @contextmanager
    def _one_sentence(self) -> Iterator[None]:
        """What DuckDB complains of, as one sentence of ours."""
        try:
            yield
        except duckdb.CatalogException as error:
            found = _NO_TABLE.search(str(error))
            if found is None:
                raise SqlError(_sentence(error)) from error
            raise self._no_table(found[1]) from error
        except duckdb.ParserException as error:
            raise SqlError(_sentence(error) + _KEYWORDS) from error
        except (duckdb.Error, pa.ArrowException) as error:
            for member in self._snapshots.members:
                member.tables.check_kept()
            if "No such file" in str(error) or "No files found" in str(error):
                raise GoneError(f"a file of the tables is gone: {_sentence(error)}") from error
            raise SqlError(_sentence(error)) from error

    def _select(self, table: Table, places: Iterable[Place]) -> str:
        """The rows of a table. All its columns are there, whether it has rows and its files have
        them or not.
        """
        if table.layer in ("gold", "past") or table is END_OFFSETS:
            selected = [
                f"SELECT {_names(table.names)} FROM ({self._rows(table.arrow, place)})"
                for place in places
            ]
        else:
            selected = [self._looked(table, place) for place in places]
        return " UNION ALL ".join([_nothing(table.arrow), *selected])

    def _looked(self, table: Table, place: Place) -> str:
        """Rows of bronze or silver, out of decoded ones (see `arrow_reader.SilverRows`)."""
        inside = inside_of(table)
        columns = []
        for name in table.names:
            value = f"{_name(table.name)}.{_name(name)}" if name in inside else _name(name)
            if name == "topic_id" and name not in inside:
                value = f"translate(to_base64({value}), '+/=', '-_')"
            columns.append(f"{value} AS {_name(name)}")
        fields = [
            field
            for field in DECODED.arrow
            if field.name in table.names and field.name not in inside
        ]
        if inside:
            fields.append(DECODED.arrow.field(table.name))
        return f"SELECT {', '.join(columns)} FROM ({self._rows(pa.schema(fields), place)})"

    def _rows(self, schema: pa.Schema, place: Place) -> str:
        """The rows of files that count, with these columns at least: null where one is lacking."""
        if is_object(place.files[0]):  # DuckDB asks Arrow for the columns and rows that it needs
            self._datasets += 1
            name = f"kohort dataset {self._datasets}"
            self._engine.register(name, parquet.dataset(place.files, _with_places(schema)))
            found = f"SELECT * FROM {_name(name)}"
        else:
            files = _texts(_escaped(file) for file in place.files)
            found = (
                f"SELECT * FROM read_parquet({files}, union_by_name=true, hive_partitioning=false)"
            )
        kept = [
            f'NOT (partition = {partition} AND "offset" >= {end})'
            for partition, end in place.cuts.items()
        ]
        if place.partitions is not None:
            kept.append(f"partition IN ({', '.join(map(str, place.partitions))})")
        return f"{_nothing(schema)} UNION ALL BY NAME {found} WHERE {' AND '.join(kept) or 'true'}"

    def _no_table(self, name: str) -> KohortError:
        """A table that no run has computed yet is told otherwise than a name that no table has."""
        if (damage := self._damaged.get(name.lower())) is not None:
            return damage
        if did_you_mean(name, self._names):
            return unknown_table(name)
        try:
            self._snapshots.table(name)
        except KohortError as error:
            return error
        return unknown_table(name)


def _of_cluster(select: str, cluster: str | None) -> str:
    """Rows with the column that says of which cluster they are."""
    literal = "NULL" if cluster is None else "'" + cluster.replace("'", "''") + "'"
    return f"SELECT *, CAST({literal} AS VARCHAR) AS {CLUSTER} FROM ({select})"


def _with_places(schema: pa.Schema) -> pa.Schema:
    """The columns, and those by which rows are told that do not count."""
    more = [field for field in _PLACE if field.name not in schema.names]
    return pa.schema([*schema, *more])


def _nothing(schema: pa.Schema) -> str:
    """No rows with these columns."""
    typed = (f"CAST(NULL AS {_type(field.type)}) AS {_name(field.name)}" for field in schema)
    return f"SELECT {', '.join(typed)} WHERE false"


def _type(arrow: pa.DataType) -> str:
    """A type of Arrow as DuckDB calls it."""
    if pa.types.is_list(arrow):
        return f"{_type(arrow.value_type)}[]"
    if pa.types.is_struct(arrow):
        return f"STRUCT({', '.join(f'{_name(field.name)} {_type(field.type)}' for field in arrow)})"
    return _TYPES[arrow]


def _name(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def _names(texts: Iterable[str]) -> str:
    return ", ".join(map(_name, texts))


def _texts(texts: Iterable[str]) -> str:
    return "[" + ", ".join("'" + text.replace("'", "''") + "'" for text in texts) + "]"


def _escaped(path: str) -> str:
    """A path that is no pattern."""
    return re.sub(r"([*?[])", r"[\1]", path)


def _sentence(error: Exception) -> str:
    """What DuckDB says, in a line, without its drawing of the place."""
    found = _NO_COLUMN.search(str(error))
    if found is not None:
        wanted, known = found[1], re.findall(r'"(?:\w+"\.")?(\w+)"', found[2])
        return f"no column is called {wanted!r}{did_you_mean(wanted, known)}"
    text, _, place = str(error).partition("\n\nLINE ")
    said = re.sub(r"^[\w ]+ Error: ", "", " ".join(text.split()))
    line = place.partition("\n")[0].partition(": ")[2].strip()
    return f"{said} in {line!r}" if line else said
