# SPDX-License-Identifier: Apache-2.0
"""Consumers at work beside each other, and what they were handed."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager
from typing import Any, Self

from kohort.client.consumer import Consumer, RebalanceListener
from kohort.client.fetcher import ConsumerRecord
from kohort.terms import TopicPartition
from kohort.testing import Broker

PROTOCOLS = ("consumer", "classic")
SOON_S = 30.0

Work = Callable[[ConsumerRecord], Awaitable[None]]


def consumer(broker: Broker, *topics: str, **settings: Any) -> Consumer:
    """A consumer of a group that begins with the first record and finds out quickly."""
    given = {
        "group_id": None if settings.pop("alone", False) else "g",
        "auto_offset_reset": "earliest",
        **({} if settings.get("group_protocol") == "consumer" else {"heartbeat_interval_ms": 100}),
        **settings,
    }
    return Consumer(*topics, bootstrap_servers=broker.bootstrap, **given)


class RebalanceRecorder(RebalanceListener):
    """Keeps what it hears, in order."""

    def __init__(self) -> None:
        self.events: list[tuple[str, list[int]]] = []

    async def on_assigned(self, partitions: Collection[TopicPartition]) -> None:
        self.events.append(("assigned", [one.partition for one in partitions]))

    async def on_revoked(self, partitions: Collection[TopicPartition]) -> None:
        self.events.append(("revoked", [one.partition for one in partitions]))

    async def on_lost(self, partitions: Collection[TopicPartition]) -> None:
        self.events.append(("lost", [one.partition for one in partitions]))

    @property
    def has(self) -> set[int]:
        """What it has by all that it heard."""
        held: set[int] = set()
        for what, partitions in self.events:
            held = held.union(partitions) if what == "assigned" else held.difference(partitions)
        return held


class Worker:
    """Reads for as long as its block lasts; `seen` are the values, in the order of reading."""

    def __init__(self, reader: Consumer, work: Work | None = None) -> None:
        self.consumer = reader
        self.seen: list[str] = []
        self.records: list[ConsumerRecord] = []
        self._work = work
        self._works = False
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        await self.consumer.start()
        self._task = asyncio.create_task(self._read())
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()
        await self.consumer.close(processed=not self._works)

    async def stop(self) -> None:
        """Read no more."""
        if self._task is not None:
            self._task.cancel()
            outcome = (await asyncio.gather(self._task, return_exceptions=True))[0]
            self._task = None
            if isinstance(outcome, Exception):
                raise outcome

    async def _read(self) -> None:
        async for record in self.consumer:
            self._works = True
            if self._work is not None:
                await self._work(record)
            self._works = False
            self.records.append(record)
            self.seen.append((record.value or b"").decode())


async def until(true: Callable[[], Any], timeout_s: float = SOON_S) -> None:
    """Wait until it is true."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout_s
    while not true():
        assert loop.time() < deadline, "not soon enough"
        await asyncio.sleep(0.01)


@asynccontextmanager
async def within(timeout_s: float = SOON_S) -> AsyncIterator[None]:
    """Fail rather than wait for ever."""
    async with asyncio.timeout(timeout_s):
        yield
