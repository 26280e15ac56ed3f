"""Whole tables as tables of Apache Iceberg, by pyiceberg: in a catalog that it is configured for,
or in a directory with a catalog of its own.

All rows are written before any table is changed. Then each table gets them by one commit, one right
after the other. What a table was before stays in its history, as long as its owner keeps that.
"""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path
from typing import NamedTuple, Self
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException, ValidationException
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.io import OutputFile
from pyiceberg.table import Table, Transaction

from kohort.errors import KohortError
from kohort.spark.stores.layout import MANIFEST
from kohort.spark.tables.manifest import TablesError
from kohort.tables.export import ThereError
from kohort.tables.moment import Snapshot, Snapshots

NAMESPACE = "kohort"
CATALOG_FILE = "catalog.db"
AS_OF, WRITTEN_AT = "kohort.as-of", "kohort.written-at"
"""Properties of the snapshot of a table: when what it has was true, and when it was published."""


class LakeError(KohortError):
    """A catalog cannot do what it is asked to; the text is one sentence with what it said."""


class Exported(NamedTuple):
    """A table that was written, and where its files are."""

    name: str
    rows: int
    location: str


class _Staged(NamedTuple):
    """A commit that has all its files and that nobody sees yet."""

    name: str
    identifier: tuple[str, ...]
    transaction: Transaction
    rows: int


class Lake:
    """Tables of one namespace of a catalog."""

    def __init__(self, catalog: Catalog, namespace: str = NAMESPACE) -> None:
        """`namespace` may have several levels with dots between. Raises LakeError."""
        self._catalog = catalog
        self._namespace = tuple(namespace.split("."))
        self._mine: set[tuple[str, ...]] = set()  # written by this object, which may try again
        if not all(self._namespace):
            raise LakeError(f"{namespace!r} is no namespace, expected names with dots between")

    @classmethod
    def inside(cls, directory: Path, namespace: str = NAMESPACE) -> Self:
        """That of a directory, whose catalog is one file of SQLite. Its tables name their files in
        full, so it stays where it is. Raises LakeError, TablesError.
        """
        where = directory.resolve()
        if (where / MANIFEST).exists():
            raise TablesError(
                f"{directory} is a directory of tables, expected another one to export to"
            )
        with _saying(f"in {directory}"):
            where.mkdir(parents=True, exist_ok=True)
            uri = f"sqlite:///{where / CATALOG_FILE}"
            catalog = SqlCatalog(NAMESPACE, uri=uri, warehouse=where.as_uri())
        return cls(catalog, namespace)

    @classmethod
    def of(cls, catalog: str, namespace: str = NAMESPACE) -> Self:
        """One that pyiceberg is configured for. Raises LakeError."""
        with _saying(catalog):
            return cls(load_catalog(catalog), namespace)

    def export(
        self,
        snapshot: Snapshot | Snapshots,
        names: Iterable[str] | None = None,
        *,
        overwrite: bool = False,
    ) -> list[Exported]:
        """Write tables of a snapshot, by default all; of several the rows of all, which the column
        `cluster` tells apart.

        Raises ThereError without `overwrite`, TablesError for a table that is not there, GoneError:
        then nothing has changed. LakeError names a table whose commit has failed: those before it
        have their new rows.
        """
        wanted = snapshot.names if names is None else [snapshot.table(name).name for name in names]
        identifiers = {name: (*self._namespace, name) for name in dict.fromkeys(wanted)}
        with _saying(self._catalog.name):
            there = [
                name
                for name, identifier in identifiers.items()
                if self._catalog.table_exists(identifier) and identifier not in self._mine
            ]
            if there and not overwrite:
                text = ".".join(identifiers[there[0]])
                raise ThereError(f"the table {text} is there already")
            self._catalog.create_namespace_if_not_exists(self._namespace)
        staged = []
        for name, identifier in identifiers.items():
            with _saying(self._catalog.name, name):
                staged.append(self._staged(snapshot, name, identifier))
        return [self._committed(each) for each in staged]

    def _staged(
        self, snapshot: Snapshot | Snapshots, name: str, identifier: tuple[str, ...]
    ) -> _Staged:
        reader = snapshot.scan(name)
        schema = _known_to_iceberg(reader.schema)
        if self._catalog.table_exists(identifier):
            table = self._catalog.load_table(identifier)
            if not table.spec().is_unpartitioned():
                raise LakeError(
                    f"the Iceberg table {'.'.join(identifier)} is partitioned, expected one "
                    "that is not: its rows come as one file"
                )
            transaction = table.transaction()
            with transaction.update_schema() as update:  # of an older Kohort it has fewer columns
                update.union_by_name(schema)
            if _has_rows(table):
                transaction.delete(AlwaysTrue())
        else:
            transaction = self._catalog.create_table_transaction(identifier, schema)
        file = f"{transaction.table_metadata.location}/data/{uuid4()}.parquet"
        # Who may write there the catalog has told the table alone.
        io = transaction._table.io  # noqa: SLF001
        rows = _write(reader, schema, io.new_output(file))
        if rows:
            transaction.add_files([file], _told(snapshot), check_duplicate_files=False)
        return _Staged(name, identifier, transaction, rows)

    def _committed(self, staged: _Staged) -> Exported:
        with _saying(self._catalog.name, staged.name):
            table = staged.transaction.commit_transaction()
        self._mine.add(staged.identifier)
        return Exported(staged.name, staged.rows, table.location())


def _known_to_iceberg(schema: pa.Schema) -> pa.Schema:
    """Iceberg has no integers below four bytes."""

    def wider(kind: pa.DataType) -> pa.DataType:
        if pa.types.is_int8(kind) or pa.types.is_int16(kind):
            return pa.int32()
        if pa.types.is_list(kind):
            return pa.list_(wider(kind.value_type))
        if pa.types.is_struct(kind):
            return pa.struct([pa.field(field.name, wider(field.type)) for field in kind])
        return kind

    return pa.schema([(field.name, wider(field.type)) for field in schema])


def _write(reader: pa.RecordBatchReader, schema: pa.Schema, file: OutputFile) -> int:
    """A file of Parquet; answers how many rows it has. Without rows there is no file.

    pyiceberg's own way to write makes an empty list of a list of structs that is null (0.12).
    """
    rows = 0
    with ExitStack() as opened:
        writer = None
        for batch in reader:
            if batch.num_rows and writer is None:
                stream = opened.enter_context(file.create())
                writer = opened.enter_context(pq.ParquetWriter(stream, schema, compression="zstd"))
            if writer is not None:
                writer.write_table(pa.Table.from_batches([batch]).cast(schema))
            rows += batch.num_rows
    return rows


def _has_rows(table: Table) -> bool:
    """Whether there is anything to delete: pyiceberg warns where there is not."""
    now = table.current_snapshot()
    return now is not None and (now.summary is None or now.summary["total-records"] != "0")


def _told(snapshot: Snapshot | Snapshots) -> dict[str, str]:
    """Of several clusters the oldest times."""
    members = snapshot.members if isinstance(snapshot, Snapshots) else [snapshot]
    times = {
        AS_OF: [member.as_of for member in members],
        WRITTEN_AT: [member.written_at for member in members],
    }
    return {name: oldest for name, known in times.items() if (oldest := _oldest(known))}


def _oldest(times: Iterable[datetime | None]) -> str:
    known = [time for time in times if time is not None]
    return min(known).isoformat() if known else ""


@contextmanager
def _saying(catalog: str | None, table: str = "") -> Iterator[None]:
    """Whatever library a catalog is of, its error becomes one sentence with catalog and table."""
    try:
        yield
    except KohortError:
        raise
    except (CommitFailedException, ValidationException) as error:
        raise LakeError(
            f"the Iceberg table {table} was changed by somebody else meanwhile"
        ) from error
    except Exception as error:
        of_system = error.strerror if isinstance(error, OSError) else None
        lines = (of_system or str(error)).strip().splitlines()
        why = lines[0] if lines else type(error).__name__
        about = f"{catalog}: {table}" if table else catalog
        raise LakeError(f"the Iceberg catalog {about}: {why}") from error
