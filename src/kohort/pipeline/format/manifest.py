# SPDX-License-Identifier: Apache-2.0
"""What a place of tables holds: one small file, replaced as a whole, that all readers go by.

A table's files count only when the manifest names them. So a writer writes files that nobody
knows, makes them durable, and flips every table at once with one step of its store: a rename in a
directory and on HDFS, a conditional put in a bucket. What a crashed writer left behind is named
nowhere, and the next one removes it. Files that a flip makes superfluous stay for a while, because
somebody may be reading them.

    DIR/manifest.json   DIR/.lock   DIR/rows/…   DIR/end_offsets/…   DIR/gold/<table>/…
    DIR/histories/…   DIR/progress/…   DIR/past/<table>/…   DIR/server_logs/…
"""

import json
from collections.abc import Iterable, Iterator

import msgspec

from kohort.errors import KohortError
from kohort.pipeline.sources.log_position import Identity, Note, Position, Settings
from kohort.pipeline.stores import layout
from kohort.pipeline.stores.layout import MANIFEST, ROWS
from kohort.pipeline.stores.object_path import Files, ObjectPath
from kohort.pipeline.stores.places import Folder
from kohort.pipeline.stores.store import store_of

SCHEMA_VERSION = 2
_READABLE = (1, 2)
"""Version 2 has the observed history, the lines of brokers' logs, and samples that stand for
others. Kohort 0.1.0 does not know these, so it must refuse: it would drop them, or take the samples
for exact. What was built from the sources between the releases reads it, and does not know all of
that.
"""
DAY_MS = 86_400_000


class TablesError(KohortError):
    """A directory of tables that cannot be used; the text is one sentence that says what to do."""

    directory: Folder | None = None
    """The directory that the error is about, where several were asked."""


class Increment(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Decoded rows that were added together."""

    name: str
    ranges: dict[int, tuple[int, int]]
    """Partition of the log -> first offset that was read and the offset after the last."""
    counts: dict[str, int]
    """Table of silver -> its rows in this increment, before any cut."""
    oldest_ms: int | None = None
    newest_ms: int | None = None
    cuts: dict[int, int] = msgspec.field(default_factory=dict)
    """Partition -> offset from which on the rows of this increment no longer count: the log was cut
    there, and its offsets were used again. `ingest.merge_and_expire` rewrites it without them.
    """
    compacted: bool = False
    """The history was dropped as too old: only the rows that tell the state of groups are left."""
    planned: bool = False
    """Whether the ranges are what was planned, so that nothing is between them and their
    neighbours. False where they are only what the rows cover.
    """

    @property
    def rows(self) -> int:
        """How many rows its files hold."""
        return sum(self.counts.values())


class Part(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Some of the rows of a table that is not made of increments."""

    path: str
    rows: int
    partitions: tuple[int, ...] | None = None
    """Partitions of the log whose rows in here count; None for all, as in whatever is written now.
    Kohort 0.1 left files as they were and named what still counted in them.
    """
    is_open: bool = False
    """Its rows may still change: the next run replaces them."""
    step_us: int = 0
    """The step to which its samples of ends are downsampled (see `rollup.sample_rollup`)."""


class Gold(msgspec.Struct, frozen=True, kw_only=True):
    """A table of gold."""

    columns: str
    """The columns that it was written with, as text: where these have changed it is recomputed."""
    parts: tuple[Part, ...]


class HistoriesState(msgspec.Struct, frozen=True, kw_only=True):
    """What the histories of groups go on from, and what else they depend on. Where that has
    changed, they are recomputed (see `format.refresh_plan`).
    """

    code: str
    """Which Kohort has replayed them (see `format.code`); empty for unknown."""
    session_timeout_ms: int | None
    fed: dict[int, int]
    """Partition of the log -> the offset up to which its groups know it."""
    complete: dict[int, tuple[int | None, int | None]]
    """Partition of the log -> from which offset and time on nothing is missing, in microseconds."""
    states: tuple[Part, ...] = ()
    names: Part | None = None
    """The names of topics as they were known."""
    server_logs: tuple[str, ...] = ()
    """Paths of the parts of server logs that they know."""

    def with_(self, **changes: object) -> "HistoriesState":
        """A copy with other values."""
        return msgspec.structs.replace(self, **changes)


class ProgressState(msgspec.Struct, frozen=True, kw_only=True):
    """What the tables of commits, lag and states of groups go on from (see `tables.progress`)."""

    code: str
    """Which Kohort has written it (see `format.code`); empty for unknown."""
    fed: dict[int, int]
    """Partition of the log -> the offset up to which the tables know it."""
    extents: dict[int, tuple[int, int, int | None, int | None]]
    """Partition of the log -> how far its rows reach (see
    `gold.completeness.CompletenessWatermark`).
    """
    held_back: dict[int, int]
    """Partition -> the time of the last commit that a transaction held back until its log was
    complete, in microseconds (see `gold.rates`)."""
    rated: dict[int, int] = msgspec.field(default_factory=dict)
    """Partition -> the time of its newest commit in `commit_rates` that is not after the moment of
    the run, in microseconds. It says how old the others are.
    """
    open_from: dict[int, int]
    """Partition -> offset of the first commit whose transaction has not ended."""
    newest: tuple[Part, ...]
    """`gold.newest.NEWEST`."""
    records: tuple[Part, ...]
    """`gold.newest.RECORDS`."""
    names: Part
    """The names of topics as far as anything tells them (see `tables.topic_names`)."""
    exact_us: int | None
    """`newest` tells what held at any moment from this one on; None: at any moment."""
    newest_us: int | None
    """The latest time at which something in `newest` took effect."""
    moments: tuple[int, ...]
    """The moments that have rows in `lag`."""
    samples: tuple[str, ...]
    """Paths of the parts of end offsets that these rows know."""

    @property
    def parts(self) -> tuple[Part, ...]:
        """All its files."""
        return (*self.newest, *self.records, self.names)


class HistoryChunk(msgspec.Struct, frozen=True, kw_only=True):
    """Some of the rows of `lag_history`, all of one step (see `rollup.lag_history`)."""

    part: Part
    step_us: int
    first_us: int
    """The first moment that its rows are about, in microseconds."""
    last_us: int


class ObservedHistory(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What runs have seen. Nobody can compute it again: it outlives the code, and gold."""

    lag: tuple[HistoryChunk, ...] = ()
    status: tuple[Part, ...] = ()
    as_of_us: int | None = None
    """The moment of the last run that was added."""
    samples_us: int | None = None
    """The time of the last sample that was known then."""

    def parts(self, table: str) -> tuple[Part, ...]:
        """The files of `lag_history` or of `status_history`."""
        return self.status if table == "status_history" else tuple(chunk.part for chunk in self.lag)


class RetiredFiles(msgspec.Struct, frozen=True):
    """Files that no longer count, and since when."""

    path: str
    since_ms: int


class RunArguments(msgspec.Struct, frozen=True, kw_only=True):
    """The arguments of a run, as far as its tables depend on them."""

    source: str
    from_us: int | None = None
    to_us: int | None = None
    as_of_us: int | None = None
    """None: the moment at which reading was planned."""
    retention_ms: int | None = None
    session_timeout_ms: int | None = None
    keep_days: float | None = None
    cluster: str | None = None


class Basis(msgspec.Struct, frozen=True, kw_only=True):
    """What the tables were made of, and by whom. Where all of it is the same, so are the tables."""

    log: str
    """What there was to read (see `sources.fingerprint`)."""
    asked: RunArguments
    code: str
    """Which Kohort has made them (see `format.code`)."""
    files: str
    """What the files look like that hold the tables."""


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a directory of tables holds, at one moment."""

    schema_version: int = SCHEMA_VERSION
    number: int = 0
    """How many manifests there were before."""
    written_ms: int = 0
    source: str = ""
    identity: Identity = Identity()
    cluster: str | None = None
    """The name that somebody gave the cluster."""
    positions: dict[int, Position] = msgspec.field(default_factory=dict)
    begins: dict[int, int] = msgspec.field(default_factory=dict)
    """Partition -> offset before which nothing is read: the first run was told when to begin."""
    source_files: tuple[str, ...] = ()
    """Fingerprints of the files of the source that were read: what is in them is known."""
    increments: tuple[Increment, ...] = ()
    added: dict[str, int] = msgspec.field(default_factory=dict)
    """Table of silver -> rows that were ever added to it."""
    end_offsets: tuple[Part, ...] = ()
    server_log: tuple[Part, ...] = ()
    """What brokers have said in their log files (see `format.server_logs`)."""
    gold: dict[str, Gold] = msgspec.field(default_factory=dict)
    histories: HistoriesState | None = None
    """None: they are replayed as a whole."""
    progress: ProgressState | None = None
    """None: all of it is computed from all rows."""
    past: ObservedHistory = ObservedHistory()
    code: str | None = None
    """What gold was computed by (see `format.code`); another Kohort recomputes all of it."""
    as_of_ms: int | None = None
    """The moment for which gold was computed."""
    settings: Settings = Settings()
    """The settings of the cluster as they were known when gold was computed."""
    notes: tuple[Note, ...] = ()
    """The newest that there were."""
    noted: int = 0
    """How many were added since this is counted, with those that are forgotten."""
    retired: tuple[RetiredFiles, ...] = ()
    files: Files = msgspec.field(default_factory=dict)
    """On an object store, the files of every path here: nothing is listed to read tables."""
    fence: str = ""
    """Set by a writer that has taken over from a silent one: a flip of that one is then refused."""
    basis: Basis | None = None
    """None where the next run has to look at everything. A later flip drops it unless it says it
    again.
    """

    def paths(self) -> Iterator[str]:
        """Every directory of Parquet files that count, relative to the directory of tables."""
        yield from (f"{ROWS}/{increment.name}" for increment in self.increments)
        gold = (part for table in self.gold.values() for part in table.parts)
        history = (*self.past.parts("lag_history"), *self.past.status)
        for part in (*self.end_offsets, *self.server_log, *gold, *self._states(), *history):
            yield part.path

    def _states(self) -> Iterator[Part]:
        if self.histories is not None:
            yield from self.histories.states
            if self.histories.names is not None:
                yield self.histories.names
        if self.progress is not None:
            yield from self.progress.parts

    def gold_rows(self) -> dict[str, int]:
        """How many rows the files of each table of gold hold."""
        return {name: sum(part.rows for part in table.parts) for name, table in self.gold.items()}

    def with_(self, **changes: object) -> "Manifest":
        """A copy with other values."""
        return msgspec.structs.replace(self, **changes)

    def notes_with(self, more: Iterable[Note]) -> tuple[Note, ...]:
        """The notes and more of them; what every run sees again is there once."""
        return (*self.notes, *(note for note in more if note not in self.notes))


def load(directory: Folder) -> Manifest:
    """What a directory of tables holds now. Raises TablesError where there are no tables."""
    found = load_or_none(directory)
    if found is None:
        what = "holds no tables" if directory.is_dir() else "does not exist"
        raise TablesError(
            f"{directory} {what}: write some with `kohort pipeline run --source … --out "
            f"{directory}`"
        )
    return found


def load_or_none(directory: Folder) -> Manifest | None:
    """The same, and None where there are no tables yet."""
    try:
        data, _ = store_of(directory).read()
    except NotADirectoryError:
        return None
    except OSError as error:
        raise TablesError(f"{directory / MANIFEST} cannot be read: {error.strerror}") from error
    if data is None:
        return None
    found = decode(directory, data)
    return found if found.number else None


def decode(directory: Folder, data: bytes) -> Manifest:
    """A manifest from its file. Raises TablesError for what is none, or one that we do not know."""
    path = directory / MANIFEST
    try:
        found_json = json.loads(data)
        version, form = found_json["schema_version"], found_json.get("format", "parquet")
    except (ValueError, KeyError, TypeError) as error:
        raise TablesError(f"{path} is not a manifest of tables: {error!r}") from error
    if version not in _READABLE:
        newer = isinstance(version, int) and version > SCHEMA_VERSION
        what = "update Kohort" if newer else "write the tables anew into another directory"
        raise TablesError(
            f"{directory} has tables of schema version {version}, this Kohort has "
            f"{SCHEMA_VERSION}: {what}"
        )
    if form != "parquet":
        raise TablesError(
            f"{directory} has tables in the format {form}, which Kohort 0.1 has written: write the "
            "tables anew into another directory, where each has a Delta log"
        )
    try:
        found = msgspec.json.decode(data, type=Manifest)
    except ValueError as error:
        raise TablesError(f"{path} is not a manifest of tables: {error}") from error
    for folder in (*found.paths(), *(retired.path for retired in found.retired)):
        if not layout.is_within(folder):  # a run removes what it has replaced
            raise TablesError(
                f"{path} is not a manifest of tables: {folder!r} is no folder of rows in here"
            )
    if isinstance(directory, ObjectPath):
        directory.root.know(found.files)
    return found


MOST_PARTS = 10
"""So many small parts become one."""
FEW_ROWS = 200_000
"""A part with fewer rows is small."""


def to_join(parts: Iterable[Part], most: int = MOST_PARTS) -> list[Part]:
    """Small parts that should become one; none where they are fewer than `most`."""
    small = [part for part in parts if part.rows < FEW_ROWS]
    return small if len(small) >= most else []
