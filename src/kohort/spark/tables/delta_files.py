"""What versions of Delta tables there are, and which files make them up: delta-rs tells, no JVM."""

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import pyarrow as pa

from kohort.errors import how_to_install
from kohort.spark.stores.places import Folder
from kohort.spark.tables.manifest import TablesError

_BEYOND_FILES = {"columnMapping", "deletionVectors"}
"""Features that make the rows of a file differ from the rows of the table."""


class DataFile(NamedTuple):
    """A Parquet file of a table, and the values of the columns that are not in it."""

    path: str
    values: Mapping[str, str]


def files(folder: Folder, version: int) -> list[DataFile]:
    """The files of a version of a table, without Spark. Raises TablesError."""
    path = on_disk(folder)
    table = _opened(path, version)
    protocol = table.protocol()
    if protocol.min_reader_version == 2 or _BEYOND_FILES & {*(protocol.reader_features or ())}:
        raise TablesError(
            f"the Delta table {path} has deletion vectors or mapped columns, which another engine "
            "put there: read it with kohort.spark.read"
        )
    found = pa.table(table.get_add_actions(flatten=True)).to_pylist()
    begin = "partition."
    return sorted(
        DataFile(
            str(path / unquote(row["path"])),
            {name.removeprefix(begin): row[name] for name in row if name.startswith(begin)},
        )
        for row in found
    )


def latest(path: Path) -> int | None:
    """The newest version of a table; None when there is no table."""
    require()
    from deltalake import DeltaTable  # noqa: PLC0415  (it is an option)

    return _opened(path).version() if DeltaTable.is_deltatable(str(path)) else None


def _opened(path: Path, version: int | None = None) -> Any:
    """A `DeltaTable`."""
    require()
    from deltalake import DeltaTable  # noqa: PLC0415  (it is an option)
    from deltalake.exceptions import DeltaError  # noqa: PLC0415

    try:
        return DeltaTable(path, version=version)
    except DeltaError as error:
        which = "the newest version" if version is None else f"version {version}"
        why = " ".join(str(error).split())
        raise TablesError(
            f"{which} of the Delta table {path} cannot be read, so run the pipeline again if it is "
            f"gone: {why}"
        ) from error


def on_disk(folder: Folder) -> Path:
    """Where Delta's own files may be. Raises TablesError for an object store."""
    if isinstance(folder, Path):
        return folder
    raise TablesError(
        f"{folder} cannot have Delta tables, which are kept in a directory: --format parquet"
    )


def require() -> None:
    """Raises TablesError where delta-rs is not installed."""
    if find_spec("deltalake") is None:
        raise TablesError(f"deltalake is not installed: {how_to_install('delta')}")
