"""Bugs that are planted to see whether they are found: a simulator that finds none may be blind.

Each is a small change of the broker, as somebody might make it by mistake, for as long as a run
lasts.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from typing import Any

from kohort.coordinator import shard
from kohort.coordinator.consumer import fencing, reconcile
from kohort.server import (
    broker,
    budget,
    catalog,
    cluster,
    durability,
    partition_table,
    placement,
)
from kohort.storage import compaction, directory
from kohort.wire import batch as batches
from kohort.wire.messages.offset_commit import OffsetCommitRequest

Plant = Callable[[], Iterator[None]]


@contextmanager
def _instead(owner: Any, name: str, other: Any) -> Iterator[None]:
    """Another thing under a name, for a while."""
    before = owner.__dict__[name]
    setattr(owner, name, other)
    try:
        yield
    finally:
        setattr(owner, name, before)


def reply_before_sync() -> Iterator[None]:
    """What is written counts as durable."""
    begin = durability.Durability.__init__

    def unsynced(self: durability.Durability, *, synced: bool) -> None:
        del synced
        begin(self, synced=False)

    with _instead(durability.Durability, "__init__", unsynced):
        yield


def skip_revocation() -> Iterator[None]:
    """A member goes on without having said that it has let go."""
    with _instead(reconcile, "_names_any", lambda _owned, _partitions: False):
        yield


def forget_timer() -> Iterator[None]:
    """After a reload nobody looks whether the members are still alive."""
    with _instead(fencing, "start", lambda _state, _now: None):
        yield


def drop_tombstone() -> Iterator[None]:
    """Cleaning passes over tombstones when it looks for the last value of a key."""

    def note_latest(latest: dict[bytes, int], _survey: Any, data: bytes) -> None:
        for at, header in batches.walk(data):
            if not header.is_control:
                records = batches.entries(data, at)
                latest.update(
                    (key, offset)
                    for offset, _, key, value in records
                    if key is not None and value is not None
                )

    kept = compaction._Rewrite._kept_entries  # noqa: SLF001

    def without(self: Any, data: bytes, header: Any) -> list[tuple[int, bytes | None]]:
        return [(at, value) for at, value in kept(self, data, header) if value is not None]

    with (
        _instead(compaction, "_note_latest", note_latest),
        _instead(compaction._Rewrite, "_kept_entries", without),  # noqa: SLF001
    ):
        yield


def shard_by_index() -> Iterator[None]:
    """The shard of a group follows from how many logs are open."""
    shard_of, start = placement.Placement.shard_of, cluster.Cluster.start
    running: list[cluster.Cluster] = []

    def started(self: cluster.Cluster, *arguments: Any, **more: Any) -> None:
        running[:] = [self]
        start(self, *arguments, **more)

    def by_index(self: placement.Placement, group_id: Any) -> Any:
        shards = sorted(running[0].drivers)
        if not shards:
            return shard_of(self, group_id)
        return shards[placement.coordinator_partition(group_id, len(shards))]

    with (
        _instead(cluster.Cluster, "start", started),
        _instead(placement.Placement, "shard_of", by_index),
    ):
        yield


def delete_by_name() -> Iterator[None]:
    """The folders of a deleted topic are removed by its name, whoever's they are by now."""
    delete = directory.LogDirectory.delete

    def by_name(self: Any, topic: str, indexes: Any, topic_id: Any) -> Any:
        self.topic_id = lambda _topic, _index: topic_id
        try:
            return delete(self, topic, indexes, topic_id)
        finally:
            del self.topic_id

    def everything(_self: Any, topic: Any) -> list[int]:
        return list(range(topic.partitions))

    with (
        _instead(directory.LogDirectory, "delete", by_name),
        _instead(partition_table.PartitionTable, "_leaving", everything),
    ):
        yield


def unchecked_crc() -> Iterator[None]:
    """No crc is looked at."""
    with _instead(batches, "check", lambda _data, _position, _header: None):
        yield


def producer_id_twice() -> Iterator[None]:
    """After a start producer ids begin where the last block began, not where it ended."""
    read = catalog.Catalog._read  # noqa: SLF001

    def too_low(self: Any, copy: Any) -> None:
        read(self, copy)
        self._next_producer_id = max(0, self._next_producer_id - catalog._PRODUCER_ID_BLOCK)  # noqa: SLF001

    with _instead(catalog.Catalog, "_read", too_low):
        yield


def raising_handler() -> Iterator[None]:
    """Every fifth commit of offsets divides by zero."""
    commit = shard.CALLS[OffsetCommitRequest]
    numbers = count(1)

    def raising(*arguments: Any) -> Any:
        if not next(numbers) % 5:
            raise ZeroDivisionError
        return commit(*arguments)

    shard.CALLS[OffsetCommitRequest] = raising
    try:
        yield
    finally:
        shard.CALLS[OffsetCommitRequest] = commit


def keep_bytes() -> Iterator[None]:
    """Of large answers a part is never given back."""
    give = budget.Budget.give

    def too_little(self: budget.Budget, size: int) -> None:
        give(self, min(size, 400))

    with _instead(budget.Budget, "give", too_little):
        yield


def endless_stop() -> Iterator[None]:
    """The broker never ends when it is told to."""

    async def endless(_self: Any) -> None:
        await asyncio.get_running_loop().create_future()

    with _instead(broker.Broker, "stop", endless):
        yield


PLANTS: dict[str, Plant] = {
    "reply before sync": reply_before_sync,
    "skip revocation": skip_revocation,
    "forget timer": forget_timer,
    "drop tombstone": drop_tombstone,
    "shard by index": shard_by_index,
    "delete by name": delete_by_name,
    "unchecked crc": unchecked_crc,
    "producer id twice": producer_id_twice,
    "raising handler": raising_handler,
    "keep bytes": keep_bytes,
    "endless stop": endless_stop,
}


def planted(name: str | None) -> Any:
    """A bug by its name, in force within a `with` block; nothing without a name."""
    return ExitStack() if name is None else contextmanager(PLANTS[name])()
