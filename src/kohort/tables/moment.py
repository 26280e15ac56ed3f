"""All tables of a directory at one moment, for whoever wants several that fit together.

A run flips every table at once, so what one snapshot gives was computed by the same run. It holds
no file open: it goes by the manifest that it has read, whose files writers leave alone for a while.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from kohort.spark.schemas import Table
from kohort.spark.stores.places import Folder
from kohort.spark.tables.arrow_reader import GoneError, Tables
from kohort.spark.tables.catalog import chosen_columns, there
from kohort.spark.tables.cluster import CLUSTER, check_apart, cluster_of, inner, with_cluster
from kohort.spark.tables.manifest import TablesError


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
        return [name for name in first.names if all(name in one.names for one in others)]

    def table(self, name: str) -> Table:
        """What a table is. Raises TablesError: no such table, or one of them has it not yet."""
        tables = [member.table(name) for member in self.members]
        return tables[0]

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
        conditions = [] if where is None else [where]
        if group is not None:
            conditions.append(self._of_groups(table, group))
        chosen = reduce(pc.Expression.__and__, conditions) if conditions else None
        rows = [member.tables(table.name) for member in self.members]  # what is gone is told now
        fields = {one.name: one for one in (*rows[0].schema, pa.field(CLUSTER, pa.string()))}
        schema = pa.schema([fields[one] for one in names])
        stored = inner(names, table.names)
        batches = (
            batch
            for one, its in zip(self.members, rows, strict=True)
            for batch in with_cluster(its.to_batches(stored, chosen), schema, one.cluster)
        )
        return pa.RecordBatchReader.from_batches(schema, batches)

    def _of_groups(self, table: Table, group: str | Iterable[str]) -> pc.Expression:
        if "group_id" not in table.names:
            raise TablesError(f"table {table.name} has no groups, so none can be chosen")
        groups = [group] if isinstance(group, str) else list(group)
        for one in groups:
            self._check_group(one, table)
        return pc.field("group_id").isin(pa.array(groups, pa.string()))

    def _check_group(self, group: str, table: Table) -> None:
        """Raises TablesError for a group that none of them knows."""
        refused = []
        for member in self.members:
            try:
                return member.tables.check_groups([group], table.name)
            except GoneError:
                raise
            except TablesError as error:
                refused.append(error)
        raise refused[0]


def _time(milliseconds: int | None) -> datetime | None:
    return None if milliseconds is None else datetime.fromtimestamp(milliseconds / 1000, UTC)
