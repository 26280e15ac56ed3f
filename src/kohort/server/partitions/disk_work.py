# SPDX-License-Identifier: Apache-2.0
"""Long work for the disk, beside the loop: write the catalog, open and remove logs, note where they
begin and how far they are synced, close files that have no name any more.

The driver of the cluster takes a piece of work, runs it on any thread, and gives it back. One piece
is out at a time. Nothing that a request sees changes in between: a topic exists once its change is
durable and the first of its logs are open.
"""

from collections.abc import Callable
from typing import NamedTuple

from kohort.config import BrokerConfig
from kohort.errors import Broken, StorageError, UnsettledError
from kohort.server.catalog import Catalog, Draft, Topic
from kohort.server.partitions.log_starts import StartMove, move_starts
from kohort.server.partitions.logs import Logs
from kohort.storage.log import StoredLog
from kohort.storage.open_files import LogFile
from kohort.terms import Offset, PartitionIndex

# A piece is short: a topic that somebody has just made waits for the piece that is out.
OPEN_SLICE_LOGS = 16
DELETE_SLICE_LOGS = 64  # removing syncs one directory for all of them

PartitionKey = tuple[str, PartitionIndex]
"""A partition: the name of its topic, and its index."""

Finish = Callable[[StorageError | None], None]
"""Answers the request for a change: with None once it is durable, or with why it was not made."""

Change = Callable[[Draft], Finish]
"""Judges a change against a draft, and makes as much of it there as is accepted."""


class TopicDeletion(NamedTuple):
    """A deleted topic, and some of its partitions whose folders may still be there."""

    topic: Topic
    indexes: list[PartitionIndex]


class OpenedLog:
    """The result of opening the log of a partition."""

    def __init__(
        self, topic: Topic, index: PartitionIndex, outcome: StoredLog | StorageError | Broken
    ) -> None:
        self.topic = topic
        self.index = index
        self.outcome = outcome

    @property
    def place(self) -> PartitionKey:
        return self.topic.name, self.index


class DiskWork:
    """One piece. `run` may take long and touches nothing that the loop uses; it never raises.

    `saved` says whether the draft is durable, `error` why it is not written, `unsettled` why it is
    written and may not be durable, `failed` what nobody has thought of.
    """

    def __init__(
        self,
        catalog: Catalog,
        logs: Logs,
        config: BrokerConfig,
        *,
        draft: Draft | None,
        finishes: list[Finish],
        to_open: list[PartitionKey],
        leaving: list[TopicDeletion],
        moves: list[StartMove],
        closing: list[LogFile],
        synced: dict[PartitionKey, Offset] | None,
    ) -> None:
        self.draft = draft
        self.finishes = finishes
        self.leaving = leaving
        self.moves = moves
        self.error: StorageError | None = None
        self.unsettled: UnsettledError | None = None
        self.saved = False
        self.failed = ""
        self.not_noted: StorageError | None = None
        self.opened: list[OpenedLog] = []
        self.removed: list[
            tuple[TopicDeletion, dict[PartitionIndex, str]]
        ] = []  # and what is left, why
        self._catalog = catalog
        self._logs = logs
        self._config = config
        self._synced = synced
        self._closing = closing
        topics = catalog.by_name if draft is None else draft.by_name
        self._to_open = [(topics[name], index) for name, index in to_open if name in topics]

    def run(self) -> None:
        try:
            move_starts(self._logs, self.moves)
            self._closing.clear()
            self._run()
        except Exception as error:  # noqa: BLE001  (whatever it is, requests wait for the end)
            self.failed = describe_error(error)
            if self.draft is not None and not self.saved:
                self.error = StorageError(self.failed)

    def _run(self) -> None:
        if self.draft is not None:
            try:
                self._catalog.save(self.draft)
            except UnsettledError as error:
                self.unsettled = error
                return
            except StorageError as error:
                self.error = error
                return
            self.saved = True
        self._delete()
        self.opened = self._open_all()
        if self._synced is not None:
            try:
                self._logs.note_synced(self._synced)
            except StorageError as error:
                self.not_noted = error

    def _open_all(self) -> list[OpenedLog]:
        opened = [
            OpenedLog(topic, index, self._open(topic, index)) for topic, index in self._to_open
        ]
        try:
            self._logs.sync_names()
        except StorageError as error:
            return [self._closed(log, error) for log in opened]
        except Exception as error:  # noqa: BLE001  (it must not leave logs open)
            return [self._closed(log, StorageError(describe_error(error))) for log in opened]
        return opened

    @staticmethod
    def _closed(opened: OpenedLog, error: StorageError) -> OpenedLog:
        """A log whose folder a loss of power could take away must not be written to."""
        if isinstance(opened.outcome, StorageError | Broken):
            return opened
        opened.outcome.close()
        return OpenedLog(opened.topic, opened.index, error)

    def _open(self, topic: Topic, index: PartitionIndex) -> StoredLog | StorageError | Broken:
        try:
            return self._logs.open(topic, index, self._config)
        except (StorageError, Broken) as error:
            return error
        except Exception as error:  # noqa: BLE001  (it is this partition's alone)
            return Broken(describe_error(error))

    def _delete(self) -> None:
        for leaving in self.leaving:
            try:
                left = self._logs.delete(leaving.topic, leaving.indexes)
            except Exception as error:  # noqa: BLE001  (it is this topic's alone)
                left = dict.fromkeys(leaving.indexes, describe_error(error))
            self.removed.append((leaving, left))


def describe_error(error: Exception) -> str:
    """An error that nobody has thought of, for those who have to be told."""
    return f"{type(error).__name__}: {error}"
