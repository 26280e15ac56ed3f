# SPDX-License-Identifier: Apache-2.0
"""All tables of a directory at one moment, for whoever wants several that fit together.

A run flips every table at once, so what one snapshot gives was computed by the same run. It holds
no file open: it goes by the manifest that it has read, whose files writers leave alone for a while.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.compute as pc

from kohort.pipeline.format.arrow_reader import NoGroupError, Rows, Tables, all_of
from kohort.pipeline.format.catalog import chosen_columns, known_table, there
from kohort.pipeline.format.cluster import CLUSTER, check_apart, cluster_of, inner, with_cluster
from kohort.pipeline.format.manifest import TablesError
from kohort.pipeline.schemas import Table
from kohort.pipeline.stores.places import Folder


class Snapshot:
    """The tables as they were when this was made."""

    def __init__(self, directory: str | Folder) -> None:
        """Raises TablesError: there are none, or they are of another version."""
        self.tables = Tables(directory)

    @property
    def directory(self) -> Folder:
        """The directory of the tables, in full."""
        return self.tables.directory

    @property
    def cluster(self) -> str | None:
        """The name of the cluster, or its id: what the column `cluster` says. None for unknown."""
        return cluster_of(self.tables.manifest)

    @property
    def as_of(self) -> datetime | None:
        """The moment for which lag, status and the like were computed; None before any run."""
        return _time(self.tables.manifest.as_of_ms)

    @property
    def written_at(self) -> datetime | None:
        """When these tables were published."""
        return _time(self.tables.manifest.written_ms or None)

    @property
    def whole_partitions(self) -> set[int]:
        """Partitions of the log that were read from their first offset on, and nothing is missing:
        before their first record there was nothing.
        """
        known = self.tables.manifest.histories
        if known is None:
            return set()
        return {index for index, (offset, _) in known.complete.items() if offset == 0}

    @property
    def names(self) -> list[str]:
        """The tables that are there, bronze first and gold last."""
        return list(there(self.tables.manifest))

    def table(self, name: str) -> Table:
        """What a table is: its columns with their meanings. Raises TablesError: no such table."""
        return self.tables.table_of(name)

    def read(
        self,
        name: str,
        *,
        columns: Sequence[str] | None = None,
        group: str | Iterable[str] | None = None,
        where: pc.Expression | None = None,
    ) -> pa.Table:
        """A table in memory (see `kohort.tables.read`). Raises TablesError, GoneError."""
        return self.scan(name, columns=columns, group=group, where=where).read_all()

    def scan(
        self,
        name: str,
        *,
        columns: Sequence[str] | None = None,
        group: str | Iterable[str] | None = None,
        where: pc.Expression | None = None,
    ) -> pa.RecordBatchReader:
        """Its rows, some thousand at a time. Raises TablesError, GoneError; reading does so too."""
        return Snapshots([self]).scan(name, columns=columns, group=group, where=where)


class Snapshots:
    """Snapshots of one directory or of several, whose rows the column `cluster` tells apart."""

    def __init__(self, members: Sequence[Snapshot]) -> None:
        """Raises TablesError where rows of several cannot be told apart, or there are none."""
        self.members = list(members)
        if not members:
            raise TablesError("no directory of tables is given, expected one or several")
        if len(self.members) != 1:
            check_apart((member.directory, member.cluster) for member in self.members)

    @property
    def names(self) -> list[str]:
        """The tables that all of them have."""
        first, *others = self.members
        return [name for name in first.names if all(name in member.names for member in others)]

    def table(self, name: str) -> Table:
        """What a table is. Raises TablesError: no such table, or one of them has it not yet."""
        found = known_table(name)
        for member in self.members:
            with about(member):
                member.table(name)
        return found

    def scan(
        self,
        name: str,
        *,
        columns: Sequence[str] | None = None,
        group: str | Iterable[str] | None = None,
        where: pc.Expression | None = None,
    ) -> pa.RecordBatchReader:
        """The rows of all, one directory after the other (see `Snapshot.scan`)."""
        table = self.table(name)
        names = chosen_columns(table, columns)
        if where is not None and not isinstance(where, pc.Expression):
            raise TablesError(
                f"where is {where!r}, expected an expression of Arrow such as "
                "pyarrow.compute.field('group_id') == 'billing'"
            )
        chosen = all_of(where, None if group is None else self._of_groups(table, group))
        rows = []
        for member in self.members:  # what is gone is told now
            with about(member):
                rows.append(member.tables(table.name))
        fields = {field.name: field for field in (*rows[0].schema, pa.field(CLUSTER, pa.string()))}
        schema = pa.schema([fields[column] for column in names])
        stored = inner(names, table.names)
        batches = (
            batch
            for snapshot, opened in zip(self.members, rows, strict=True)
            for batch in with_cluster(
                _batches(snapshot, opened, stored, chosen), schema, snapshot.cluster
            )
        )
        return pa.RecordBatchReader.from_batches(schema, batches)

    def _of_groups(self, table: Table, group: str | Iterable[str]) -> pc.Expression:
        if "group_id" not in table.names:
            raise TablesError(f"table {table.name} has no groups, so none can be chosen")
        groups = [group] if isinstance(group, str) else list(group)
        self.check_groups(groups, table.name)
        return pc.field("group_id").isin(pa.array(groups, pa.string()))

    def check_groups(self, groups: Iterable[str], name: str | None = None) -> None:
        """Raises NoGroupError for a group that none of them knows (see `Tables.check_groups`)."""
        for group in groups:
            refused = []
            for member in self.members:
                try:
                    with about(member):
                        member.tables.check_groups([group], name)
                    break
                except NoGroupError as error:
                    refused.append(error)
            else:
                refused[0].directory = None
                raise refused[0]


@contextmanager
def about(member: Snapshot) -> Iterator[None]:
    """What fails in here is told as a failure of that directory."""
    try:
        yield
    except TablesError as error:
        error.directory = member.directory
        raise
    except (OSError, pa.ArrowException) as error:
        failure = TablesError(f"the tables cannot be read: {str(error).splitlines()[0]}")
        failure.directory = member.directory
        raise failure from error


def _batches(
    member: Snapshot, rows: Rows, columns: Sequence[str], where: pc.Expression | None
) -> Iterator[pa.RecordBatch]:
    found = rows.to_batches(columns, where)
    while True:
        with about(member):
            batch = next(found, None)
        if batch is None:
            return
        yield batch


def _time(milliseconds: int | None) -> datetime | None:
    return None if milliseconds is None else datetime.fromtimestamp(milliseconds / 1000, UTC)
