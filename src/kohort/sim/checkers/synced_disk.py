# SPDX-License-Identifier: Apache-2.0
"""What a loss of power would leave of the broker's logs and of its catalog.

Only synced bytes of files with synced names count. What was read once is remembered: the cleaner
may take a record away that an answer still tells of.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import msgspec

from kohort.errors import WireError
from kohort.records import codec, transactions
from kohort.sim.disk import SimulatedFiles
from kohort.storage.memory_files import Content, Directory
from kohort.wire import batch as batches

DATA = "data"
GROUPS = "__consumer_offsets-"
TRANSACTIONS = "__transaction_state-"
CATALOG = "kohort.catalog.json"
STARTS = "log-start-offset-checkpoint"


class SyncedRecord(NamedTuple):
    """A record of a key. `number` counts the records in the order in which they were read."""

    offset: int
    number: int
    value: Any | None
    producer_id: int
    producer_epoch: int


def _place(record: SyncedRecord) -> tuple[int, int]:
    return record.offset, record.number


class Mark(NamedTuple):
    """How much had been read at an instant."""

    records: int
    catalogs: int


NOW = Mark(1 << 62, 1 << 62)
"""Later than all that was read: only what is there now counts."""


class _ReadPosition(NamedTuple):
    """How much of a file was looked at, and how often synced bytes had been replaced by then."""

    file: Content  # kept, so that no other one gets its identity
    end: int
    replaced: int


class SyncedDisk:
    """The synced part of a disk. `disk` returns the one of now: each crash leaves another."""

    def __init__(self, disk: Callable[[], SimulatedFiles]) -> None:
        self._disk = disk
        self.ends: dict[str, int] = {}  # folder: the end of what was ever synced
        self.markers: dict[str, set[tuple[int, int, bool]]] = defaultdict(set)
        self.catalogs: list[dict[str, Any]] = []
        self._catalog = b""
        self._history: dict[tuple[Any, ...], list[SyncedRecord]] = defaultdict(list)
        self._folders: dict[str, tuple[SimulatedFiles, Directory]] = {}
        self._read: dict[int, _ReadPosition] = {}  # by the identity of a file's content
        self._batches: set[tuple[str, int, int]] = set()  # folder, offset and checksum
        self._number = 0

    # What is asked

    def mark(self) -> Mark:
        """How far the disk has come."""
        return Mark(self._number, len(self.catalogs))

    def history(self, *key: Any) -> list[SyncedRecord]:
        """All records of a key, as `(type of the key, *its fields)`, in the order of reading."""
        return self._history.get(key, [])

    def live(self, *key: Any) -> Any | None:
        """The value of a key that counts after a restart, None where there is none."""
        known = self._history.get(key)
        return None if not known else max(known, key=_place).value

    def values(self, since: Mark, *key: Any) -> list[Any]:
        """The values of a key that have counted since a mark, that of the mark among them."""
        known = self._history.get(key, [])
        before = [record for record in known if record.number < since.records]
        later = [record for record in known if record.number >= since.records]
        return [record.value for record in [*sorted(before, key=_place)[-1:], *later]]

    def superseded(self, since: Mark, *key: Any) -> bool:
        """Whether a record of this key has come after a mark: it may replace what is asked for."""
        known = self._history.get(key, [])
        return bool(known) and known[-1].number >= since.records

    def gone(self, since: Mark, *key: Any) -> bool:
        """Whether nothing is there of a key, or has been for an instant since a mark."""
        known = self._history.get(key, [])
        return self.live(*key) is None or any(
            record.value is None and record.number >= since.records for record in known
        )

    def keys(self, kind: type[Any], first: Any) -> Iterator[tuple[Any, ...]]:
        """The keys of a type whose first field is this."""
        yield from (key for key in self._history if key[0] is kind and key[1] == first)

    def in_a_catalog(self, since: Mark, found: Callable[..., bool], *about: Any) -> bool:
        """Whether a catalog was durable since a mark for which `found(catalog, *about)` is true."""
        first = min(since.catalogs, len(self.catalogs)) - 1
        return any(found(catalog, *about) for catalog in self.catalogs[max(first, 0) :])

    def start(self, folder: str) -> int:
        """Where a log begins after a restart."""
        names = self._names(folder)
        segments = [int(name[:-4]) for name in names if name.endswith(".log")]
        start = min(segments, default=0)
        topic, _, index = folder.rpartition("-")
        root = self._root()
        for checkpoint in (names.get(STARTS), None if root is None else root.synced.get(STARTS)):
            if isinstance(checkpoint, Content):
                for line in checkpoint.synced.decode().splitlines()[2:]:
                    if line.split()[:2] == [topic, index]:
                        start = max(start, int(line.split()[-1]))
        return start

    # What is read

    def look(self, beginning: str) -> None:
        """Read what has been synced since the last look, in folders with this beginning."""
        root = self._root()
        if root is None:
            return
        disk = self._disk()
        for folder in self.ends.keys() - root.now.keys() - root.synced.keys():
            del self.ends[folder]  # the topic is deleted: one of that name begins at 0
        for folder, node in root.synced.items():
            if folder.startswith(beginning) and not isinstance(node, Content):
                before = self._folders.get(folder)
                if before is not None and before[0] is disk and before[1] is not node:
                    self.ends.pop(folder, None)  # another topic of that name
                self._folders[folder] = disk, node
                for name, file in node.synced.items():
                    if name.endswith(".log") and isinstance(file, Content):
                        self._read_on(folder, file)

    def look_at_catalog(self) -> None:
        """Remember the catalog if it is another one than at the last look."""
        root = self._root()
        file = None if root is None else root.synced.get(CATALOG)
        if isinstance(file, Content) and file.synced != self._catalog:
            self._catalog = file.synced
            self.catalogs.append(msgspec.json.decode(file.synced))

    def _root(self) -> Directory | None:
        root = self._disk().root.synced.get(DATA)
        return root if isinstance(root, Directory) else None

    def _names(self, folder: str) -> dict[str, Content | Directory]:
        root = self._root()
        node = None if root is None else root.synced.get(folder)
        return dict(node.synced) if isinstance(node, Directory) else {}

    def _read_on(self, folder: str, file: Content) -> None:
        before = self._read.get(id(file))
        # Behind an end that was cut off other batches may begin elsewhere: read all of it again.
        at = 0 if before is None or before.replaced != file.replaced else before.end
        if before is not None and at == len(file.synced):
            return
        data = file.synced[at:]
        try:
            for position, header in batches.walk(data):
                batches.check(data, position, header)
                self.ends[folder] = max(self.ends.get(folder, 0), header.last_offset + 1)
                self._take(folder, header, data[position : position + header.length])
                at += header.length
        except WireError:
            pass  # a torn or damaged end: what is before it counts
        self._read[id(file)] = _ReadPosition(file, at, file.replaced)

    def _take(self, folder: str, header: batches.BatchHeader, data: bytes) -> None:
        """After a crash all files are other ones, with the same batches: each counts once."""
        batch = folder, header.base_offset, header.crc
        if batch in self._batches:
            return
        self._batches.add(batch)
        if header.is_control:
            for _, _, marker, _ in batches.entries(data):
                commit = batches.marker_commits(marker)
                self.markers[folder].add((header.producer_id, header.producer_epoch, commit))
            return
        of_groups = folder.startswith(GROUPS)
        if not of_groups and not folder.startswith(TRANSACTIONS):
            return
        for offset, _, raw, value in batches.entries(data):
            if raw is None:
                continue
            key: tuple[Any, ...]
            record = codec.decode(raw, value) if of_groups else transactions.decode(raw, value)
            if isinstance(record, codec.Record):
                named: Any = record.key
                key = type(named), *msgspec.structs.astuple(named)
            elif isinstance(record, transactions.Record):
                key = transactions.TransactionLogKey, record.transactional_id
            else:
                continue  # of a type that nobody knows
            producer = header.producer_id, header.producer_epoch
            self._history[key].append(SyncedRecord(offset, self._number, record.value, *producer))
            self._number += 1
