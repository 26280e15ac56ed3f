# SPDX-License-Identifier: Apache-2.0
"""Whole tables as tables of Apache Iceberg, by pyiceberg: in a catalog that it is configured for,
or in a directory with a catalog of its own.

All rows are written before any table is changed. Then each table gets them by one commit, one right
after the other. What a table was before stays in its history, as long as its owner keeps that.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import NamedTuple, Self
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import (
    CommitFailedException,
    TableAlreadyExistsError,
    ValidationException,
)
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.io import FileIO, OutputFile
from pyiceberg.table import Table, TableProperties, Transaction
from pyiceberg.utils.config import Config
from sqlalchemy import URL

from kohort.errors import KohortError
from kohort.tables.durable_files import SCHEME, DurableFiles, make_directory
from kohort.tables.export import ThereError, check_outside
from kohort.tables.snapshots import Snapshot, Snapshots

NAMESPACE = "kohort"
CATALOG_FILE = "catalog.db"
AS_OF = "kohort.as-of"
"""Property of a snapshot of Iceberg: the moment that the rows are of."""
WRITTEN_AT = "kohort.written-at"
"""The same for when a run of the pipeline has published them."""
_CHANGED_MEANWHILE = (CommitFailedException, TableAlreadyExistsError, ValidationException)
_NO_NAME = re.compile(r"[/\x00-\x1f\x7f\ud800-\udfff]")
_NO_PLACE = re.compile(r"[?#\x00-\x1f\x7f\ud800-\udfff]")
"""A place is told as a URI, where these would end its path or are not allowed."""
_OF_PYTHON = re.compile(r"^\(\w+\.\w+\) ")


_Unused = dict[str, FileIO]
"""Files that count for nobody so far, and what can remove them. They may not be there."""


class LakeError(KohortError):
    """A catalog refuses or fails. The text is one sentence, with the catalog and what it says."""


class InLake(NamedTuple):
    """A table that was written, and where its files are."""

    name: str
    rows: int
    location: str


class _StagedCommit(NamedTuple):
    """A commit that has all its files, and that nobody sees yet."""

    name: str
    transaction: Transaction
    rows: int
    file: str
    """The file of the rows; without rows there is none."""


class Lake:
    """Tables of one namespace of a catalog."""

    def __init__(self, about: str, opens: Callable[[], Catalog], namespace: str) -> None:
        """`about` is what errors call the catalog, and `opens` is called when it is needed.
        `namespace` may have several levels with dots between, where the catalog knows that.
        Raises LakeError.
        """
        self.about = about
        self._opens = opens
        self._namespace = tuple(namespace.split("."))
        if not all(self._namespace) or _NO_NAME.search(namespace):
            raise LakeError(f"{namespace!r} is no namespace, expected names with dots between")

    @classmethod
    def in_directory(cls, directory: Path, namespace: str = NAMESPACE) -> Self:
        """A directory whose catalog is one file of SQLite; both are made when there are rows. Its
        tables name their files in full, so that it has to stay where it is. Raises LakeError,
        TablesError.
        """
        about = f"in {directory}"
        if "." in namespace.strip("."):
            raise LakeError(f"{namespace!r} is no namespace of a directory, expected one name")
        with _one_sentence(about):
            where = directory.resolve()
            check_outside(where)
        if _NO_PLACE.search(str(where)):
            raise LakeError(f"{str(where)!r} cannot have a lake, expected a path without ? and #")

        def opens() -> Catalog:
            make_directory(where)
            uri = URL.create("sqlite", database=str(where / CATALOG_FILE))
            files = f"{DurableFiles.__module__}.{DurableFiles.__name__}"
            return SqlCatalog(
                NAMESPACE,
                uri=uri.render_as_string(hide_password=False),
                warehouse=f"{SCHEME}{where}",
                **{"py-io-impl": files},
            )

        return cls(about, opens, namespace)

    @classmethod
    def of_catalog(cls, name: str, namespace: str = NAMESPACE) -> Self:
        """A catalog that pyiceberg is configured for. Raises LakeError."""
        with _one_sentence(name):
            known = Config().get_catalog_config(name)
        if known is None:
            raise LakeError(
                f"pyiceberg is not configured for a catalog {name!r}, expected it in "
                f".pyiceberg.yaml or as PYICEBERG_CATALOG__{name.upper()}__URI"
            )
        return cls(name, lambda: load_catalog(name), namespace)

    def export(
        self,
        snapshot: Snapshot | Snapshots,
        names: Iterable[str] | None = None,
        *,
        overwrite: bool = False,
    ) -> list[InLake]:
        """Write tables of a snapshot, by default all; of several the rows of all, which the column
        `cluster` tells apart.

        Raises ThereError without `overwrite`, TablesError for a table that is not there, GoneError,
        and LakeError. Nothing has changed then, unless a LakeError names tables that have been
        written before, or one that may have been.
        """
        wanted = snapshot.names if names is None else [snapshot.table(name).name for name in names]
        with _one_sentence(self.about):
            catalog = self._opens()
        identifiers = {name: (*self._namespace, name) for name in dict.fromkeys(wanted)}
        there = [name for name in identifiers if self._exists(catalog, name)]
        if there and not overwrite:
            raise ThereError(f"the table {self._called(there[0])} is there already")
        staged: list[_StagedCommit] = []
        with _unused_files() as unused:
            with _one_sentence(self.about):
                catalog.create_namespace_if_not_exists(self._namespace)
            for name, identifier in identifiers.items():
                reader, properties = snapshot.scan(name), _properties(snapshot)
                schema = _known_to_iceberg(reader.schema)
                with _one_sentence(self.about, self._called(name)):
                    if name in there:
                        table = catalog.load_table(identifier)
                        transaction = _replacing(table, schema, properties)
                    else:
                        transaction = catalog.create_table_transaction(identifier, schema)
                    rows, file = _stage(transaction, reader, schema, properties, unused)
                staged.append(_StagedCommit(name, transaction, rows, file))
            return self._commit(staged, unused)

    def _commit(self, staged: Sequence[_StagedCommit], unused: _Unused) -> list[InLake]:
        """Change the tables one after the other."""
        done: list[InLake] = []
        for each in staged:
            about = f"the Iceberg table {self._called(each.name)}"
            before = f" (already written: {', '.join(table.name for table in done)})"
            # Whatever becomes of the commit: when its answer is lost, the file may count.
            files = unused.pop(each.file)
            try:
                table = each.transaction.commit_transaction()
            except _CHANGED_MEANWHILE as error:
                unused[each.file] = files
                why = "was changed by somebody else meanwhile: try again"
                raise LakeError(f"{about} {why}{before if done else ''}") from error
            except Exception as error:
                why = f"may have its new rows all the same: {self.about}: {_first_line(error)}"
                raise LakeError(f"{about} {why}{before if done else ''}") from error
            done.append(InLake(each.name, each.rows, table.location()))
        return done

    def _exists(self, catalog: Catalog, name: str) -> bool:
        with _one_sentence(self.about, self._called(name)):
            return catalog.table_exists((*self._namespace, name))

    def _called(self, name: str) -> str:
        return ".".join((*self._namespace, name))


def _replacing(table: Table, schema: pa.Schema, properties: dict[str, str]) -> Transaction:
    """A transaction that leaves a table without rows, and with the columns that are written."""
    called = ".".join(table.name())
    if not table.spec().is_unpartitioned():
        raise LakeError(
            f"the Iceberg table {called} is partitioned, expected one that is not: its rows come "
            "as one file"
        )
    for field in table.schema().fields:
        if field.required and field.name not in schema.names:
            raise LakeError(
                f"the Iceberg table {called} requires a column {field.name!r}, which Kohort does "
                "not write"
            )
    # Tried again, a commit would put its rows beside those that somebody else wrote meanwhile.
    table.metadata.properties[TableProperties.COMMIT_NUM_RETRIES] = "0"
    transaction = table.transaction()
    with transaction.update_schema() as update:  # a table of an older Kohort has fewer columns
        update.union_by_name(schema)
    if _has_rows(table):
        transaction.delete(AlwaysTrue(), properties)
    return transaction


def _stage(
    transaction: Transaction,
    reader: pa.RecordBatchReader,
    schema: pa.Schema,
    properties: dict[str, str],
    unused: _Unused,
) -> tuple[int, str]:
    """Write rows for a transaction; returns how many, and the file."""
    file = f"{transaction.table_metadata.location}/data/{uuid4()}.parquet"
    # Not the catalog's: a table may have been given credentials for its own place.
    files = transaction._table.io  # noqa: SLF001
    unused[file] = files
    rows = _write(reader, schema, files.new_output(file))
    if rows:
        transaction.add_files([file], properties, check_duplicate_files=False)
    else:  # so that its history says when it was empty
        transaction.append(schema.empty_table(), properties)
    return rows, file


def _write(reader: pa.RecordBatchReader, schema: pa.Schema, file: OutputFile) -> int:
    """Write a file of Parquet; returns how many rows it has. Without rows there is no file.

    pyiceberg's own way of writing turns a null into an empty list where the list is one of structs
    (0.12).
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


@contextmanager
def _unused_files() -> Iterator[_Unused]:
    """Those that are left when the block fails are removed."""
    unused: _Unused = {}
    try:
        yield unused
    except BaseException:
        for file, files in unused.items():
            with suppress(Exception):
                files.delete(file)
        raise


def _known_to_iceberg(schema: pa.Schema) -> pa.Schema:
    """The columns with integers of four bytes at least: Iceberg has no smaller ones."""

    def wider(kind: pa.DataType) -> pa.DataType:
        if pa.types.is_int8(kind) or pa.types.is_int16(kind):
            return pa.int32()
        if pa.types.is_list(kind):
            return pa.list_(wider(kind.value_type))
        if pa.types.is_struct(kind):
            return pa.struct([pa.field(field.name, wider(field.type)) for field in kind])
        return kind

    return pa.schema([(field.name, wider(field.type)) for field in schema])


def _has_rows(table: Table) -> bool:
    """Whether there is anything to delete: pyiceberg warns where there is not."""
    now = table.current_snapshot()
    return now is not None and (now.summary is None or now.summary["total-records"] != "0")


def _properties(snapshot: Snapshot | Snapshots) -> dict[str, str]:
    """AS_OF and WRITTEN_AT, where they are known; of several clusters the oldest."""
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
def _one_sentence(catalog: str, table: str = "") -> Iterator[None]:
    """Turn the error of any library that a catalog is of into a LakeError."""
    try:
        yield
    except KohortError:
        raise
    except Exception as error:
        where = f"{catalog}: {table}" if table else catalog
        raise LakeError(f"the Iceberg catalog {where}: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    of_system = error.strerror if isinstance(error, OSError) else None
    lines = (of_system or str(error)).strip().splitlines()
    return _OF_PYTHON.sub("", lines[0]) if lines else type(error).__name__
