"""What a directory of tables holds: one small file, replaced as a whole, that all readers go by.

A table's files count only when the manifest names them. So a writer writes files that nobody
knows, makes them durable, and flips every table at once with one rename; what a crashed writer left
behind is named nowhere, and the next one removes it. Files that a flip makes superfluous stay for
a while, because somebody may be reading them.

    DIR/manifest.json   DIR/.lock   DIR/rows/…   DIR/end_offsets/…   DIR/gold/<table>/…
    DIR/histories/…   DIR/progress/…   DIR/past/<table>/…   DIR/server_logs/…
"""

import contextlib
import fcntl
import json
import os
import secrets
import shutil
import socket
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from kohort.errors import KohortError
from kohort.spark.sources.standing import Identity, Note, Position, Settings
from kohort.storage.files import DiskFiles, replace_whole

SCHEMA_VERSION = 1
MANIFEST = "manifest.json"
LOCK = ".lock"
ROWS, END, GOLD, CHECKPOINTS = "rows", "end_offsets", "gold", "checkpoints"
HISTORIES, PROGRESS, PAST, SERVER_LOGS = "histories", "progress", "past", "server_logs"
GRACE_MS = 15 * 60 * 1000
MOST_NOTES = 1000
DAY_MS = 86_400_000

_FILES = DiskFiles()


class TablesError(KohortError):
    """A directory of tables that cannot be used; the text is one sentence that says what to do."""


class BusyError(TablesError):
    """Somebody else is writing the tables."""


class Increment(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Decoded rows that were added together."""

    name: str
    ranges: dict[int, tuple[int, int]]
    """Partition of the log -> first offset that was read and the offset after the last."""
    counts: dict[str, int]
    """Table of silver -> its rows in here, before any cut."""
    oldest_ms: int | None = None
    newest_ms: int | None = None
    cuts: dict[int, int] = msgspec.field(default_factory=dict)
    """Partition -> offset from which on the rows in here no longer count: the log was cut there,
    and its offsets used again."""
    compacted: bool = False
    """Only what tells the state of groups is left: their history was dropped as too old."""
    planned: bool = False
    """The ranges are what was planned, so that nothing is between them and their neighbours. False
    where they are only what the rows cover."""

    @property
    def rows(self) -> int:
        """How many rows its files hold."""
        return sum(self.counts.values())


class Part(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Some of the rows of a table that is not made of increments."""

    path: str
    rows: int
    partitions: tuple[int, ...] | None = None
    """Partitions of the log whose rows in here count; None for all."""
    version: int | None = None
    """The version of a Delta table."""
    is_open: bool = False
    """Its rows may still change: the next run replaces them."""


class Gold(msgspec.Struct, frozen=True, kw_only=True):
    """A table of gold."""

    columns: str
    """The columns it was written with, as text: where they have changed it is computed anew."""
    parts: tuple[Part, ...]


class Histories(msgspec.Struct, frozen=True, kw_only=True):
    """What the histories of groups go on from, and what else they depend on: where that is another
    they begin anew.
    """

    code: str
    """Which Kohort has replayed them (see `tables.code`); empty for unknown."""
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

    def with_(self, **changes: object) -> "Histories":
        """A copy with other values."""
        return msgspec.structs.replace(self, **changes)


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """What the tables of commits, lag and states of groups go on from (see `tables.progress`)."""

    code: str
    """Which Kohort has written it (see `tables.code`); empty for unknown."""
    fed: dict[int, int]
    """Partition of the log -> the offset up to which the tables know it."""
    extents: dict[int, tuple[int, int, int | None, int | None]]
    """Partition of the log -> how far its rows reach (see `gold.completeness.Reach`)."""
    held_back: dict[int, int]
    """Partition -> the time of the last commit that a transaction held back until its log was
    complete, in microseconds (see `gold.commits.commit_rates`)."""
    open_from: dict[int, int]
    """Partition -> offset of the first commit whose transaction has not ended."""
    newest: tuple[Part, ...]
    """`gold.newest.NEWEST`."""
    records: tuple[Part, ...]
    """`gold.newest.RECORDS`."""
    names: Part
    """What the names of topics are, as anybody has told (see `tables.told_names`)."""
    exact_us: int | None
    """`newest` tells what held at any moment from this one on; None for every moment."""
    newest_us: int | None
    """The latest time at which something in it took effect."""
    moments: tuple[int, ...]
    """The moments of which `lag` has rows."""
    samples: tuple[str, ...]
    """Paths of the parts of end offsets that these rows know."""

    @property
    def parts(self) -> tuple[Part, ...]:
        """All its files."""
        return (*self.newest, *self.records, self.names)


class Stretch(msgspec.Struct, frozen=True, kw_only=True):
    """Some of the rows of `lag_history`, all of one step (see `tables.thinning`)."""

    part: Part
    step_us: int
    first_us: int
    """The first moment that its rows are about, in microseconds."""
    last_us: int


class Past(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What runs have seen. Nobody can compute it again: it outlives the code, and gold."""

    lag: tuple[Stretch, ...] = ()
    status: tuple[Part, ...] = ()
    as_of_us: int | None = None
    """The moment of the last run that was added."""
    samples_us: int | None = None
    """The time of the last sample that was known then."""

    def parts(self, table: str) -> tuple[Part, ...]:
        """The files of `lag_history` or of `status_history`."""
        return self.status if table == "status_history" else tuple(one.part for one in self.lag)


class Retired(msgspec.Struct, frozen=True):
    """Files that no longer count, and since when."""

    path: str
    since_ms: int


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What a run was told, as far as its tables depend on it."""

    source: str
    format: str = "parquet"
    from_us: int | None = None
    to_us: int | None = None
    as_of_us: int | None = None
    """None: the moment at which reading was planned."""
    retention_ms: int | None = None
    session_timeout_ms: int | None = None
    keep_days: float | None = None
    cluster: str | None = None


class Basis(msgspec.Struct, frozen=True, kw_only=True):
    """What the tables were made of, and by whom: where all of it is as it was, so are they."""

    log: str
    """What there was to read (see `sources.fingerprint`)."""
    asked: Asked
    code: str
    """Which Kohort has made them (see `tables.code`)."""
    files: str
    """What the files look like that hold them."""


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a directory of tables holds, at one moment."""

    schema_version: int = SCHEMA_VERSION
    number: int = 0
    """How many manifests there were before."""
    format: str = "parquet"
    written_ms: int = 0
    source: str = ""
    identity: Identity = Identity()
    cluster: str | None = None
    """What somebody calls it."""
    positions: dict[int, Position] = msgspec.field(default_factory=dict)
    begins: dict[int, int] = msgspec.field(default_factory=dict)
    """Partition -> offset before which nothing is read: the first run was told when to begin."""
    increments: tuple[Increment, ...] = ()
    added: dict[str, int] = msgspec.field(default_factory=dict)
    """Table of silver -> rows that were ever added to it."""
    rows_version: int | None = None
    end_offsets: tuple[Part, ...] = ()
    server_log: tuple[Part, ...] = ()
    """What brokers have said in their log files (see `tables.server_logs`)."""
    gold: dict[str, Gold] = msgspec.field(default_factory=dict)
    histories: Histories | None = None
    """None: they are replayed as a whole."""
    progress: Progress | None = None
    """None: all of it is computed from all rows."""
    past: Past = Past()
    code: str | None = None
    """What gold was computed by (see `tables.code`); another Kohort computes all of it anew."""
    as_of_ms: int | None = None
    """The moment for which gold was computed."""
    settings: Settings = Settings()
    """As they were known when gold was computed."""
    notes: tuple[Note, ...] = ()
    retired: tuple[Retired, ...] = ()
    basis: Basis | None = None
    """None where the next run has to look at everything. Lost with the next flip, whatever it is
    for, unless that says it anew."""

    def paths(self) -> Iterator[str]:
        """Every directory of Parquet files that count, relative to the directory of tables."""
        if self.format == "parquet":
            yield from (f"{ROWS}/{one.name}" for one in self.increments)
        gold = (one for it in self.gold.values() for one in it.parts)
        past = (*self.past.parts("lag_history"), *self.past.status)
        for part in (*self.end_offsets, *self.server_log, *gold, *self._states(), *past):
            if part.version is None:
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
        return {name: sum(one.rows for one in table.parts) for name, table in self.gold.items()}

    def with_(self, **changes: object) -> "Manifest":
        """A copy with other values."""
        return msgspec.structs.replace(self, **changes)


def local(directory: str | Path) -> Path:
    """The directory, in full. Raises TablesError for a URI: `s3a://bucket/x` would be a folder of a
    strange name.
    """
    scheme, colon, _ = str(directory).partition(":")
    if colon and scheme.isascii() and scheme[:1].isalpha() and "/" not in scheme:
        raise TablesError(
            f"tables are kept in a directory of this machine, expected a path and not {scheme}:… "
            "(of a directory with a colon in its name: the whole path)"
        )
    return Path(directory).resolve()


def load(directory: Path) -> Manifest:
    """What a directory of tables holds now. Raises TablesError where there are no tables."""
    found = load_or_none(directory)
    if found is None:
        what = "holds no tables" if directory.is_dir() else "does not exist"
        raise TablesError(
            f"{directory} {what}: write some with `kohort pipeline run --source … --out "
            f"{directory}`"
        )
    return found


def load_or_none(directory: Path) -> Manifest | None:
    """The same, and None where there are no tables yet."""
    path = directory / MANIFEST
    try:
        data = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise TablesError(f"{path} cannot be read: {error.strerror}") from error
    try:
        version = json.loads(data)["schema_version"]
    except (ValueError, KeyError, TypeError) as error:
        raise TablesError(f"{path} is not a manifest of tables: {error!r}") from error
    if version != SCHEMA_VERSION:
        newer = isinstance(version, int) and version > SCHEMA_VERSION
        what = "update Kohort" if newer else "write the tables anew into another directory"
        raise TablesError(
            f"{directory} has tables of schema version {version}, this Kohort has "
            f"{SCHEMA_VERSION}: {what}"
        )
    try:
        return msgspec.json.decode(data, type=Manifest)
    except msgspec.ValidationError as error:
        raise TablesError(f"{path} is not a manifest of tables: {error}") from error


class Writer:
    """The one that may write into a directory of tables, for as long as the block lasts."""

    def __init__(self, directory: Path, *, locked: bool = True) -> None:
        """Make the directory if need be, lock it, and remove what crashed writers left behind.

        `locked=False` is for a process that acts for the holder of the lock. Raises TablesError:
        somebody else writes, or the directory cannot be written.
        """
        self.directory = local(directory)
        self._lock: int | None = None
        self._closed = False
        self._token = secrets.token_hex(4)
        self._names = 0
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            if locked:
                self._lock = _lock(self.directory / LOCK)
            self.manifest = load_or_none(self.directory) or Manifest()
            if locked:
                self._tidy()
        except OSError as error:
            self.close()
            raise TablesError(f"{directory} cannot be written: {error.strerror}") from error
        except TablesError:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let others write."""
        self._closed = True
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def new_name(self, what: str) -> str:
        """A name that no earlier attempt had: its tasks may still be writing somewhere."""
        self._names += 1
        return f"{what}{self.manifest.number + 1:06}-{self._token}-{self._names}"

    def publish(self, manifest: Manifest, basis: Basis | None = None) -> None:
        """Flip every table at once. Whatever the new manifest names is made durable first."""
        if self._closed:
            raise TablesError(f"{self.directory} is not written any more: its writer has ended")
        there = load_or_none(self.directory) or Manifest()
        if there.number != self.manifest.number:  # a lock ends with its process, its tasks may not
            raise TablesError(
                f"{self.directory} was written by somebody else meanwhile: manifest "
                f"{there.number} is there, expected {self.manifest.number}"
            )
        now_ms = time.time_ns() // 1_000_000
        known = set(self.manifest.paths())
        for path in manifest.paths():
            if path not in known:
                _make_durable(self.directory / path)
        if manifest.format == "delta":
            since = _changed_ns(self.directory / MANIFEST) if there.number else 0
            for name in (ROWS, GOLD):
                _sync_all(self.directory / name, since)
        paths = set(manifest.paths())
        retired = (
            *(one for one in self.manifest.retired if one.path not in paths),
            *(Retired(path, now_ms) for path in sorted(known - paths)),
        )
        kept = tuple(one for one in retired if one.since_ms > now_ms - GRACE_MS)
        following = manifest.with_(
            number=self.manifest.number + 1,
            written_ms=now_ms,
            notes=manifest.notes[-MOST_NOTES:],
            retired=kept,
            basis=basis,
        )
        for name in {path.partition("/")[0] for path in paths}:
            _FILES.sync_directory(str(self.directory / name))
        data = msgspec.json.format(msgspec.json.encode(following), indent=1)
        replace_whole(_FILES, str(self.directory), MANIFEST, data)
        self.manifest = following
        for one in set(retired) - set(kept):
            _remove(self.directory / one.path)

    def _tidy(self) -> None:
        """Remove what no manifest names: a crashed writer left it."""
        named = {*self.manifest.paths(), *(one.path for one in self.manifest.retired)}
        for path in _candidates(self.directory, deltas=self.manifest.format == "delta"):
            if str(path.relative_to(self.directory)) not in named:
                _remove(path)


def claim(writer: Writer, out: str | Path, identity: Identity) -> None:
    """Say whose the tables are. Raises TablesError when they are somebody else's."""
    before = writer.manifest.identity
    if not before.matches(identity):
        raise TablesError(_differs(out, before, identity))
    known = (new or old for old, new in zip(before, identity, strict=True))
    writer.manifest = writer.manifest.with_(identity=Identity(*known))


def _differs(out: str | Path, before: Identity, now: Identity) -> str:
    if before.cluster_id and now.cluster_id and before.cluster_id != now.cluster_id:
        what = f"of cluster {before.cluster_id}, and this log is of cluster {now.cluster_id}"
    else:
        what = (
            f"of a log with topic id {before.topic_id}, and this one was created anew with "
            f"{now.topic_id}"
        )
    return f"{out} has the tables {what}: write into another directory"


def _candidates(directory: Path, *, deltas: bool) -> Iterator[Path]:
    """Every directory of rows, of those that count and of those that do not. What is in a Delta
    table its own log knows.
    """
    ours = () if deltas else (directory / ROWS, *_inside(directory / GOLD))
    others = (directory / name for name in (END, CHECKPOINTS, HISTORIES, PROGRESS, SERVER_LOGS))
    for parent in (*others, *ours, *_inside(directory / PAST)):
        yield from _inside(parent)


def _inside(directory: Path) -> Iterable[Path]:
    return sorted(directory.iterdir()) if directory.is_dir() else ()


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _make_durable(path: Path) -> None:
    """Spark does not sync what it writes, and a manifest must not name what a power cut takes."""
    _sync_all(path)
    _FILES.sync_directory(str(path.parent))


def _sync_all(path: Path, since_ns: int = 0) -> None:
    """Sync the files and directories in and below one that have changed since then.

    What changed before the last manifest was made durable with it. What came since did so in all
    of Delta's tables, of a writer that crashed as well: the next commit builds on its own.
    """
    for parent, _, names in os.walk(path):
        for one in (Path(parent), *(Path(parent) / name for name in names)):
            with contextlib.suppress(FileNotFoundError):  # a VACUUM may be taking it
                if _changed_ns(one) >= since_ns:
                    _sync(one)


def _changed_ns(path: Path) -> int:
    """When something was last written there, or renamed to there."""
    return path.stat().st_ctime_ns


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def is_written(lock: Path) -> bool:
    """Whether somebody holds the lock of a directory of tables, so that files come and go."""
    try:
        descriptor = os.open(lock, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _lock(path: Path) -> int:
    """Hold a file, and write into it who does."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.pread(descriptor, 4096, 0).decode(errors="replace").strip()
        os.close(descriptor)
        raise BusyError(
            f"{path.parent} is being written by {holder or 'another process'}: wait for its end, "
            "or write into another directory"
        ) from None
    since = datetime.now(UTC).isoformat(timespec="seconds")
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"pid {os.getpid()} on {socket.gethostname()} since {since}".encode(), 0)
    return descriptor
