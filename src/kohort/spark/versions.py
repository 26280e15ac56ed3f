"""Which files a version of a Delta table has, as its log tells: no Spark is needed to read them.

A commit is a file of JSON, a line for each file that came or went; now and then a checkpoint in
Parquet sums the commits up. That is all of Delta's protocol that our own tables use. Whatever other
engines may have put there besides is refused and not passed over.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import pyarrow.parquet as pq

from kohort.errors import KohortError

LOG = "_delta_log"


class VersionError(KohortError):
    """A version that is gone, or that needs an engine that knows all of Delta."""


class DataFile(NamedTuple):
    """A Parquet file of a table, and the values of the columns that are not in it."""

    path: Path
    values: Mapping[str, str]


def latest(table: Path) -> int | None:
    """The newest version of a Delta table; None when there is no table."""
    commits = [int(one.stem) for one in (table / LOG).glob("*.json") if one.stem.isdigit()]
    return max(commits, default=None)


def files(table: Path, version: int) -> list[DataFile]:
    """The files of a version, in the order of their names. Raises VersionError."""
    begin = max((one for one in _checkpoints(table) if one <= version), default=-1)
    live: dict[str, DataFile] = {}
    for action in _checkpoint(table, begin):
        _follow(action, table, live)
    for number in range(begin + 1, version + 1):
        for action in _commit(table, number):
            _follow(action, table, live)
    return [live[name] for name in sorted(live)]


def written(table: Path, after: int, version: int) -> Iterator[Path]:
    """The files that came with the commits behind one version, up to another and with it: data,
    the commits themselves, and checkpoints. Some may be gone by now.
    """
    for number in range(after + 1, version + 1):
        for path in (table / LOG).glob(f"{number:020}.*"):
            yield path
            if path.suffix == ".json":
                added = (action.get("add") for action in _commit(table, number))
                yield from (table / unquote(one["path"]) for one in added if one)
    yield table / LOG / "_last_checkpoint"


def _follow(action: Mapping[str, Any], table: Path, live: dict[str, DataFile]) -> None:
    if removed := action.get("remove"):
        live.pop(removed["path"], None)
    elif added := action.get("add"):
        if added.get("deletionVector"):
            raise _foreign(table, "deletion vectors")
        path = unquote(added["path"])
        live[added["path"]] = DataFile(table / path, dict(added["partitionValues"]))
    elif described := action.get("metaData"):
        mode = dict(described.get("configuration") or ()).get("delta.columnMapping.mode", "none")
        if mode != "none":
            raise _foreign(table, f"column mapping by {mode}")


def _commit(table: Path, number: int) -> list[dict[str, Any]]:
    try:
        lines = _commit_path(table, number).read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        raise VersionError(
            f"version {number} of the Delta table {table} is not there any more: run the pipeline "
            "again"
        ) from None
    return [json.loads(line) for line in lines if line]


def _commit_path(table: Path, number: int) -> Path:
    return table / LOG / f"{number:020}.json"


def _checkpoints(table: Path) -> Iterator[int]:
    for one in (table / LOG).glob("*.checkpoint.parquet"):
        stem = one.name.partition(".")[0]
        if stem.isdigit():
            yield int(stem)


def _checkpoint(table: Path, number: int) -> Iterable[dict[str, Any]]:
    if number < 0:
        return ()
    path = table / LOG / f"{number:020}.checkpoint.parquet"
    found: list[dict[str, Any]] = pq.read_table(path, columns=["add", "metaData"]).to_pylist()
    return found


def _foreign(table: Path, what: str) -> VersionError:
    return VersionError(
        f"the Delta table {table} has {what}, which another engine put there: read it with "
        "kohort.spark.read"
    )
