# SPDX-License-Identifier: Apache-2.0
"""Reading a directory of tables without Spark: for the terminal, the report, and scripts.

It reads the same tables as `spark_reader`, through the same manifest, by Arrow alone: no JVM has to
start.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import reduce
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from kohort.pipeline.format.catalog import did_you_mean, table_of
from kohort.pipeline.format.manifest import Increment, Manifest, Part, TablesError, load
from kohort.pipeline.schemas import DECODED, END_OFFSETS, KINDS, RECORDS_TABLE, Table
from kohort.pipeline.stores import parquet
from kohort.pipeline.stores.layout import ROWS
from kohort.pipeline.stores.object_path import ObjectPath
from kohort.pipeline.stores.places import Folder, place_of
from kohort.terms import uuid_text

_NO_FIELD = re.compile(r"No match for FieldRef\.Name\((.+?)\)")


class GoneError(TablesError):
    """Files of the tables are gone: later ones have taken their place."""


class NoGroupError(TablesError):
    """Nothing is known of a group that is asked for."""


class Place(NamedTuple):
    """Files, and which of their rows count."""

    files: list[str]
    partitions: tuple[int, ...] | None = None
    """Partitions of the log whose rows in here count; None for all. See `manifest.Part`."""
    cuts: Mapping[int, int] = MappingProxyType({})
    """Partition -> offset from which on its rows in here no longer count."""

    @property
    def where(self) -> pc.Expression | None:
        """Which rows count; None for all."""
        kept = [
            ~((pc.field("partition") == partition) & (pc.field("offset") >= offset))
            for partition, offset in self.cuts.items()
        ]
        if self.partitions is not None:
            kept.append(pc.field("partition").isin(self.partitions))
        return reduce(pc.Expression.__and__, kept) if kept else None


class Rows:
    """The rows of a table, wherever they are; read as a dataset is, so nothing is in memory but
    what is asked for.
    """

    def __init__(self, schema: pa.Schema, places: Iterable[Place]) -> None:
        self.schema = schema
        self._places = list(places)

    def to_batches(
        self,
        columns: Sequence[str] | None = None,
        filter: pc.Expression | None = None,  # noqa: A002  (what Arrow calls it)
    ) -> Iterator[pa.RecordBatch]:
        """Some columns of some rows, some thousand rows at a time. Raises GoneError."""
        for place in self._places:
            with _still_there():
                found = parquet.dataset(place.files, self.schema)
                yield from found.to_batches(columns=columns, filter=all_of(place.where, filter))

    def to_table(
        self,
        columns: Sequence[str] | None = None,
        filter: pc.Expression | None = None,  # noqa: A002
    ) -> pa.Table:
        """Some columns of some rows."""
        names = self.schema.names if columns is None else columns
        schema = pa.schema([self.schema.field(name) for name in names])
        return pa.Table.from_batches(self.to_batches(names, filter), schema)


def inside_of(table: Table) -> set[str]:
    """The columns of a table of silver that are fields of its column in decoded rows."""
    nested = table.name in KINDS.values() and table.name in DECODED.names
    return set(DECODED.arrow.field(table.name).type.names) if nested else set()


class SilverRows(Rows):
    """Rows of bronze or silver: some columns of the decoded rows of one kind, or of all."""

    def __init__(self, table: Table, places: Iterable[Place]) -> None:
        super().__init__(table.arrow, places)
        inside = inside_of(table)
        self._columns = {
            name: pc.field(table.name, name) if name in inside else pc.field(name)
            for name in table.names
        }
        self._ids_as_text = "topic_id" in table.names and "topic_id" not in inside

    def to_batches(
        self,
        columns: Sequence[str] | None = None,
        filter: pc.Expression | None = None,  # noqa: A002
    ) -> Iterator[pa.RecordBatch]:
        wanted = self.schema.names if columns is None else list(columns)
        needed = wanted if filter is None else self.schema.names  # nobody tells what a filter needs
        schema = pa.schema([self.schema.field(name) for name in needed])
        chosen = {name: self._columns[name] for name in needed}
        for place in self._places:
            with _still_there():
                found = parquet.dataset(place.files, DECODED.arrow)
                for batch in found.to_batches(columns=chosen, filter=place.where):
                    rows = pa.Table.from_batches([self._shaped(batch, schema)])
                    filtered = rows if filter is None else rows.filter(filter)
                    yield from filtered.select(wanted).to_batches()

    def _shaped(self, batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
        values = [
            _texts(values) if self._ids_as_text and name == "topic_id" else values
            for name, values in zip(batch.schema.names, batch.columns, strict=True)
        ]
        pairs = zip(values, schema, strict=True)
        return pa.record_batch([column.cast(field.type) for column, field in pairs], schema)


def all_of(*conditions: pc.Expression | None) -> pc.Expression | None:
    """The condition that all of these hold; None is one that always does."""
    known = [condition for condition in conditions if condition is not None]
    return reduce(pc.Expression.__and__, known) if known else None


class Tables:
    """The tables of a directory as they were when this was made."""

    def __init__(self, directory: str | Folder) -> None:
        """Raises TablesError: there are none, or they are of another version."""
        self.directory = place_of(directory)
        self.manifest: Manifest = load(self.directory)
        self._counts: dict[str, int] = {}

    def __call__(self, name: str) -> Rows:
        """A table by its name. Raises TablesError: there is none of that name; GoneError."""
        table = self.table_of(name)
        return rows_of(table, self.places(table))

    def table_of(self, name: str) -> Table:
        """What a table is. Raises TablesError: there is none of that name."""
        return table_of(self.directory, self.manifest, name)

    def places(self, table: Table) -> list[Place]:
        """Where the rows of a table are; those of bronze and silver are decoded rows. Raises
        GoneError.
        """
        try:
            found = self._listed(table)
        finally:
            self.check_kept()  # which tells more than that one of them is gone
        return [place for place in found if place.files]

    def _listed(self, table: Table) -> list[Place]:
        if table.layer == "gold":
            return self._parts(self.manifest.gold[table.name].parts)
        if table is END_OFFSETS:
            return self._parts(self.manifest.end_offsets)
        if table.layer == "past":
            return self._parts(self.manifest.past.parts(table.name))
        kind = None if table is RECORDS_TABLE else table.name
        return [
            Place(self._rows(increment, kind), cuts=increment.cuts)
            for increment in self.manifest.increments
        ]

    def size_of(self, file: str) -> int:
        """The bytes of one of the files that `places` names."""
        if isinstance(self.directory, ObjectPath):
            return (self.directory / file.removeprefix(f"{self.directory}/")).size()
        return Path(file).stat().st_size

    def check_kept(self) -> None:
        """Raises GoneError where a writer may have begun to remove what was just listed: it does so
        a quarter of an hour after the last manifest that names a file. If files go later, reading
        them fails by name.
        """
        now = load(self.directory)
        kept = {*now.paths(), *(retired.path for retired in now.retired)}
        if now.number != self.manifest.number and not kept.issuperset(self.manifest.paths()):
            raise GoneError(
                f"{self.directory} was written anew since its tables were opened, a quarter of an "
                "hour ago or more, and their files are gone: open them again"
            )

    def table(self, name: str, where: pc.Expression | None = None) -> pa.Table:
        """A table in memory; of a large one, better only some rows."""
        return self(name).to_table(filter=where)

    def check_groups(self, groups: Iterable[str], name: str | None = None) -> None:
        """Raises TablesError for a group that neither the state of groups nor the table of that
        name knows.
        """
        asked = {"group_state"} & self.manifest.gold.keys() | ({name} if name else set())
        known: set[str | None] = set()
        for table in asked:
            if "group_id" in self(table).schema.names:
                for batch in self(table).to_batches(["group_id"]):
                    known.update(batch.column(0).unique().to_pylist())
        for group in groups:
            if known and group not in known:
                raise NoGroupError(
                    f"no group is called {group!r} in {self.directory}"
                    + did_you_mean(group, [other for other in known if other is not None])
                )

    def _parts(self, parts: Iterable[Part]) -> list[Place]:
        by_partitions: dict[tuple[int, ...] | None, list[str]] = {}
        for part in parts:
            by_partitions.setdefault(part.partitions, []).extend(self._files(part))
        return [Place(files, only) for only, files in by_partitions.items()]

    def _files(self, part: Part) -> list[str]:
        path = self.directory / part.path
        found = _files(path)
        self._check_rows(path, found, part.rows, least=part.partitions is not None)
        return found

    def _rows(self, increment: Increment, kind: str | None) -> list[str]:
        """The files of an increment, of one kind or of all."""
        _check_there(self.directory / ROWS / increment.name)
        folders = parquet.inside(self.directory / ROWS / increment.name, "kind=*")
        chosen = (folder for folder in folders if kind in (None, folder.name[len("kind=") :]))
        found = [file for folder in chosen for file in _files(folder)]
        rows = increment.rows if kind is None else increment.counts.get(kind, 0)
        self._check_rows(self.directory / ROWS / increment.name, found, rows)
        return found

    def _check_rows(
        self, folder: Folder, files: Sequence[str], rows: int, *, least: bool = False
    ) -> None:
        """Raises GoneError where files are missing, or where there are files that no run has
        written: the remaining rows would pass for all of them. In a bucket the manifest names each
        file.
        """
        if isinstance(folder, ObjectPath):
            return
        there = 0
        for file in files:
            if file not in self._counts:
                with _still_there(file):
                    self._counts[file] = parquet.footer(Path(file)).num_rows
            there += self._counts[file]
        if there < rows or (there > rows and not least):
            raise GoneError(
                f"{folder} has {there:,} rows and not {rows:,}, as it was written: `kohort "
                "pipeline verify` says what is damaged"
            )


def rows_of(table: Table, places: Iterable[Place]) -> Rows:
    """The rows of a table that are in these places."""
    is_parts = table.layer in ("gold", "past") or table is END_OFFSETS
    return Rows(table.arrow, places) if is_parts else SilverRows(table, places)


@contextmanager
def _still_there(file: str | None = None) -> Iterator[None]:
    """Says what is meant when a file disappears while it is read, or is damaged: this one, if it is
    one.
    """
    try:
        yield
    except FileNotFoundError as error:
        raise GoneError(
            "the tables were written anew while they were read, and a file of theirs is gone: read "
            f"them again ({str(error).splitlines()[0]})"
        ) from error
    except pa.ArrowInvalid as error:
        said = str(error).splitlines()[0].rstrip(".")
        if (field := _NO_FIELD.search(said)) is not None:
            raise TablesError(f"no column that can be asked for is called {field[1]!r}") from error
        raise TablesError(
            f"{file or 'the tables'} cannot be read: {said}; `kohort pipeline verify` says what is "
            "damaged"
        ) from error


def _check_there(folder: Folder) -> None:
    if not folder.is_dir():
        raise GoneError(
            f"{folder} is gone, which the tables are made of: the next `kohort pipeline run` "
            "computes gold anew where its files are gone"
        )


def _files(folder: Folder) -> list[str]:
    _check_there(folder)
    return [str(file) for file in parquet.files_of(folder)]


def _texts(ids: pa.Array) -> pa.Array:
    """16 bytes as the 22 characters in which ids of topics are written."""
    return pa.array(
        [None if topic_id is None else uuid_text(topic_id) for topic_id in ids.to_pylist()],
        pa.string(),
    )
