# SPDX-License-Identifier: Apache-2.0
"""Where the logs of partitions, and the catalog, are kept: a data directory, or memory."""

from collections.abc import Generator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from kohort.config import BrokerConfig, TopicConfig
from kohort.errors import StorageError, UnsettledError
from kohort.runtime.observers import Observer
from kohort.server.catalog import Copy, Topic
from kohort.storage.compaction import CleaningRules, compact, dirty_ratio
from kohort.storage.directory import LogDirectory
from kohort.storage.files import Files, UnsyncedError, read_whole, replace_whole
from kohort.storage.log import LogConfig, StoredLog
from kohort.storage.memory import MemoryLog
from kohort.storage.open_files import OpenFiles
from kohort.storage.segments import SegmentLog
from kohort.terms import Offset, PartitionIndex

CATALOG_FILE = "kohort.catalog.json"
CATALOG_COPY = CATALOG_FILE + ".former"
_DAMAGED_SUFFIX = ".damaged"
_LEAST_DIRTY = 1e-9  # a log without anything new is not cleaned again, whatever the ratio says

Cleaning = Generator[int, None, None]
"""The steps of a cleaning, each with the bytes it has looked at. It may be closed between two."""


class Logs(Protocol):
    """Opens the log of a partition, and removes it. `place` names the directory. `open_files` has
    the files of logs, if they are files.
    """

    place: str
    open_files: OpenFiles | None

    def open(self, topic: Topic, index: PartitionIndex, config: BrokerConfig) -> StoredLog: ...
    def delete(self, topic: Topic, indexes: Sequence[PartitionIndex]) -> dict[PartitionIndex, str]:
        """Remove logs of a topic that are not in use, for good when this returns. Returns those
        that are still there, and why.
        """

    def sync_names(self) -> None:
        """Make it durable which logs exist. Raises StorageError."""

    def clean(self, log: StoredLog, config: TopicConfig, rules: CleaningRules) -> Cleaning | None:
        """Begin to clean a log, a slice at each step; None when it does not need it. Raises Broken
        for a log that is damaged.
        """

    def note_synced(self, points: Mapping[tuple[str, PartitionIndex], Offset]) -> None:
        """Write down how far logs are durable: before that, nothing is cut. Raises StorageError."""

    def note_starts(self, starts: Mapping[tuple[str, PartitionIndex], Offset]) -> None:
        """Write down where logs begin from now on, all at once. Raises StorageError, and then none
        has moved; or UnsettledError where a restart may find either.
        """

    def close(self, *, clean: bool = False) -> None:
        """Close. `clean` says that every log was synced and closed; this is noted."""


class MemoryLogs:
    """Logs that end with the process."""

    place = "memory"
    open_files: OpenFiles | None = None

    def open(self, topic: Topic, index: PartitionIndex, config: BrokerConfig) -> StoredLog:
        del topic, index, config
        return MemoryLog()

    def delete(self, topic: Topic, indexes: Sequence[PartitionIndex]) -> dict[PartitionIndex, str]:
        """Nothing to do: a log in memory is gone when nothing refers to it."""
        del topic, indexes
        return {}

    def sync_names(self) -> None:
        """Nothing to do: no name is durable in memory."""

    def clean(self, log: StoredLog, config: TopicConfig, rules: CleaningRules) -> Cleaning | None:
        """Memory is not compacted: such a broker does not live long enough to need it."""
        del log, config, rules
        return None

    def note_synced(self, points: Mapping[tuple[str, PartitionIndex], Offset]) -> None:
        """Nothing to do: a log in memory is never opened again."""

    def note_starts(self, starts: Mapping[tuple[str, PartitionIndex], Offset]) -> None:
        """Nothing to do: a log in memory is never opened again."""

    def close(self, *, clean: bool = False) -> None:
        """Memory needs no closing."""


class DirectoryLogs:
    """Logs in the folders of a data directory that this process has locked."""

    def __init__(
        self,
        directory: LogDirectory,
        files: Files,
        observe: Observer,
        producer_ids_below: int = 1 << 63,
    ) -> None:
        self._producer_ids_below = producer_ids_below
        self.place = str(Path(directory.path).absolute())  # clients send it back
        self.open_files: OpenFiles | None = directory.open_files
        self._directory = directory
        self._files = files
        self._observe = observe

    def open(self, topic: Topic, index: PartitionIndex, config: BrokerConfig) -> StoredLog:
        """Raises StorageError when the folder cannot be used, Broken when it is damaged."""
        settings = TopicConfig.of(config, topic.configs)
        cut = LogConfig(
            segment_bytes=settings.segment_bytes,
            segment_ms=settings.segment_ms,
            index_interval_bytes=settings.index_interval_bytes,
            stays_open=topic.is_internal,
            producer_ids_below=self._producer_ids_below,
        )
        log = self._directory.open_log(topic.name, index, topic.topic_id, cut)
        for notice in log.notices:
            self._observe.warning(notice)
        return log

    def delete(self, topic: Topic, indexes: Sequence[PartitionIndex]) -> dict[PartitionIndex, str]:
        return self._directory.delete(topic.name, indexes, topic.topic_id)

    def sync_names(self) -> None:
        self._directory.sync_names()

    def clean(self, log: StoredLog, config: TopicConfig, rules: CleaningRules) -> Cleaning | None:
        if not isinstance(log, SegmentLog) or not log.closed:
            return None
        if dirty_ratio(log) < max(config.min_cleanable_dirty_ratio, _LEAST_DIRTY):
            return None
        # Records too young to be cleaned hold back their whole log, not only themselves.
        if config.min_compaction_lag_ms:
            for segment in log.closed:
                segment.use()  # only then it knows its times
            latest = max(segment.max_timestamp for segment in log.closed)
            if config.min_compaction_lag_ms > rules.now - latest:
                return None
        return compact(log, self._files, rules)

    def note_synced(self, points: Mapping[tuple[str, PartitionIndex], Offset]) -> None:
        self._directory.note_synced(
            {(name, int(index)): at for (name, index), at in points.items()}
        )

    def note_starts(self, starts: Mapping[tuple[str, PartitionIndex], Offset]) -> None:
        self._directory.note_starts(
            {(name, int(index)): at for (name, index), at in starts.items()}
        )

    def close(self, *, clean: bool = False) -> None:
        self._directory.close(clean=clean)


class DirectoryStore:
    """The catalog's file in a data directory, replaced as a whole, and the copy beside it. The copy
    is the same, or one change older when a crash came between the two.
    """

    def __init__(self, path: str, files: Files, observe: Observer) -> None:
        self._path = path
        self._files = files
        self._observe = observe

    def load(self) -> list[Copy]:
        copies = [self._copy(CATALOG_FILE), self._copy(CATALOG_COPY)]
        if copies[1] is None:
            return [copy for copy in copies if copy is not None]
        missing = StorageError(f"{self._path}/{CATALOG_FILE} is missing")
        return [copies[0] or Copy(f"{self._path}/{CATALOG_FILE}", missing), copies[1]]

    def _copy(self, name: str) -> Copy | None:
        path = f"{self._path}/{name}"
        try:
            self._files.make_private(path)  # it may be of a broker that has left it open
            content = read_whole(self._files, self._path, name)
        except OSError as error:
            return Copy(path, StorageError(f"{path} cannot be read: {error}"))
        return None if content is None else Copy(path, content)

    def settle(self) -> None:
        try:
            self._files.sync_directory(self._path)
        except OSError as error:
            raise StorageError(f"{self._path} cannot be made durable: {error}") from error

    def save(self, content: bytes) -> None:
        unsynced: UnsyncedError | None = None
        try:
            replace_whole(self._files, self._path, CATALOG_FILE, content, private=True)
        except UnsyncedError as error:
            unsynced = error
        except OSError as error:
            raise StorageError(f"{self._path}/{CATALOG_FILE} cannot be written: {error}") from error
        try:
            # The names of both are made durable with this one.
            replace_whole(self._files, self._path, CATALOG_COPY, content, private=True)
        except OSError as error:
            if unsynced is not None:
                raise UnsettledError(
                    f"{self._path}/{CATALOG_FILE} is written, and may not be durable: {unsynced}"
                ) from unsynced
            state = "may not be durable" if isinstance(error, UnsyncedError) else "is older now"
            self._observe.warning(f"{self._path}/{CATALOG_COPY} {state}: {error}")

    def set_aside(self, copy: Copy) -> None:
        try:
            with suppress(FileNotFoundError):
                self._files.rename(copy.name, copy.name + _DAMAGED_SUFFIX)
        except OSError as error:
            raise StorageError(f"{copy.name} cannot be set aside: {error}") from error
