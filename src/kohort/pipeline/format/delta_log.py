# SPDX-License-Identifier: Apache-2.0
"""The log of a Delta table, as bytes: commits, checkpoints, and what a commit says.

The protocol is https://github.com/delta-io/delta/blob/master/PROTOCOL.md, of which reader version 1
and writer version 2 suffice. Each commit repeats all that is true of the table: its columns and
every file. So the newest one of ours tells all that the next one has to know, and nobody here
replays. Of commits of other engines only one thing counts: which files they have added.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

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


class Remove(_Camel, frozen=True, kw_only=True, omit_defaults=True):
    """A file that no longer counts. One that another engine has added with a deletion vector is
    another file than that of the same path without, and is removed with it.
    """

    path: str
    deletion_timestamp: int
    data_change: bool
    deletion_vector: dict[str, Any] | None = None


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
    """A line of a commit of ours: one of these."""

    commit_info: CommitInfo | None = None
    protocol: Protocol | None = None
    meta_data: Metadata | None = None
    add: Add | None = None
    remove: Remove | None = None


class AddedFile(_Camel, frozen=True, kw_only=True):
    """What tells a file that another engine has added from all others."""

    path: str
    deletion_vector: dict[str, Any] | None = None

    @property
    def key(self) -> tuple[str, bytes]:
        return self.path, msgspec.json.encode(self.deletion_vector)


class _AnyLine(_Camel, frozen=True, kw_only=True):
    """A line of any commit. All but what it is looked through for may be of any shape: the protocol
    leaves `commitInfo` to engines, and lets them write actions and fields that are newer than us.
    """

    commit_info: msgspec.Raw = msgspec.Raw(b"null")
    add: msgspec.Raw = msgspec.Raw(b"null")


class _Info(_Camel, frozen=True, kw_only=True):
    engine_info: msgspec.Raw = msgspec.Raw(b"null")


class Commit(NamedTuple):
    """What a commit says that counts here."""

    metadata: Metadata | None
    """None: it is of another engine."""
    adds: Mapping[str, Add]
    """Path -> file, for one of ours."""
    others: tuple[AddedFile, ...] = ()
    """The files that another engine has added by it."""


class State(NamedTuple):
    """What a version of a table is."""

    version: int
    metadata: Metadata | None
    """As the newest commit of ours has it; None where there is none."""
    adds: Mapping[str, Add]
    """Path -> file, of the newest commit of ours."""
    others: tuple[AddedFile, ...] = ()
    """What other engines have added since, each file once."""
    is_newest: bool = True
    """Whether no other engine has changed the table since that commit."""

    @property
    def is_ours(self) -> bool:
        """Whether the newest commit is ours."""
        return self.metadata is not None and self.is_newest


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
    there = [AddedFile(path=path) for path in known] + list(() if before is None else before.others)
    counts = {AddedFile(path=path).key for path in now.adds}
    gone = {one.key: one for one in there if one.key not in counts}
    removes = (
        Remove(
            path=one.path,
            deletion_timestamp=now_ms,
            data_change=True,
            deletion_vector=one.deletion_vector,
        )
        for _, one in sorted(gone.items())
    )
    actions = [
        Action(commit_info=info),
        *_all_of(now, {path: path not in known for path in now.adds}),
        *(Action(remove=remove) for remove in removes),
    ]
    return b"".join(msgspec.json.encode(action) + b"\n" for action in actions)


def _all_of(state: State, changes: Mapping[str, bool]) -> Iterable[Action]:
    yield Action(protocol=Protocol())
    yield Action(meta_data=state.metadata)
    for path, add in sorted(state.adds.items()):
        yield Action(add=msgspec.structs.replace(add, data_change=changes.get(path, False)))


def commit_of(data: bytes) -> Commit:
    """What a commit says. Raises ValueError where it is none."""
    lines = [line for line in data.splitlines() if line.strip()]
    found = [msgspec.json.decode(line, type=_AnyLine) for line in lines]
    if _ENGINE in [_engine_or_none(line.commit_info) for line in found]:
        actions = [msgspec.json.decode(line, type=Action) for line in lines]
        metadata = next((one.meta_data for one in actions if one.meta_data is not None), None)
        return Commit(metadata, {one.add.path: one.add for one in actions if one.add is not None})
    added = (msgspec.json.decode(line.add, type=AddedFile | None) for line in found)
    return Commit(None, {}, tuple(one for one in added if one is not None))


def _engine_or_none(info: msgspec.Raw) -> object:
    try:
        return msgspec.json.decode(msgspec.json.decode(info, type=_Info).engine_info)
    except ValueError:  # of msgspec, or of text that is no UTF-8
        return None


def state_of(version: int, commits: Sequence[Commit]) -> State:
    """The newest version, from its commit and those before it, newest first, down to one of ours
    where there is one.
    """
    others = {one.key: one for commit in commits for one in commit.others}
    last = commits[-1]
    return State(version, last.metadata, last.adds, (*others.values(),), len(commits) == 1)


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
