# SPDX-License-Identifier: Apache-2.0
"""An application that reads: by the real Consumer, in a group or alone, in all ways that it has."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection
from functools import partial
from typing import Any, ClassVar

from kohort.client.admin.group_views import CommittedOffset
from kohort.client.consumer import Consumer, GroupMetadata, RebalanceListener
from kohort.client.fetcher import AnyRecord
from kohort.errors import ApiError, ErrorCode, KohortError
from kohort.sim.actor_context import ActorContext
from kohort.sim.programs.facts import (
    CommitRefused,
    ConsumerSeek,
    FinalPositions,
    Part,
    PartitionPause,
    PartitionsAssigned,
    PartitionsUnassigned,
    RecordHandedOut,
    RecordProcessed,
)
from kohort.sim.programs.operating import Operator
from kohort.sim.programs.topics import FEED, SIDE, TOPICS
from kohort.terms import TopicPartition

logger = logging.getLogger(__name__)

SESSION_MS = 8000  # of members of the classic protocol
POLL_MS = 15_000
LOOK_S = 0.5  # how often a program looks whether it is to stop
GROUP = "books"  # of all that are not alone
SUBSCRIPTIONS: tuple[tuple[tuple[str, ...], str | None], ...] = (
    ((), "feed.*"),
    ((FEED, SIDE), None),
    ((FEED,), None),
)
DISOWNED = frozenset(
    {
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.FENCED_MEMBER_EPOCH,
        ErrorCode.STALE_MEMBER_EPOCH,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.FENCED_INSTANCE_ID,
    }
)


class Listener(RebalanceListener):
    """Tells what the application is told."""

    def __init__(self, reader: "ReadingProgram") -> None:
        self._reader = reader

    def on_assigned(self, partitions: Collection[TopicPartition]) -> None:
        self._reader.assigned(partitions)

    def on_revoked(self, partitions: Collection[TopicPartition]) -> None:
        self._reader.unassigned(partitions, lost=False)

    def on_lost(self, partitions: Collection[TopicPartition]) -> None:
        self._reader.unassigned(partitions, lost=True)


class ReadingProgram(Operator):
    """Reads the topics of the programs. What it is like is drawn anew for each life, but for its
    group.
    """

    kind: ClassVar[str] = "reading program"

    def __init__(self, stage: ActorContext, number: int) -> None:
        super().__init__(stage, number)
        random = stage.stream(f"reader {number}")
        self.alone = random.random() < 0.15
        self.classic = stage.stream("readers").random() < 0.5
        self.group = f"alone-{number}" if self.alone else GROUP
        self.instance = f"r-{number}" if random.random() < 0.4 and not self.alone else None
        self.committed_only = stage.stream(f"isolation of {self.group}").random() < 0.5
        self.consumer: Consumer = None  # type: ignore[assignment]
        self.reads: tuple[str, ...] = ()  # topics
        self.read_to: dict[Part, int] = {}
        self.commits = "auto"
        self.slow = 0.0

    # One life

    def settings(self) -> dict[str, Any]:
        random = self.random
        self.commits = random.choice(["auto", "auto", "sync", "records", "nowait"])
        self.slow = random.choice([0.0, 0.02, 0.3])
        found: dict[str, Any] = {
            "bootstrap_servers": self.servers,
            "client_id": self.client,
            "group_id": self.group,
            "group_instance_id": self.instance,
            "isolation_level": "read_committed" if self.committed_only else "read_uncommitted",
            "auto_offset_reset": "earliest",
            "enable_auto_commit": self.commits == "auto",
            "auto_commit_interval_ms": random.choice([300, 2000]),
            "max_poll_interval_ms": POLL_MS,
            "max_poll_records": random.choice([1, 7, 500]),
            "request_timeout_ms": random.choice([3000, 10_000]),
            "default_api_timeout_ms": 10_000,
            "close_timeout_ms": 8000,
            "metadata_max_age_ms": 20_000,
            "fetch_max_wait_ms": random.choice([1000, 3000]),
            "group_protocol": "classic" if self.classic else random.choice(["auto", "consumer"]),
        }
        if not self.classic:
            found["group_consumer_session_timeout_ms"] = self.stage.session_ms
        else:
            found["partition_assignment_strategy"] = self._strategy()
            found["session_timeout_ms"] = SESSION_MS
            found["heartbeat_interval_ms"] = 1500
        return found

    def _strategy(self) -> list[str]:
        random = self.stage.stream(f"strategy of {self.group}")
        return random.choice([["range"], ["cooperative-sticky"], ["cooperative-sticky", "range"]])

    async def work(self) -> None:
        random = self.random
        names, pattern = ((), None) if self.alone else random.choice(SUBSCRIPTIONS)
        self.reads = names if names == (FEED,) else (FEED, SIDE)
        self.consumer = Consumer(
            *names, pattern=pattern, listener=Listener(self), **self.settings()
        )
        try:
            if not self.alone:
                await self.consumer.start()
        except ApiError as error:
            logger.info("%s does not start: %s", self.client, error)
            return
        read = random.choice([self._read_batches, self._read_batches, self._read_each])
        try:
            if self.alone:
                await self.consumer.assign(self._parts())
            await read()
        except KohortError as error:
            logger.info("%s ends: %s", self.client, error)
        await self.consumer.close(for_good=random.random() < 0.3)

    def _parts(self) -> list[TopicPartition]:
        return [TopicPartition(name, index) for name in self.reads for index in range(TOPICS[name])]

    async def _read_batches(self) -> None:
        consumer, random = self.consumer, self.random
        while not self.stopping:
            try:
                found = await consumer.getmany(timeout_ms=int(LOOK_S * 1000))
            except ApiError as error:
                await self._refused(error)
                continue
            for records in found.values():
                for record in records:
                    self.handed(record)
            if found:
                await self._process()
            for records in found.values():
                for record in records:
                    self.finished(record)
            if found:
                await self._commit([records[-1] for records in found.values()])
            if random.random() < 0.12 and not self.calm:
                self._seek_or_pause()
            if self.calm:
                self._resume()
        await self._rest()

    async def _read_each(self) -> None:
        consumer, random = self.consumer, self.random
        watch = asyncio.create_task(self._close_when_asked())
        try:
            async for record in consumer:
                self.handed(record)
                if random.random() < 0.1:
                    await self._process()
                self.finished(record)
                if self.commits != "auto" and random.random() < 0.3:
                    await self._commit([record])
                if random.random() < 0.05 and not self.calm:
                    self._seek_or_pause()
                if self.calm:
                    self._resume()
        except KohortError:
            watch.cancel()
            raise
        finally:
            await asyncio.wait([watch])

    async def _close_when_asked(self) -> None:
        """Another task closes the consumer while its reader waits or works."""
        while not self.stopping:
            await asyncio.sleep(LOOK_S)
            if self.calm:
                self._resume()
        await self._rest()
        await self.consumer.close()

    async def _refused(self, error: ApiError) -> None:
        if error.code in (ErrorCode.FENCED_INSTANCE_ID, ErrorCode.UNRELEASED_INSTANCE_ID):
            raise error  # it ends, and whoever looks after it starts it anew
        if error.code in (ErrorCode.CORRUPT_MESSAGE, ErrorCode.OFFSET_OUT_OF_RANGE):
            logger.info("%s cannot go on with a partition: %s", self.client, error)
        await asyncio.sleep(1)

    async def _process(self) -> None:
        """Work takes its time: mostly none, some, and now and then more than it may."""
        chance = self.random.random()
        if self.calm or chance > 2 * self.slow:
            return
        if chance < self.slow / 20:
            await asyncio.sleep(self.random.uniform(5, 2 * POLL_MS / 1000))
        elif chance < self.slow:
            await asyncio.sleep(self.random.uniform(0.01, 1.5))

    async def _commit(self, last: list[AnyRecord]) -> None:
        consumer = self.consumer
        offsets: dict[TopicPartition, int | CommittedOffset] = {
            TopicPartition(record.topic, record.partition): record.offset + 1 for record in last
        }
        match self.commits:
            case "sync":
                await self._commit_with(consumer.commit)
            case "records":
                await self._commit_with(lambda: consumer.commit(offsets))
            case "nowait" if not self.stopping:
                looked_at = partial(self._looked_at, consumer.group_metadata())
                consumer.commit_nowait().add_done_callback(looked_at)
            case _:
                return

    async def _commit_with(self, commit: Callable[[], Awaitable[None]]) -> None:
        who = self.consumer.group_metadata()
        try:
            await commit()
        except ApiError as error:
            self._commit_refused(error, who)
        except ValueError:  # closed by another task, meanwhile
            logger.info("%s is closed", self.client)

    def _looked_at(self, who: GroupMetadata, task: "asyncio.Task[None]") -> None:
        error = None if task.cancelled() else task.exception()
        if isinstance(error, ApiError):
            self._commit_refused(error, who)

    def _commit_refused(self, error: ApiError, who: GroupMetadata) -> None:
        """Whoever has joined the next generation meanwhile keeps what it has: only its former self
        was refused.
        """
        now = self.consumer.group_metadata()
        went_on = now.member_id == who.member_id and now.generation_id > who.generation_id
        if error.code in DISOWNED and not went_on:
            self.tell(CommitRefused(self.client, self.now))

    def _seek_or_pause(self) -> None:
        consumer, random = self.consumer, self.random
        parts = sorted(consumer.assignment())
        if not parts:
            return
        part = random.choice(parts)
        chance = random.random()
        if chance < 0.3:  # backwards: what is skipped on purpose would look like what is lost
            offset = random.randrange(self.read_to.get(part, 0) + 1)
            consumer.seek(part, offset)
            self.read_to[part] = min(offset, self.read_to.get(part, 0))
            self.tell(ConsumerSeek(self.client, part, offset))
        elif chance < 0.8:
            consumer.pause(part)
            self.tell(PartitionPause(self.client, part, on=True))
        else:
            self._resume()

    def _resume(self) -> None:
        for part in sorted(self.consumer.paused()):
            self.tell(PartitionPause(self.client, part, on=False))
            self.consumer.resume(part)

    async def _rest(self) -> None:
        """When all is over: how far it has come. It leaves when the others have told that, too: a
        member that leaves has the others of a classic group give up what they have.
        """
        if not self.over:
            return
        positions: dict[Part, int] = {}
        for part in sorted(self.consumer.assignment()):
            positions[part] = await self.consumer.position(part)
        inside = self.alone or self.consumer.group_metadata().generation_id >= 0
        self.tell(FinalPositions(self.client, self.group or "", self.reads, positions, inside))
        await asyncio.sleep(4 * LOOK_S)

    # What it tells

    def assigned(self, partitions: Collection[TopicPartition]) -> None:
        for part in partitions:
            self.read_to[part] = 0
        session_us = SESSION_MS * 1000 if self.classic else None
        self.tell(
            PartitionsAssigned(
                self.client,
                self.group or "",
                tuple(partitions),
                self.committed_only,
                session_us,
                self.now,
            )
        )

    def unassigned(self, partitions: Collection[TopicPartition], *, lost: bool) -> None:
        self.tell(PartitionsUnassigned(self.client, tuple(partitions), lost, self.now))

    def handed(self, record: AnyRecord) -> None:
        part = TopicPartition(record.topic, record.partition)
        self.read_to[part] = record.offset + 1
        self.tell(
            RecordHandedOut(
                self.client, self.group or "", part, record.offset, record.value or b"", self.now
            )
        )

    def finished(self, record: AnyRecord) -> None:
        self.tell(
            RecordProcessed(self.group or "", (record.topic, record.partition), record.offset)
        )
