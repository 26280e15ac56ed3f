# SPDX-License-Identifier: Apache-2.0
"""Answers that leave before the disk has what they tell."""

from collections.abc import Iterator
from typing import Any

from kohort.runtime.driver import PartitionDriver
from kohort.server.partitions import logs
from kohort.sim.injected_bugs.replace_attribute import replace_attribute
from kohort.storage import files
from kohort.wire.messages.delete_groups import DeleteGroupsResponse
from kohort.wire.messages.end_txn import EndTxnResponse
from kohort.wire.messages.init_producer_id import InitProducerIdResponse
from kohort.wire.messages.join_group import JoinGroupResponse
from kohort.wire.messages.offset_delete import OffsetDeleteResponse
from kohort.wire.messages.sync_group import SyncGroupResponse


def _not_parked(*responses: type[Any]) -> Iterator[None]:
    """Answers of these kinds do not wait for the log."""
    write = PartitionDriver._write  # noqa: SLF001

    def written(self: Any, turn: Any, now: Any) -> None:
        before = len(self._parked)
        write(self, turn, now)
        new = [self._parked.pop() for _ in range(len(self._parked) - before)][::-1]
        for end, reply in new:
            if isinstance(reply.response, responses):
                reply.token.answer(reply.response)
            else:
                self._parked.append((end, reply))

    with replace_attribute(PartitionDriver, "_write", written):
        yield


def early_end() -> Iterator[None]:
    """The end of a transaction is acknowledged before it is durable."""
    yield from _not_parked(EndTxnResponse)


def early_assignment() -> Iterator[None]:
    """The members of a classic group get their assignments before these are durable."""
    yield from _not_parked(SyncGroupResponse)


def early_join() -> Iterator[None]:
    """Who joins a classic group is answered at once, also where it takes a place in a record."""
    yield from _not_parked(JoinGroupResponse)


def early_producer() -> Iterator[None]:
    """A producer is told its epoch before that is durable."""
    yield from _not_parked(InitProducerIdResponse)


def early_deletion() -> Iterator[None]:
    """The deletion of groups and of offsets is acknowledged before it is durable."""
    yield from _not_parked(DeleteGroupsResponse, OffsetDeleteResponse)


def unsynced_catalog() -> Iterator[None]:
    """The name of a catalog that was replaced is not made durable."""
    replace = files.replace_whole

    class UnsyncedFiles:
        def __init__(self, disk: files.Files) -> None:
            self._disk = disk

        def __getattr__(self, name: str) -> Any:
            return getattr(self._disk, name)

        def sync_directory(self, _path: str) -> None:
            return

    def unsynced(disk: Any, directory: str, name: str, content: bytes, **how: bool) -> None:
        unsyncing: Any = UnsyncedFiles(disk)
        replace(unsyncing, directory, name, content, **how)

    with replace_attribute(logs, "replace_whole", unsynced):
        yield
