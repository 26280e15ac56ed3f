"""The log of a Delta table, as bytes: commits, checkpoints, and what a commit says.

The protocol is https://github.com/delta-io/delta/blob/master/PROTOCOL.md, of which reader version 1
and writer version 2 suffice. Each commit repeats all that is true of the table: its columns and
every file. So the newest one tells all that the next one has to know, and nobody here replays.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

LOG = "_delta_log"
"""The folder of a log, in that of its table."""
LAST_CHECKPOINT = "_last_checkpoint"
CHECKPOINT_EVERY = 10
KEPT_COMMITS = 100
"""So many commits stay before the newest checkpoint, for those who are just reading them."""
_ENGINE = "kohort"
_TYPES = {
    pa.string(): "string",
    pa.binary(): "binary",
    pa.bool_(): "boolean",
    pa.int8(): "byte",
    pa.int16(): "short",
    pa.int32(): "integer",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.date32(): "date",
    pa.timestamp("us", "UTC"): "timestamp",
}


class _Camel(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The protocol's names are in camel case."""


class Add(_Camel, frozen=True, kw_only=True):
    """A file that counts. `path` is relative to the table, and quoted as in a URI."""

    path: str
    partition_values: dict[str, str | None] = {}
    size: int
    modification_time: int
    data_change: bool = True


class Remove(_Camel, frozen=True, kw_only=True):
    """A file that no longer counts."""

    path: str
    deletion_timestamp: int
    data_change: bool = True


class Format(_Camel, frozen=True, kw_only=True):
    """How files are encoded."""

    provider: str = "parquet"
    options: dict[str, str] = {}


class Metadata(_Camel, frozen=True, kw_only=True):
    """What a table is; the id stays."""

    id: str
    format: Format = Format()
    schema_string: str
    partition_columns: tuple[str, ...] = ()
    configuration: dict[str, str] = {}
    created_time: int


class Protocol(_Camel, frozen=True, kw_only=True):
    """What readers and writers must be able to do."""

    min_reader_version: int = 1
    min_writer_version: int = 2


class CommitInfo(_Camel, frozen=True, kw_only=True):
    """Who has committed, when, and which manifest the table is of."""

    timestamp: int
    operation: str = "WRITE"
    engine_info: str = ""
    manifest: int | None = None


class Action(_Camel, frozen=True, kw_only=True, omit_defaults=True):
    """A line of a commit: one of these. Others, of other engines, are not looked at."""

    commit_info: CommitInfo | None = None
    protocol: Protocol | None = None
    meta_data: Metadata | None = None
    add: Add | None = None
    remove: Remove | None = None


class State(NamedTuple):
    """What a version of a table is. `is_ours` is false where another engine has changed it."""

    version: int
    metadata: Metadata
    adds: Mapping[str, Add]
    """Path -> file. Of a version that is not ours: at least those that count."""
    is_ours: bool = True


def schema_text(schema: pa.Schema) -> str:
    """The columns of a table in the words of Delta."""
    return msgspec.json.encode(_of_type(pa.struct(list(schema)))).decode()


def _of_type(kind: pa.DataType) -> object:
    if pa.types.is_struct(kind):
        return {
            "type": "struct",
            "fields": [
                {"name": field.name, "type": _of_type(field.type), "nullable": True, "metadata": {}}
                for field in kind
            ],
        }
    if pa.types.is_list(kind):
        inside = _of_type(kind.value_type)
        return {"type": "array", "elementType": inside, "containsNull": True}
    return _TYPES[kind]


def commit(before: State | None, now: State, manifest: int, now_ms: int) -> bytes:
    """The commit that makes `now` of what was before."""
    known = {} if before is None else before.adds
    info = CommitInfo(timestamp=now_ms, engine_info=_ENGINE, manifest=manifest)
    gone = (Remove(path=path, deletion_timestamp=now_ms) for path in known.keys() - now.adds.keys())
    actions = [
        Action(commit_info=info),
        *_all_of(now, {path: path not in known for path in now.adds}),
        *(Action(remove=remove) for remove in sorted(gone, key=lambda remove: remove.path)),
    ]
    return b"".join(msgspec.json.encode(action) + b"\n" for action in actions)


def _all_of(state: State, changes: Mapping[str, bool]) -> Iterable[Action]:
    yield Action(protocol=Protocol())
    yield Action(meta_data=state.metadata)
    for path, add in sorted(state.adds.items()):
        yield Action(add=msgspec.structs.replace(add, data_change=changes.get(path, False)))


def actions_of(data: bytes) -> list[Action]:
    """The lines of a commit. Raises msgspec.DecodeError."""
    return [msgspec.json.decode(line, type=Action) for line in data.splitlines() if line.strip()]


def is_ours(actions: Iterable[Action]) -> bool:
    """Whether it is a commit that says all that is true of its table."""
    infos = [action.commit_info for action in actions if action.commit_info is not None]
    return any(info.engine_info == _ENGINE for info in infos)


def state_of(version: int, commits: Iterable[list[Action]]) -> State | None:
    """The newest version, from its commit and those before it down to one of ours, newest first.
    None where none tells what the table is.
    """
    newest_first = list(commits)
    metadata: Metadata | None = None
    adds: dict[str, Add] = {}
    for actions in newest_first:
        for action in actions:
            if action.add is not None:
                adds.setdefault(action.add.path, action.add)
            if action.meta_data is not None and metadata is None:
                metadata = action.meta_data
    if metadata is None:
        return None
    return State(version, metadata, adds, is_ours(newest_first[0]))


def checkpoint(state: State) -> tuple[bytes, bytes]:
    """A checkpoint of a version, and the file that points to it."""
    actions = [msgspec.to_builtins(action) for action in _all_of(state, {})]
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(actions, schema=_CHECKPOINT), sink)
    pointer = msgspec.json.encode({"version": state.version, "size": len(actions)})
    return sink.getvalue().to_pybytes(), pointer


_VALUES = pa.map_(pa.string(), pa.string())
_CHECKPOINT = pa.schema(
    {
        "protocol": pa.struct({"minReaderVersion": pa.int32(), "minWriterVersion": pa.int32()}),
        "metaData": pa.struct(
            {
                "id": pa.string(),
                "format": pa.struct({"provider": pa.string(), "options": _VALUES}),
                "schemaString": pa.string(),
                "partitionColumns": pa.list_(pa.string()),
                "configuration": _VALUES,
                "createdTime": pa.int64(),
            }
        ),
        "add": pa.struct(
            {
                "path": pa.string(),
                "partitionValues": _VALUES,
                "size": pa.int64(),
                "modificationTime": pa.int64(),
                "dataChange": pa.bool_(),
            }
        ),
    }
)
