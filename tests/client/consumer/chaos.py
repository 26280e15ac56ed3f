# SPDX-License-Identifier: Apache-2.0
"""Eight members at work while members, nodes, coordinators and answers come and go.

What is checked: in one epoch a partition is processed by one member only, every record is processed
at least once, and what is committed never goes back.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager
from random import Random
from typing import Any

from tests.client.consumer.running import RebalanceRecorder, consumer, until

from kohort.client.consumer import Consumer
from kohort.client.fetcher import ConsumerRecord
from kohort.terms import TopicPartition
from kohort.testing import Broker

MEMBERS, PARTITIONS, NODES = 8, 12, 3
SESSION_MS = 3000
SETTINGS: dict[str, Any] = {
    "group.consumer.heartbeat.interval.ms": 200,
    "group.consumer.session.timeout.ms": SESSION_MS,
}
HEARTBEATS = {"consumer": "ConsumerGroupHeartbeat", "classic": "Heartbeat"}


class Books:
    """What was processed, by whom and in which epoch."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.seen: set[str] = set()
        self.wrong: list[str] = []
        self._claims: dict[tuple[int, int], str] = {}

    def begin(self, name: str, epoch: int, record: ConsumerRecord) -> None:
        """A member begins with a record; below 0 it knows that it is no member any more."""
        if epoch < 0:
            return
        owner = self._claims.setdefault((record.partition, epoch), name)
        if owner != name:
            self.wrong.append(
                f"{owner} and {name} both process partition {record.partition} in epoch {epoch}"
            )

    def end(self, record: ConsumerRecord) -> None:
        self.seen.add(record.value.decode())


class Hand:
    """One member: it reads until it is told to go, and works as slowly as it is told to."""

    def __init__(self, broker: Broker, protocol: str, name: str, books: Books) -> None:
        settings: dict[str, Any] = {"group_protocol": protocol, "request_timeout_ms": 2000}
        if protocol == "classic":
            settings["session_timeout_ms"] = SESSION_MS
        self.name = name
        self.reader: Consumer = consumer(
            broker, "t", listener=RebalanceRecorder(), auto_commit_interval_ms=200, **settings
        )
        self.pause_s = 0.001
        self._books = books
        self._task = asyncio.create_task(self._work())

    async def _work(self) -> None:
        await self.reader.start()
        async for record in self.reader:
            self._books.begin(self.name, self.reader.group_metadata().generation_id, record)
            await asyncio.sleep(self.pause_s)
            self._books.end(record)

    async def _stop(self) -> None:
        self._task.cancel()
        (outcome,) = await asyncio.gather(self._task, return_exceptions=True)
        if isinstance(outcome, Exception):
            raise outcome

    async def leave(self) -> None:
        await self._stop()
        await self.reader.close(processed=False)

    async def die(self) -> None:
        """Without a word to anybody."""
        await self._stop()
        self.reader._closed = True
        await self.reader._let_go()


class Chaos:
    """`step` does something that hurts. All that was hurt is well again after `heal`."""

    def __init__(self, broker: Broker, protocol: str, seed: int) -> None:
        self.books = Books()
        self._broker = broker
        self._protocol = protocol
        self._random = Random(seed)
        self._names = iter(range(1 << 30))
        self._hands = [self._hand() for _ in range(MEMBERS)]
        self._away: int | None = None
        self._due: list[Callable[[], Awaitable[None]]] = []

    def _hand(self) -> Hand:
        return Hand(self._broker, self._protocol, f"m{next(self._names)}", self.books)

    async def step(self) -> None:
        """Each kind comes once in as many steps as there are kinds, so that none goes untried."""
        await self._put(40)
        if not self._due:
            self._due = [
                *(self._leave, self._die, self._slow),
                *(self._silence, self._move, self._kill_node),
            ]
            self._random.shuffle(self._due)
        await self._due.pop()()
        await asyncio.sleep(self._random.uniform(0.1, 1.5))

    async def heal(self) -> None:
        """Nothing hurts any more: wait until all is processed and committed."""
        if self._away is not None:
            await self._command(self._broker.node(self._away).start)
        await self._command(self._broker.faults.clear)
        for hand in self._hands:
            hand.pause_s = 0.001
        await until(lambda: set(self.books.sent) <= self.books.seen, 60)
        for hand in self._hands:
            await hand.leave()

    async def _put(self, count: int) -> None:
        for _ in range(count):
            value = f"v{len(self.books.sent)}"
            self.books.sent.append(value)
        await self._command(self._produce, self.books.sent[-count:])

    def _produce(self, values: Collection[str]) -> None:
        for index in range(PARTITIONS):
            some = list(values)[index::PARTITIONS]
            if some:
                self._broker.produce("t", *some, partition=index)

    async def _leave(self) -> None:
        at = self._random.randrange(MEMBERS)
        await self._hands[at].leave()
        self._hands[at] = self._hand()

    async def _die(self) -> None:
        at = self._random.randrange(MEMBERS)
        await self._hands[at].die()
        self._hands[at] = self._hand()

    async def _slow(self) -> None:
        """Its work takes long: what it has to give up is waited for."""
        self._random.choice(self._hands).pause_s = self._random.choice([0.001, 0.3, 1.0])

    async def _silence(self) -> None:
        """Some heartbeats are not answered: who is silent for too long is put out."""
        times = self._random.randrange(1, 6)
        await self._command(
            lambda: self._broker.faults.drop(HEARTBEATS[self._protocol], times=times)
        )

    async def _move(self) -> None:
        await self._command(self._broker.groups["g"].move)

    async def _kill_node(self) -> None:
        """One node is away at a time."""
        if self._away is None:
            self._away = self._random.randrange(NODES)
            await self._command(self._broker.node(self._away).kill)
        else:
            await self._command(self._broker.node(self._away).start)
            self._away = None

    async def _command(self, call: Any, *arguments: Any) -> None:
        await asyncio.to_thread(call, *arguments)


@asynccontextmanager
async def chaos(protocol: str, seed: int) -> AsyncIterator[Chaos]:
    """Everything is healed and checked at the end."""
    with Broker(SETTINGS, nodes=NODES) as broker:
        broker.create_topic("t", PARTITIONS)
        world = Chaos(broker, protocol, seed)
        yield world
        await world.heal()
        last: dict[TopicPartition, int] = {}
        for commit in broker.groups["g"].commits():
            assert commit.offset is not None
            before = last.get(commit.place, 0)
            assert commit.offset >= before, f"{commit.place} goes back to {commit.offset}"
            last[commit.place] = commit.offset
        assert not world.books.wrong, world.books.wrong[:3]
        assert last
