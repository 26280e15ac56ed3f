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
from kohort.spark.tables.arrow_reader import Rows, Tables
from kohort.spark.tables.catalog import chosen_columns, there
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
        table = self.table(name)
        names = chosen_columns(table, columns)
        conditions = [] if where is None else [where]
        if group is not None:
            conditions.append(self._of_groups(table, group))
        rows: Rows = self.tables(table.name)
        schema = pa.schema([rows.schema.field(one) for one in names])
        chosen = reduce(pc.Expression.__and__, conditions) if conditions else None
        return pa.RecordBatchReader.from_batches(schema, rows.to_batches(names, chosen))

    def _of_groups(self, table: Table, group: str | Iterable[str]) -> pc.Expression:
        if "group_id" not in table.names:
            raise TablesError(f"table {table.name} has no groups, so none can be chosen")
        groups = [group] if isinstance(group, str) else list(group)
        self.tables.check_groups(groups, table.name)
        return pc.field("group_id").isin(pa.array(groups, pa.string()))


def _time(milliseconds: int | None) -> datetime | None:
    return None if milliseconds is None else datetime.fromtimestamp(milliseconds / 1000, UTC)
