# SPDX-License-Identifier: Apache-2.0
"""The tables of the pipeline for programs that are not Spark's: as Arrow, or by SQL of DuckDB.

    lag = kohort.tables.read("tables", "lag", columns=["topic", "lag_records"], group="billing")

What is read is always of one moment, also while a run writes. Needs the extra `kohort[tables]`,
and no Java; `sql` needs `kohort[sql]`.
"""

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from kohort.errors import KohortError, how_to_install

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.compute as pc

    from kohort.tables.judging import Verdict
    from kohort.tables.snapshots import Snapshot, Snapshots
    from kohort.tables.thresholds import Rules

Directories = str | Path | Iterable[str | Path]
"""A directory of tables, or one for each of several clusters."""
TRIES = 3
Answer = TypeVar("Answer")


def snapshot(directory: str | Path) -> "Snapshot":
    """All tables of a directory as they are now: what is read of them is of one moment.

    Their files stay for a quarter of an hour after a run has replaced them; later `read` and `scan`
    raise GoneError. Raises KohortError: there are no tables.
    """
    require("pyarrow", "tables")
    from kohort.tables.snapshots import Snapshot  # noqa: PLC0415  (what is not used is not imported)

    return Snapshot(directory)


def names(directory: Directories) -> list[str]:
    """The names of the tables that a directory holds, or all of several. Raises KohortError."""
    return _snapshots(directory).names


def read(
    directory: Directories,
    name: str,
    *,
    columns: Sequence[str] | None = None,
    group: str | Iterable[str] | None = None,
    where: "pc.Expression | None" = None,
) -> "pa.Table":
    """A table as it is now, in memory: `.to_pandas()`, or `polars.from_arrow` of it.

    Of several directories, one for each cluster, it has the rows of all; the column `cluster`, the
    last of every table, tells them apart. `columns` are some of its columns, `group` one group or
    several, `where` an expression of pyarrow over any columns but `cluster`. Raises KohortError:
    there is no such table, column or group, or several directories are not of several clusters.
    """
    places = _kept(directory)
    groups = group if group is None or isinstance(group, str) else list(group)
    return anew(
        lambda: scan(places, name, columns=columns, group=groups, where=where).read_all(),
    )


def scan(
    directory: Directories,
    name: str,
    *,
    columns: Sequence[str] | None = None,
    group: str | Iterable[str] | None = None,
    where: "pc.Expression | None" = None,
) -> "pa.RecordBatchReader":
    """The same for what is too large for memory: some thousand rows at a time, once.

    DuckDB, Polars and pandas take such a reader. It is of the moment of the call; a GoneError
    while it is read says that it took so long that later tables have taken its place.
    """
    return _snapshots(directory).scan(name, columns=columns, group=group, where=where)


def sql(directory: Directories, query: str, *, limit: int | None = None) -> "pa.Table":
    """What a SELECT in DuckDB's SQL answers; every table of the directory, or of several as `read`
    has them, is a view. With `limit`, its first rows only.

    Raises KohortError: the query is wrong, or is none that only reads.
    """
    require("pyarrow", "sql")
    require("duckdb", "sql")
    from kohort.tables.duck import Session  # noqa: PLC0415  (what is not used is not imported)

    places = _kept(directory)

    def ask() -> "pa.Table":
        with Session(_snapshots(places)) as session:
            return session.ask(query, limit).read_all()

    return anew(ask)


def check(
    directory: Directories,
    rules: "Rules | str | Path | None" = None,
    *,
    group: str | Iterable[str] = (),
) -> "Verdict":
    """What is not well, by rules or a TOML file of rules (see docs/operations.md).

    Its `state` is OK, WARNING, CRITICAL or UNKNOWN, its `findings` say why. Of several directories,
    one for each cluster, each finding has its `cluster`, and one that cannot be read is a finding
    as well. Raises KohortError: there are no tables, no such group, or the rules are none.
    """
    require("pyarrow", "tables")
    from kohort.tables.judging import judge_all  # noqa: PLC0415  (what is not used is not imported)
    from kohort.tables.thresholds import Rules, load  # noqa: PLC0415

    chosen = rules if isinstance(rules, Rules) else load(Path(rules)) if rules else Rules()
    groups = [group] if isinstance(group, str) else list(group)
    several = [directory] if isinstance(directory, str | Path) else list(directory)
    return judge_all(several, snapshot, chosen, datetime.now(UTC), groups)


def _snapshots(directory: Directories) -> "Snapshots":
    require("pyarrow", "tables")
    from kohort.tables.snapshots import Snapshots  # noqa: PLC0415  (what is not used is not imported)

    kept = _kept(directory)
    several = kept if isinstance(kept, list) else [kept]
    return Snapshots([snapshot(place) for place in several])


def _kept(directory: Directories) -> str | Path | list[str | Path]:
    """The directories in a form that can be gone through again."""
    return directory if isinstance(directory, str | Path) else list(directory)


def anew(ask: Callable[[], Answer]) -> Answer:
    """Ask, and again where files went meanwhile: a run has replaced the tables."""
    from kohort.pipeline.format.arrow_reader import GoneError  # noqa: PLC0415  (as above)

    for _ in range(TRIES - 1):
        try:
            return ask()
        except GoneError:
            continue
    return ask()


def require(module: str, extra: str) -> None:
    """Raises KohortError, which names the extra, where a library is not installed."""
    if find_spec(module) is None:
        raise KohortError(f"{module} is not installed: {how_to_install(extra)}")


__all__ = ["check", "names", "read", "scan", "snapshot", "sql"]
