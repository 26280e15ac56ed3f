# SPDX-License-Identifier: Apache-2.0
"""Consumer: the records of topics, alone or as a member of a group, for asyncio programs."""

import asyncio
import contextlib
import logging
import sys
from collections.abc import AsyncIterator, Coroutine, Iterable, Mapping
from functools import partial
from types import TracebackType
from typing import Any, Literal, Self, Unpack

from kohort.client import topic_partitions as tp
from kohort.client.admin import CommittedOffset, FoundOffset
from kohort.client.admin.topics import When, list_offsets
from kohort.client.consumer.assignor import Assignor, checked_assignors
from kohort.client.consumer.assignor_runner import AssignorRunner
from kohort.client.consumer.committing import Offsets, check_offset, offsets_to_commit
from kohort.client.consumer.group import Group
from kohort.client.consumer.group_metadata import GroupMetadata, group_metadata
from kohort.client.consumer.group_offsets import GroupOffsets, Identity, OffsetsToCommit
from kohort.client.consumer.in_flight_records import InFlightRecords
from kohort.client.consumer.missing_topics import MissingTopics
from kohort.client.consumer.ownership import Ownership, RebalanceListener, check_listener
from kohort.client.consumer.poller import CallerTask, Poller, caller_task
from kohort.client.consumer.protocols import TopicSubscription
from kohort.client.consumer.settings import ConsumerOptions, ConsumerSettings
from kohort.client.fetcher import AnyRecord, Fetcher, OffsetAndEpoch
from kohort.client.lifetime import Client
from kohort.client.network.environment import environment
from kohort.client.network.metadata import Metadata
from kohort.client.settings import DEFAULT_SERVER, client_settings, short_repr
from kohort.client.topic_partitions import ByPartition, Partition
from kohort.errors import ApiError
from kohort.terms import TopicPartition

logger = logging.getLogger(__name__)

_TICK_S = 0.25
_running_task = asyncio.current_task
_SILENT_S = 1.0  # how long `close` may take before it says what it waits for


class Consumer(Client):
    """Reads topics of any Kafka-compatible cluster.

        async with Consumer("orders", group_id="billing") as consumer:
            async for record in consumer:
                await bill(record.value)

    With a group it shares the partitions with the other members (KIP-848 where the broker has it,
    else the classic protocol), begins at the committed offsets, and commits what was processed.
    Asking for the next record, or for the next batch, says that what came before is processed: so
    each record is processed at least once, whatever happens. A partition that is taken away is
    given up when the application has come back from its records, or has stayed away for too long.

    One task asks for records, and others of its event loop may call everything else; another loop
    is refused by RuntimeError. Offsets are those of the next record. Waiting calls raise ApiError
    (REQUEST_TIMED_OUT and others) where the cluster refuses.

    Args:
        topics: their names. There are none with `pattern` and for `assign`.
        bootstrap_servers: as for AdminClient; a dict of settings under upstream's names will do.
        pattern: subscribe to the topics whose whole names this expression (RE2) matches.
        listener: is told of rebalances.
        assignors: compute the assignments of the group in its members, the preferred one first;
            for brokers that have this (docs/client-assignors.md).
        settings: those of `ConsumerSettings`: upstream's names, with underscores for the dots, and
            those of TLS and SASL as for AdminClient.

    Raises:
        ValueError: a setting is unknown or out of bounds, or settings contradict each other.
    """

    def __init__(
        self,
        *topics: str,
        bootstrap_servers: str | Iterable[str] | Mapping[str, Any] = DEFAULT_SERVER,
        pattern: str | None = None,
        listener: RebalanceListener | None = None,
        assignors: Iterable[Assignor] = (),
        **settings: Unpack[ConsumerOptions],
    ) -> None:
        self.settings, common = client_settings(ConsumerSettings, bootstrap_servers, settings)
        self._addresses = common.addresses
        self.settings.check()
        setup_ms = self.settings.socket_connection_setup_timeout_ms
        self._cluster = common.cluster(self.settings.client_id, setup_ms)
        self._metadata = Metadata(self._cluster, max_age_s=self.settings.metadata_max_age_ms / 1000)
        self._fetcher = Fetcher(self._cluster.another(), self._metadata, self.settings)
        self._in_flight = InFlightRecords()
        self._monotonic = environment().clock.monotonic
        self._offsets: GroupOffsets | None = None
        if self.settings.group_id is not None:
            self._offsets = GroupOffsets(
                *(self._cluster, self.settings.group_id, self._identity),
                on_refusal=self._refused_as,
                on_unknown=self._fetcher.look_up,
            )
        self._ownership = Ownership(self._fetcher, self._in_flight, self.settings, self._offsets)
        own = checked_assignors(assignors)
        if own and self.settings.group_protocol == "classic":
            raise ValueError("assignors of members need KIP-848, and group_protocol is classic")
        runner = AssignorRunner(
            *(own, self._cluster, self.settings.group_id or "", self._identity),
            timeout_s=self.settings.assignor_timeout_ms / 1000,
            fallback=self.settings.assignor_fallback,
        )
        clusters = self._cluster.another
        self._group = Group(self.settings, clusters, self._metadata, self._ownership, runner)
        parts = (self._fetcher, self._in_flight, self._ownership)
        self._poller = Poller(*parts, self.settings.max_poll_records, self._group.on_poll)
        self._ownership.listen(listener)
        self._missing = MissingTopics(
            *(self._metadata, self._unread, self._group.missing),
            timeout_s=self.settings.request_timeout_ms / 1000,
            on_denied=partial(self._ownership.refused, for_good=False),
        )
        self._metadata.on_count = self._group.topic_changed
        self._loop: asyncio.AbstractEventLoop | None = None
        self._chosen = False  # partitions are chosen by `assign`
        self._ticking: asyncio.Task[None] | None = None
        self._watching: asyncio.Task[None] | None = None
        self._commits: dict[asyncio.Task[None], None] = {}  # that go on beside the application
        self._closed = False
        self._ended = asyncio.Event()  # `close` is over
        if topics or pattern is not None:
            self._wish(topics, pattern)

    # Beginning and end

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close(processed=kind is None and self._poller.is_processed)

    async def start(self) -> None:
        """Reach the cluster, and ask to be taken into the group. Raises ApiError, and what an
        assignor raises when it is asked for metadata. The consumer is closed then.
        """
        self._check_open()
        try:
            await self._cluster.reach(self._deadline())
            self._begin()
            if self._group.wanted is not None:
                self._group.enter()
        except BaseException:
            await self.close()
            raise

    async def close(self, *, processed: bool | None = None, for_good: bool = False) -> None:
        """Commit what was processed (with auto-commit), leave the group, close all connections.

        `processed` says whether what was handed out last counts as processed. Without it that is so
        where no exception is being handled, and the task that asked for it closes the consumer or
        has come to its end. A static member keeps its place until its session ends, unless it
        leaves `for_good`.

        What is not done within `close_timeout_ms` is given up with a warning. A second call waits
        for the first.
        """
        self._check_loop()
        if self._closed:
            if not self._tells_listener():
                await self._ended.wait()
            return
        self._check_outside("close")
        self._closed = True
        self._poller.end()
        if self._counts_as_processed() if processed is None else processed:
            self._in_flight.mark_processed()
        self._ownership.hurry = True
        limit_s = self.settings.close_timeout_ms / 1000
        patience = asyncio.get_running_loop().call_later(
            _SILENT_S, lambda: logger.warning("closing waits for %s", self._group.waits_for())
        )
        try:
            async with asyncio.timeout(limit_s):
                if self._chosen and self._ownership.owned:
                    await self._ownership.revoked(self._ownership.owned, lambda: True)
                await self._group.leave(for_good=for_good)
        except TimeoutError:
            logger.warning(
                "group %s was not left within close_timeout_ms (%d): still waiting for %s",
                self.settings.group_id,
                self.settings.close_timeout_ms,
                self._group.waits_for(),
            )
        finally:
            patience.cancel()
            try:
                await self._let_go()
            finally:
                self._ended.set()

    # What to read

    def subscribe(
        self,
        *topics: str,
        pattern: str | None = None,
        listener: RebalanceListener | None = None,
    ) -> None:
        """Share these topics with the group from now on, in place of those before.

        Raises ValueError without a group, without a topic, and after `assign`; TypeError for a
        listener that is none.
        """
        self._check_open()
        check_listener(listener)
        self._wish(topics, pattern)
        self._ownership.forget_refusals()
        self._ownership.listen(listener)
        if self._ticking is not None:
            self._group.enter()

    async def unsubscribe(self) -> None:
        """Commit what was processed (with auto-commit), and leave the group or let go of what was
        assigned. `subscribe` or `assign` may follow.
        """
        self._check_open()
        self._check_outside("unsubscribe")
        self._ownership.forget_refusals()
        async with self._without_waiting():
            if self._chosen and self._ownership.owned:
                await self._ownership.revoked(self._ownership.owned, lambda: True)
            await self._group.leave(for_good=False)
        self._group.wanted = None
        self._chosen = False

    async def assign(self, partitions: Iterable[Partition]) -> None:
        """Read these partitions and no others, whatever members of the group have. With a group
        they begin at its committed offsets.

        Raises ValueError after `subscribe`, and ApiError where the offsets cannot be read.
        """
        self._check_open()
        self._check_outside("assign")
        if self._group.wanted is not None:
            raise ValueError(f"the consumer subscribes to {self._group.wanted}: unsubscribe first")
        wanted = frozenset(tp.readable_partitions(partitions))
        self._chosen = True
        self._begin()
        async with self._without_waiting():
            gone = self._ownership.owned - wanted
            if gone:
                await self._ownership.revoked(gone, lambda: True)
        new = sorted(wanted - self._ownership.owned)
        if new:
            await self._ownership.assigned(new, deadline=self._deadline())

    def ask_for_assignment(self, reason: int = 1) -> None:
        """Ask for another assignment by an assignor of the members, which is given `reason` (1 to
        127; another one than last time) and the metadata of now. Raises ValueError.
        """
        if not 0 < reason < 128:
            raise ValueError(f"reason is {reason}, expected 1 to 127")
        self._group.ask_for_assignment(reason)

    def subscription(self) -> TopicSubscription | None:
        """What was subscribed to."""
        return self._group.wanted

    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions that the consumer has now."""
        return self._ownership.owned

    # Records

    def __aiter__(self) -> Self:
        return self

    def __anext__(self) -> Coroutine[Any, Any, AnyRecord]:
        # Who calls is who asks, whatever task awaits it: `asyncio.wait_for` makes one of its own
        # below Python 3.12. That costs one Python call a record, of those that are there already.
        try:
            task = _running_task()
        except RuntimeError:  # the coroutine is handed to a loop that begins with it
            task = None
        return self._next(task)

    async def _next(self, task: CallerTask) -> AnyRecord:
        if self._monotonic() < self._poller.turn_at and task is self._poller.reader:
            record = self._in_flight.take()
            if record is not None:
                return record
        if self._closed:
            raise StopAsyncIteration
        self._check_asks()
        try:
            return await self._poller.one(task)
        except ValueError:
            if self._closed:  # by another task, meanwhile
                raise StopAsyncIteration from None
            raise

    def getone(self) -> Coroutine[Any, Any, AnyRecord]:
        """The next record of any partition; waits for it. Raises ValueError once it is closed.

        The task that calls is the one that asks, also where another one awaits it.
        """
        return self._one(caller_task())

    async def _one(self, task: CallerTask) -> AnyRecord:
        try:
            return await self._next(task)
        except StopAsyncIteration:
            raise ValueError("the consumer is closed") from None

    def getmany(
        self, *, timeout_ms: int = 0, max_records: int | None = None
    ) -> Coroutine[Any, Any, dict[TopicPartition, list[AnyRecord]]]:
        """The next records of some partitions, in the order of each: at most `max_records`, else
        `max_poll_records`. Waits up to `timeout_ms` for the first; empty when there are none.
        """
        return self._many(caller_task(), timeout_ms, max_records)

    async def _many(
        self, task: CallerTask, timeout_ms: int, max_records: int | None
    ) -> dict[TopicPartition, list[AnyRecord]]:
        if max_records is not None and (not isinstance(max_records, int) or max_records < 1):
            raise ValueError(f"max_records is {short_repr(max_records)}, expected 1 or more")
        self._check_asks()
        return await self._poller.many(max_records, timeout_ms, task)

    # Places

    async def position(self, partition: Partition) -> int:
        """The offset of the next record that is handed out. Waits until it is known.

        Raises ValueError for a partition that is not assigned.
        """
        self._check_usable()
        deadline = self._deadline()
        place = tp.topic_partition_of(partition)
        while True:
            found = self._ownership.position(place)
            if found is not None:
                return found.offset
            if not await self._cluster.pause(0, deadline):
                raise self._late(f"the position of {place}")

    def seek(self, partition: Partition, offset: int | Literal["earliest", "latest"]) -> None:
        """Go on from this offset, or from the first or behind the last record there is.

        Raises ValueError for a partition that is not assigned, and for an offset below 0.
        """
        self._check_loop()
        place = tp.topic_partition_of(partition)
        self._ownership.check([place])
        if offset not in ("earliest", "latest"):
            check_offset(place, offset)
        self._in_flight.on_seek(place)
        self._fetcher.seek(place, offset if isinstance(offset, str) else OffsetAndEpoch(offset))

    async def seek_to_time(self, times: ByPartition[When]) -> dict[TopicPartition, FoundOffset]:
        """Go on from the first record that is not older: a datetime or milliseconds of 1970; at
        the end of a partition that has none. Raises ValueError and ApiError.
        """
        self._ownership.check(tp.by_topic_partition("times", times))
        found = await self.offsets_for_times(times)
        for place, offset in found.items():
            self.seek(place, "latest" if offset.offset is None else offset.offset)
        return found

    def pause(self, *partitions: Partition) -> None:
        """Hand out nothing of these. Raises ValueError for one that is not assigned."""
        self._check_loop()
        self._ownership.pause(tp.topic_partitions_of(partitions))

    def resume(self, *partitions: Partition) -> None:
        """Hand these out again. Raises ValueError for one that is not assigned."""
        self._check_loop()
        self._ownership.resume(tp.topic_partitions_of(partitions))

    def paused(self) -> frozenset[TopicPartition]:
        """What was paused and is still assigned."""
        return self._ownership.paused

    def lag(self, partition: Partition) -> int | None:
        """How many offsets the next record is behind the end, as last fetched; None while unknown.

        With `read_committed` the end is the last stable offset.
        """
        place = tp.topic_partition_of(partition)
        position = self._ownership.position(place)
        end = self._fetcher.end(place)
        return None if position is None or end is None else max(0, end - position.offset)

    async def offsets_for_times(
        self, times: ByPartition[When]
    ) -> dict[TopicPartition, FoundOffset]:
        """For each partition the first record that is not older; "earliest" and "latest" will do
        as times. Raises ApiError.
        """
        self._check_usable()
        found = await list_offsets(
            self._cluster,
            times,
            read_committed=self.settings.isolation_level == "read_committed",
            deadline=self._deadline(),
        )
        return found.all()

    # Committing

    async def commit(self, offsets: Offsets | None = None) -> None:
        """Commit these, or all that was handed out; in a rebalance listener all that is processed.
        The call is over when they are committed.

        Raises ApiError: UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH and ILLEGAL_GENERATION say that
        others have the partitions now and will see the records again.
        """
        await self._commit(self._offsets_to_commit(offsets))

    def commit_nowait(self, offsets: Offsets | None = None) -> "asyncio.Task[None]":
        """Begin to commit, and go on. Await the task to know what came of it; an error that nobody
        looks at is logged. Commits reach the broker in the order of these calls. One that `close`
        has no time for is cancelled: nobody knows what came of it.
        """
        task = asyncio.create_task(self._commit(self._offsets_to_commit(offsets)))
        self._commits[task] = None
        task.add_done_callback(self._commits.pop)
        task.add_done_callback(_log_failure)
        return task

    async def committed(
        self, *partitions: Partition
    ) -> dict[TopicPartition, CommittedOffset | None]:
        """The committed offset of each, None where there is none. Raises ApiError."""
        self._check_usable()
        places = tp.topic_partitions_of(partitions)
        return await self._group_offsets().fetch(places, self._deadline())

    def group_metadata(self) -> GroupMetadata:
        """For `Producer.send_offsets_to_transaction`, which is refused where records in work were
        lost meanwhile. Raises ValueError without a group.
        """
        self._group_offsets()
        who = self._group.identity() or Identity(instance_id=self.settings.group_instance_id)
        who = who.outdated() if self._ownership.lost_in_work else who
        return group_metadata(self.settings.group_id or "", who, self._refused_elsewhere)

    # Inside

    def _details(self) -> Mapping[str, object]:
        wanted = str(self._group.wanted or "")
        return {"group_id": self.settings.group_id, "reads": wanted}

    async def _let_go(self) -> None:
        """End all tasks and connections, also where this is cancelled."""
        # Commits would open connections anew.
        tasks = [*filter(None, (self._ticking, self._watching)), *self._commits]
        for task in tasks:
            task.cancel()
        async with contextlib.AsyncExitStack() as later:
            for part in (self._cluster, self._fetcher, self._group):  # the last one first
                later.push_async_callback(part.close)
            await asyncio.gather(*tasks, return_exceptions=True)
            if self._ownership.trouble is not None:  # nobody asks for records any more
                logger.error("while closing", exc_info=self._ownership.trouble)

    def _unread(self) -> list[str]:
        """Topics that were subscribed to, and of which this member has nothing yet."""
        read, wanted = {one.topic for one in self._ownership.owned}, self._group.wanted
        return [] if wanted is None else [name for name in wanted.names if name not in read]

    def _identity(self) -> Identity | None:
        return self._group.identity()

    def _refused_as(self, who: Identity, error: ApiError) -> None:
        self._group.refused_as(who, error)

    def _refused_elsewhere(self, who: Identity, error: ApiError) -> None:
        """A producer of any thread was refused in our name."""
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # its loop is closed
                self._loop.call_soon_threadsafe(self._group.refused_as, who, error)

    def _deadline(self) -> float:
        timeout_s = self.settings.default_api_timeout_ms / 1000
        return asyncio.get_running_loop().time() + timeout_s

    def _offsets_to_commit(self, offsets: Offsets | None) -> OffsetsToCommit:
        """What is to be committed as things are at this moment."""
        self._check_usable()
        self._group_offsets()
        handed = not self._tells_listener()  # who tells it does not know what is in work
        return offsets_to_commit(self._fetcher, self._ownership, offsets, handed=handed)

    async def _commit(self, wanted: OffsetsToCommit) -> None:
        await self._group_offsets().commit(wanted.offsets, self._deadline(), wanted.ids.__getitem__)
        self._ownership.note(wanted.offsets)
        if wanted.refusal is not None:
            raise wanted.refusal

    def _counts_as_processed(self) -> bool:
        return sys.exception() is None and self._poller.is_processed

    @contextlib.asynccontextmanager
    async def _without_waiting(self) -> AsyncIterator[None]:
        """Partitions are given up that the application may work on: it is back from them, or they
        are not processed. Nobody waits for it, as it may wait for the call in turn.
        """
        if self._counts_as_processed():
            await self._poller.back()
        self._ownership.hurry = True
        try:
            yield
        finally:
            self._ownership.hurry = self._closed

    def _check_loop(self) -> None:
        """Its tasks and connections belong to one event loop, and nothing of it to two threads."""
        if self._loop is not None and asyncio.get_running_loop() is not self._loop:
            raise RuntimeError("the consumer belongs to the event loop in which it was started")

    def _check_open(self) -> None:
        self._check_loop()
        if self._closed:
            raise ValueError("the consumer is closed")

    def _check_usable(self) -> None:
        """Open, or a listener asks while the consumer closes."""
        if not self._tells_listener():
            self._check_open()

    def _check_outside(self, call: str) -> None:
        """A listener is waited for before anything goes on: it cannot wait for that in turn."""
        if self._tells_listener():
            raise RuntimeError(f"{call} inside a rebalance listener would wait for itself")

    def _tells_listener(self) -> bool:
        telling = self._ownership.telling
        return telling is not None and telling is asyncio.current_task()

    def _check_asks(self) -> None:
        self._check_open()
        self._check_outside("asking for records")
        if self._ticking is None:
            raise ValueError("the consumer is not started: use `async with`, or `start`")

    def _group_offsets(self) -> GroupOffsets:
        if self._offsets is None:
            raise ValueError("the consumer has no group: give it a group_id")
        return self._offsets

    def _wish(self, topics: Iterable[str], pattern: str | None) -> None:
        wanted = TopicSubscription.of(topics, pattern)
        if self.settings.group_id is None:
            raise ValueError("to subscribe needs a group_id; `assign` does without")
        if self._chosen:
            raise ValueError("partitions are assigned by `assign`: unsubscribe first")
        self._group.wanted = wanted

    def _begin(self) -> None:
        if self._ticking is None:
            self._loop = asyncio.get_running_loop()
            self._poller.start(self._loop.time())
            self._ticking = asyncio.create_task(self._tick())
            self._watching = asyncio.create_task(self._missing.watch())

    async def _tick(self) -> None:
        """What has to be done from time to time."""
        loop = asyncio.get_running_loop()
        settings = self.settings
        commit_at = loop.time() + settings.auto_commit_interval_ms / 1000
        look_at = loop.time() + settings.metadata_max_age_ms / 1000
        while True:
            await asyncio.sleep(_TICK_S)
            now = loop.time()
            if self._poller.waits:
                self._group.on_poll_wait()  # it was still leaving, perhaps, when it was asked
            away_s = self._poller.away_s(now)
            if away_s * 1000 > settings.max_poll_interval_ms:
                self._group.on_poll_timeout(away_s)
            if settings.enable_auto_commit and now >= commit_at:
                commit_at = now + settings.auto_commit_interval_ms / 1000
                if self._group.identity() is not None:
                    limit_s = settings.request_timeout_ms / 1000
                    await self._ownership.commit_processed(self._ownership.owned, limit_s)
            if now >= look_at:
                look_at = now + settings.metadata_max_age_ms / 1000
                await self._group.look_again()

    def _late(self, what: str) -> TimeoutError:
        return TimeoutError(f"{what} is not known after {self.settings.default_api_timeout_ms} ms")


def _log_failure(task: "asyncio.Task[None]") -> None:
    with contextlib.suppress(asyncio.CancelledError):
        if (error := task.exception()) is not None:
            logger.warning("not committed: %s", error)
