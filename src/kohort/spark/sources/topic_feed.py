# SPDX-License-Identifier: Apache-2.0
"""A log as the leaders of its partitions give it, fetched by the process that reads it."""

import asyncio
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from kohort.errors import ErrorCode
from kohort.pipeline.columns.record_positions import Rows
from kohort.pipeline.columns.segments import parse
from kohort.pipeline.sources.admin_query import PausingLoop, run_query
from kohort.pipeline.sources.cluster_place import cluster_place
from kohort.pipeline.sources.files import Head, head_at, skim
from kohort.pipeline.sources.log_position import Identity, Mark, Note, SourceError
from kohort.pipeline.sources.topic_client import (
    EARLIEST,
    LATEST,
    PATIENCE_S,
    TopicClient,
)
from kohort.security.settings import NO_SECURITY, Security
from kohort.spark.sources import record_estimate
from kohort.spark.sources.feed import Bounds, Span, WeightedSpan
from kohort.spark.sources.planning import gap
from kohort.wire.batch import HEADER_SIZE

FIRST_BYTES = 1 << 20
LEAST_BYTES = 1 << 16
PIECE_BYTES = 4 << 20
_WAIT_MS = 500
_PAUSE_S = 0.2
_AT_ONCE = 3  # partitions that one task fetches at the same time
_READY = 2  # fetched pieces that wait for their reader
_LOG = logging.getLogger("kohort.spark")

Piece = tuple[Span, int, bytes]
"""A span, the offset that reading has come to, and the batches from there on."""


class TopicFeed:
    """Keeps the contract of `Feed` for a topic of a live cluster."""

    def __init__(self, bootstrap: str, topic: str, security: Security = NO_SECURITY) -> None:
        cluster_place(bootstrap)  # a wrong one is told before anything is asked
        self._bootstrap = bootstrap
        self._topic = topic
        self._security = security
        self._identity: Identity | None = None
        self._leaders: dict[int, int] = {}
        self._notes: list[Note] = []

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._bootstrap, self._topic, self._security)

    def identity(self) -> Identity:
        """Whose log it is."""

        async def ask() -> Identity:
            async with self.client() as client:
                await client.look_up()
                return client.identity

        self._identity = run_query(self._bootstrap, ask)
        return self._identity

    def bounds(self) -> dict[int, Bounds]:
        async def ask() -> tuple[TopicClient, dict[int, int], dict[int, int]]:
            async with self.client() as client:
                await client.look_up()
                every = client.partitions
                starts = await client.offsets(every, EARLIEST)
                return client, starts, await client.offsets(every, LATEST)

        client, starts, ends = run_query(self._bootstrap, ask)
        self._check(client.identity)
        found = {}
        for index, end in ends.items():
            leader = client.leaders.get(index)  # none: it has gone since it has answered
            found[index] = Bounds(starts[index], end, leader.epoch if leader is not None else -1)
            if leader is None:
                continue
            before = self._leaders.get(index, leader.node.id)
            if before != leader.node.id:
                text = f"the leader of partition {index} is node {leader.node.id}, it was {before}"
                self._notes.append(Note(index, end, text))
            self._leaders[index] = leader.node.id
        return dict(sorted(found.items()))

    def _check(self, identity: Identity) -> None:
        if self._identity is not None and not self._identity.matches(identity):
            raise SourceError(
                f"topic {self._topic} at {self._bootstrap} was deleted and made anew while it was "
                "read: run again"
            )
        self._identity = identity

    def marks(self, following: Mapping[int, int]) -> dict[int, Mark | None]:
        wanted = {index: offset - 1 for index, offset in following.items() if offset > 0}
        heads = self._heads(wanted)
        return {
            index: (head.base, head.crc)
            if (head := heads.get(index)) is not None and head.base < offset
            else None
            for index, offset in following.items()
        }

    def offset_after_mark(self, marks: Mapping[int, Mark]) -> dict[int, int | None]:
        heads = self._heads({index: base for index, (base, _) in marks.items()})
        bounds = self.bounds()
        found: dict[int, int | None] = {}
        for index, (base, crc) in marks.items():
            head = heads.get(index)
            if base < bounds[index].start or (head is not None and head.base > base):
                found[index] = base + 1  # retention or cleaning has removed it
            elif head is None or head.base < base or (head.crc != crc and not head.is_cleaned):
                found[index] = None
            else:
                found[index] = head.following
        return found

    def at_time(self, partitions: Iterable[int], timestamp_ms: int) -> dict[int, int]:
        wanted = list(partitions)

        async def ask() -> dict[int, int]:
            async with self.client() as client:
                found = await client.offsets(wanted, timestamp_ms)
                later = [index for index, offset in found.items() if offset < 0]
                return {**found, **(await client.offsets(later, LATEST))}

        return run_query(self._bootstrap, ask)

    def weigh(self, ranges: Mapping[int, tuple[int, int]]) -> list[WeightedSpan]:
        """Spans of some records each, weighed in records."""
        places = {
            index: found
            for index, each in ranges.items()
            if (found := record_estimate.places(*each))
        }
        looks: dict[int, list[tuple[int, bytes]]] = {index: [] for index in ranges}

        async def ask() -> None:
            async with self.known() as client:
                for at in range(max(map(len, places.values()))):
                    wanted = {index: each[at] for index, each in places.items() if at < len(each)}
                    found = await client.batches_at(wanted)
                    for index, data in found.items():
                        looks[index].append((wanted[index], data))

        if places:
            run_query(self._bootstrap, ask)
        return [
            piece
            for index, (start, end) in ranges.items()
            for piece in record_estimate.weighted_spans(index, start, end, looks[index])
        ]

    def observed_changes(self) -> tuple[Note, ...]:
        notes, self._notes = tuple(self._notes), []
        return notes

    def read(self, spans: Sequence[Span]) -> Iterator[Rows]:
        """Pieces are parsed while the brokers prepare the next: a request is on its way before
        the piece before it is given out.
        """
        loop = PausingLoop()
        try:
            shelf = _Shelf()
            fetching = loop.create_task(self._fetch_all(spans, shelf))
            while (piece := loop.run_until_complete(shelf.take())) is not None:
                span, start, data = piece
                used = 1
                while data and used:
                    parsed = parse(data, span.partition, start=start, end=span.end)
                    yield from parsed.pieces
                    used, start = parsed.used, max(start, parsed.next_offset)
                    data = data[used:]
            loop.run_until_complete(fetching)
        finally:
            for task in asyncio.all_tasks(loop):
                task.cancel()
                loop.run_until_complete(asyncio.gather(task, return_exceptions=True))
            loop.close()

    def client(self) -> TopicClient:
        """A client of the topic, to be used as a context."""
        is_known = self._identity is not None
        return TopicClient(self._bootstrap, self._topic, self._security, is_known=is_known)

    def known(self) -> TopicClient:
        """The same for ranges of a plan: whoever made it had an answer."""
        return TopicClient(self._bootstrap, self._topic, self._security, is_known=True)

    # In the driver

    def _heads(self, wanted: Mapping[int, int]) -> dict[int, Head]:
        """The batch that holds each offset, or the one after it; nothing where there is none."""

        async def ask() -> dict[int, bytes]:
            async with self.client() as client:
                return await client.batches_at(wanted)

        found = run_query(self._bootstrap, ask) if wanted else {}
        return {
            index: head
            for index, data in found.items()
            if len(data) >= HEADER_SIZE and (head := head_at(data, 0, 0)) is not None
        }

    # In a worker

    async def _fetch_all(self, spans: Sequence[Span], shelf: "_Shelf") -> None:
        waiting = list(reversed(spans))

        async def some(client: TopicClient) -> None:
            while waiting:
                await self._fetch(client, waiting.pop(), shelf)

        try:
            async with self.known() as client, asyncio.TaskGroup() as group:
                for _ in range(min(_AT_ONCE, len(waiting))):
                    group.create_task(some(client))
        except BaseExceptionGroup as several:
            raise several.exceptions[0] from None
        finally:
            shelf.close()

    async def _fetch(self, client: TopicClient, span: Span, shelf: "_Shelf") -> None:
        """The batches of a span, from the next offset that is there each time. A tail that was cut
        meanwhile ends it; the next plan finds that.
        """
        index, offset = span.partition, span.start
        limit = FIRST_BYTES
        silent_since: float | None = None
        while offset < span.end:
            answer = (await client.fetch({index: offset}, limit_bytes=limit, wait_ms=_WAIT_MS))[
                index
            ]
            if answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                start = (await client.offsets([index], EARLIEST))[index]
                if start <= offset:
                    return
                _LOG.warning("%s", gap(index, offset, min(start, span.end)).text)
                offset = start
                continue
            data = answer.records or b""
            _, passed = skim(data)
            if passed is None:
                log_end = await client.log_end(index)
                if log_end is not None and log_end <= offset:
                    return
                silent_since = await self._wait(span, offset, silent_since)
                limit = self._larger(data, limit, index, offset)
                continue
            await shelf.put((span, offset, data))
            done = max(1, passed.following - offset)
            left = (span.end - passed.following) * len(data) * 5 // (done * 4)
            limit = max(LEAST_BYTES, min(PIECE_BYTES, left + (1 << 14)))
            offset, silent_since = max(offset, passed.following), None

    async def _wait(self, span: Span, offset: int, since: float | None) -> float:
        """Wait a little for a leader that has the records and does not give them: a new leader does
        not know at once what its followers have. Returns since when that is so.
        """
        now = asyncio.get_running_loop().time()
        if since is not None and now - since > PATIENCE_S:
            raise SourceError(
                f"partition {span.partition} of {self._topic} gives nothing from offset {offset} "
                f"on, {span.end} was its end: its leader lags behind; run again"
            )
        await asyncio.sleep(_PAUSE_S)
        return now if since is None else since

    def _larger(self, data: bytes, limit: int, index: int, offset: int) -> int:
        """What a batch needs that was cut: brokers before KIP-74 give the beginning of one."""
        if len(data) < HEADER_SIZE:
            return limit
        head = head_at(data, 0, 0)
        if head is None:
            raise SourceError(
                f"partition {index} of {self._topic} has something at offset {offset} that is no "
                "batch: it may be of a format older than that of Kafka 0.11"
            )
        return max(limit, head.length)


class _Shelf:
    """A few pieces that wait for their reader. A task that fetches more waits for room."""

    def __init__(self) -> None:
        self._pieces: asyncio.Queue[Piece | None] = asyncio.Queue()
        self._room = asyncio.Semaphore(_READY)

    async def put(self, piece: Piece) -> None:
        await self._room.acquire()
        self._pieces.put_nowait(piece)

    async def take(self) -> Piece | None:
        """The next piece, None when there will be no more."""
        piece = await self._pieces.get()
        self._room.release()
        return piece

    def close(self) -> None:
        """No more will come. Never waits: it is called when fetching fails, too."""
        self._pieces.put_nowait(None)
