"""Reading a directory of tables without Spark: for the terminal, the report, and scripts.

The same tables as `store` reads, through the same manifest, by Arrow alone, so that no JVM has to
start. Delta tables are for engines that know them.
"""

import base64
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from kohort.spark import store
from kohort.spark.manifest import ROWS, Increment, Manifest, Part, TablesError, load
from kohort.spark.schemas import DECODED, END_OFFSETS, KINDS, RECORDS_TABLE, Table


class Parts:
    """Files of which only the rows of some partitions of the log count; read as a dataset is."""

    def __init__(
        self, schema: pa.Schema, files: Mapping[tuple[int, ...] | None, list[str]]
    ) -> None:
        self._schema = schema
        self._files = files

    def to_table(
        self,
        columns: Sequence[str] | None = None,
        filter: pc.Expression | None = None,  # noqa: A002  (what Arrow calls it)
    ) -> pa.Table:
        """Some columns of some rows; nothing else is kept in memory."""
        return pa.concat_tables(
            ds.dataset(files, self._schema, format="parquet").to_table(
                columns, _both(_in_partitions(only), filter)
            )
            for only, files in self._files.items()
        )


Rows: TypeAlias = pa.Table | ds.Dataset | Parts


class Tables:
    """The tables of a directory as they were when this was made."""

    def __init__(self, directory: str | Path) -> None:
        """Raises TablesError: there are none, or they are of another version."""
        self.directory = Path(directory).resolve()
        self.manifest: Manifest = load(self.directory)

    def __call__(self, name: str) -> Rows:
        """A table by its name: a dataset where it need not be read as a whole. Raises TablesError:
        there is none of that name, or it is a Delta table.
        """
        table = store.table_of(self.directory, self.manifest, name)
        if table.layer == "gold":
            return self._parts(table, self.manifest.gold[name].parts)
        if table is END_OFFSETS:
            return self._parts(table, self.manifest.end_offsets)
        if self.manifest.format != "parquet":
            raise _is_delta(self.directory, name)
        return self._rows(table)

    def table(self, name: str, where: pc.Expression | None = None) -> pa.Table:
        """A table in memory; of a large one, better only some rows."""
        rows = self(name)
        if isinstance(rows, pa.Table):
            return rows if where is None else rows.filter(where)
        return rows.to_table(filter=where)

    def _parts(self, table: Table, parts: Iterable[Part]) -> Rows:
        by_partitions: dict[tuple[int, ...] | None, list[str]] = {}
        for part in parts:
            if part.version is not None:
                raise _is_delta(self.directory, table.name)
            files = by_partitions.setdefault(part.partitions, [])
            files += _files(self.directory / part.path)
        if set(by_partitions) <= {None}:
            return ds.dataset(by_partitions.get(None, []), table.arrow, format="parquet")
        return Parts(table.arrow, by_partitions)

    def _rows(self, table: Table) -> pa.Table:
        """A table of bronze or silver: some columns of the decoded rows of one kind, or of all."""
        kind = None if table is RECORDS_TABLE else table.name
        nested = table.name in KINDS.values() and table.name in DECODED.names
        inside = set(DECODED.arrow.field(table.name).type.names) if nested else set()
        columns = [name for name in table.names if name not in inside]
        wanted = {*columns, *([table.name] if nested else ())}
        schema = pa.schema([one for one in DECODED.arrow if one.name in wanted])
        found = [self._increment(one, kind, schema) for one in self.manifest.increments]
        rows = pa.concat_tables([*found, schema.empty_table()])
        there = {name: rows.column(name) for name in columns}
        if nested:
            values = rows.column(table.name).combine_chunks()
            there |= zip(values.type.names, values.flatten(), strict=True)
        elif "topic_id" in table.names:
            there["topic_id"] = _texts(there["topic_id"])
        return pa.table([there[name] for name in table.names], names=table.names).cast(table.arrow)

    def _increment(self, one: Increment, kind: str | None, schema: pa.Schema) -> pa.Table:
        place = self.directory / ROWS / one.name
        files = [
            file
            for folder in sorted(place.glob("kind=*"))
            if kind is None or folder.name == f"kind={kind}"
            for file in _files(folder)
        ]
        kept = [
            ~((pc.field("partition") == partition) & (pc.field("offset") >= offset))
            for partition, offset in one.cuts.items()
        ]
        where = reduce(pc.Expression.__and__, kept) if kept else None
        return ds.dataset(files, schema, format="parquet").to_table(filter=where)


def _in_partitions(only: tuple[int, ...] | None) -> pc.Expression | None:
    return None if only is None else pc.field("partition").isin(only)


def _both(one: pc.Expression | None, two: pc.Expression | None) -> pc.Expression | None:
    return two if one is None else one if two is None else one & two


def _files(folder: Path) -> list[str]:
    return [str(file) for file in sorted(folder.glob("*.parquet"))]


def _texts(ids: pa.ChunkedArray) -> pa.Array:
    """16 bytes as the 22 characters in which ids of topics are written."""
    return pa.array(
        [
            None if one is None else base64.urlsafe_b64encode(one).decode().rstrip("=")
            for one in ids.to_pylist()
        ],
        pa.string(),
    )


def _is_delta(directory: Path, name: str) -> TablesError:
    return TablesError(
        f"{name} in {directory} is a Delta table: read it with kohort.spark.read, or with another "
        "engine"
    )
