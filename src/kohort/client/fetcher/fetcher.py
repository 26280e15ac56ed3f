# SPDX-License-Identifier: Apache-2.0
"""Fetching: a task for each broker keeps records ready, and one finds out what is missing.

Every broker is asked for all of its partitions at once, with a request that waits for records.
These connections are the fetcher's own, so that nothing else waits behind such a request.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping
from typing import Any

from kohort.client.fetcher.buffer import Buffer
from kohort.client.fetcher.decoding import RecordError
from kohort.client.fetcher.partition_lookup import (
    RETRY_BACKOFF_S,
    PartitionLookup,
    log_recreated,
    out_of_range,
)
from kohort.client.fetcher.partition_state import Reset, TopicPartitionState
from kohort.client.fetcher.record import AnyRecord, OffsetAndEpoch
from kohort.client.fetcher.session import BROKEN, PartitionFetch, Session, everything
from kohort.client.fetcher.settings import FetchSettings
from kohort.client.log_deduplication import LogDeduplicator
from kohort.client.network.cluster import Cluster, Node
from kohort.client.network.denials import explained
from kohort.client.network.metadata import CachedTopic, Metadata
from kohort.errors import ApiError, AuthenticationError, ErrorCode, KohortError, api_error
from kohort.terms import NO_TOPIC_ID, TopicId, TopicPartition
from kohort.wire.messages.fetch import FetchRequest, FetchResponse, PartitionData

logger = logging.getLogger(__name__)

BY_NAME = 12  # the last version that names topics
_REPLICA_S = 300.0  # how long a replica is read from before the leader is asked again


class _Broker:
    """What one broker is asked for: by a request that waits for records, and by one beside it that
    does not. `work` is set when there may be more.
    """

    def __init__(self) -> None:
        self.work = asyncio.Event()
        self.late = asyncio.Event()  # the same, for what is asked beside
        self.waits_for: dict[TopicPartition, PartitionFetch] = {}
        self.beside: dict[TopicPartition, PartitionFetch] = {}

    def go_on(self) -> None:
        self.work.set()
        self.late.set()


class Fetcher:
    """Keeps records of partitions ready, each from its place on, within a bound of bytes.

    `cluster` is for fetches alone; look-ups go to that of `metadata`. Every method but `topic_ids`,
    `wait` and `close` is over at once. Positions are those of the next record that `take` hands
    out.

    A topic that was deleted and made anew is another one, with offsets of its own: it is read from
    its first record on, or not at all where `auto_offset_reset` is none. `on_topic_recreated` hears
    of it.
    """

    def __init__(self, cluster: Cluster, metadata: Metadata, settings: FetchSettings) -> None:
        self._repeats = LogDeduplicator()
        self._cluster = cluster
        self._metadata = metadata
        self._settings = settings
        self._finding = PartitionLookup(metadata, settings)
        self._finding.on_topic_recreated = self._topic_recreated
        self.on_topic_recreated: Callable[[TopicPartition], None] = lambda _: None
        self._states: dict[TopicPartition, TopicPartitionState] = {}  # in the order of their turns
        self._ready = asyncio.Event()
        self._missing = asyncio.Event()  # something has to be found out
        self._brokers: dict[int, _Broker] = {}  # by the id of the node
        self._tasks: dict[asyncio.Task[None], None] = {}  # ended in the order of their begin
        self._finder: asyncio.Task[None] | None = None
        self._left: dict[TopicPartition, tuple[TopicId, int | None]] = {}  # what was given up

    # What to read

    def add(
        self,
        places: Mapping[TopicPartition, OffsetAndEpoch | None],
        ids: Mapping[TopicPartition, TopicId] | None = None,
        *,
        bound: bool = False,
    ) -> None:
        """Read these as well: from a place on, or from where `auto_offset_reset` says.

        `ids` are the topics that these are places of, where that is known. With `bound` no other
        topic of the name will do.
        """
        for partition, place in places.items():
            state = TopicPartitionState(partition, self._settings)
            state.topic_id = (ids or {}).get(partition, NO_TOPIC_ID)
            state.is_bound = bound and state.topic_id != NO_TOPIC_ID
            former = self._former(partition, state.topic_id)
            if place is None and former is not None:
                state.topic_recreated(state.topic_id)
                log_recreated(state, *former)
            else:
                state.go_to(place)
            self._states[partition] = state
        self._look()

    def remove(self, partitions: Collection[TopicPartition]) -> None:
        """Read these no more, and forget what is ready."""
        for partition in sorted(partitions):
            state = self._states.pop(partition, None)
            if state is not None and state.topic_id != NO_TOPIC_ID:
                at = state.position
                self._left[partition] = state.topic_id, None if at is None else at.offset
        self._go_on()

    def seek(self, partition: TopicPartition, where: OffsetAndEpoch | Reset) -> None:
        """Go on from there. Raises KeyError for a partition that was not added."""
        self._states[partition].go_to(where)
        self._look()
        self._go_on()

    def pause(self, partitions: Collection[TopicPartition]) -> None:
        """Hand out nothing of these. What is ready stays."""
        for partition in partitions:
            self._states[partition].paused = True

    def resume(self, partitions: Collection[TopicPartition]) -> None:
        """Hand these out again."""
        for partition in partitions:
            self._states[partition].paused = False
        self._look()
        self._go_on()
        self.nudge()

    # What is known

    def position(self, partition: TopicPartition) -> OffsetAndEpoch | None:
        """The next record that `take` hands out; None while it is looked up, or not added."""
        state = self._states.get(partition)
        return None if state is None else state.position

    def topic_id(self, partition: TopicPartition) -> TopicId:
        """The topic that the position is one of; NO_TOPIC_ID while that is not known."""
        state = self._states.get(partition)
        return NO_TOPIC_ID if state is None else state.topic_id

    def look_up(self, partitions: Iterable[TopicPartition]) -> None:
        """Somebody was told that these are not there: ask again who leads them, and which topics
        have their names.
        """
        for topic in {partition.topic for partition in partitions}:
            self._metadata.outdated(topic)
        self._look_up(partitions)

    async def topic_ids(
        self, partitions: Collection[TopicPartition], deadline: float
    ) -> dict[TopicPartition, TopicId]:
        """Which topics have these names now; nothing for what nobody tells."""
        names = {partition.topic for partition in partitions}
        for name in names:
            self._metadata.outdated(name)
        try:
            topics = await self._metadata.topics(names, deadline)
        except KohortError as error:
            logger.info("ids of topics are not known: %s", error)
            return {}
        found: dict[TopicPartition, TopicId] = {}
        for partition in partitions:
            topic = topics[partition.topic]
            if isinstance(topic, CachedTopic) and topic.id != NO_TOPIC_ID:
                found[partition] = topic.id
        return found

    def end(self, partition: TopicPartition) -> int | None:
        """Where a reader of these settings reaches the end, as last fetched: the last stable offset
        or the high watermark. None before the first answer.
        """
        state = self._states.get(partition)
        if state is None:
            return None
        return state.last_stable if self._settings.reads_committed else state.high_watermark

    # Records

    def take(self, most: int) -> dict[TopicPartition, list[AnyRecord]]:
        """Up to so many records, partition by partition in turn. Never waits.

        Raises the error of a partition (ApiError, or RecordError for one record) when no other has
        anything to hand out, each time, until somebody seeks: its position stays.
        """
        found: dict[TopicPartition, list[AnyRecord]] = {}
        served = []
        for partition, state in self._states.items():
            if most <= 0:
                break
            if not state.is_ready:
                continue
            try:
                records = state.take(most)
            except BaseException:  # a deserializer ends the program, and nobody gets what is found
                state.go_to(state.position)
                for before, taken in found.items():
                    self._states[before].go_to(
                        OffsetAndEpoch(taken[0].offset, taken[0].leader_epoch)
                    )
                self._look()
                raise
            if records:
                found[partition] = records
                most -= len(records)
            served.append(partition)
        for partition in served:  # whoever had its turn is the last the next time
            self._states[partition] = self._states.pop(partition)
        if served:
            self._go_on()
        if not found:
            for state in self._states.values():
                if state.trouble is not None and not state.paused:
                    raise state.trouble
        return found

    async def wait(self, deadline: float) -> bool:
        """Until `take` may have something or somebody calls `nudge`; False at the deadline."""
        if any(state.is_ready for state in self._states.values()):
            return True
        self._ready.clear()
        try:
            async with asyncio.timeout_at(deadline):
                await self._ready.wait()
        except TimeoutError:
            return False
        return True

    def nudge(self) -> None:
        """Whoever waits looks again."""
        self._ready.set()

    async def close(self) -> None:
        """End all tasks and connections."""
        tasks = [*self._tasks, *([self._finder] if self._finder else [])]
        for task in tasks:
            task.cancel()
        try:
            await asyncio.gather(*tasks, return_exceptions=True)
        finally:
            await self._cluster.close()

    # Finding out what is missing

    def _look(self) -> None:
        self._missing.set()
        if self._finder is None and self._states:
            self._finder = asyncio.create_task(self._find())

    async def _find(self) -> None:
        """Ask who leads partitions, and have each leader asked for itself: none waits for another
        one that is slow.
        """
        loop = asyncio.get_running_loop()
        while True:
            self._missing.clear()
            now = loop.time()
            due = [
                state
                for state in self._states.values()
                if _misses(state) and state.not_before <= now
            ]
            try:
                await self._finding.leaders([state for state in due if state.leader is None])
                self._repeats.end()
            except AuthenticationError as error:
                _refuse(due, error)
            except KohortError as error:
                if self._repeats.is_due(str(error)):
                    logger.info("leaders are not known yet: %s", error)
                await asyncio.sleep(RETRY_BACKOFF_S)
            except Exception:
                logger.exception("leaders are not known yet")
                await asyncio.sleep(RETRY_BACKOFF_S)
            by_leader: dict[Node, list[TopicPartitionState]] = {}
            for state in due:
                if state.leader is not None and _misses(state):
                    state.is_sought = True
                    by_leader.setdefault(state.leader, []).append(state)
            for leader, states in by_leader.items():
                self._spawn(self._ask_leader(leader, states))
            self._found(due)
            waits = any(map(_misses, self._states.values()))
            try:
                async with asyncio.timeout(RETRY_BACKOFF_S if waits else None):
                    await self._missing.wait()
            except TimeoutError:
                continue

    def _topic_recreated(self, partition: TopicPartition) -> None:
        self.on_topic_recreated(partition)

    def _former(
        self, partition: TopicPartition, topic_id: TopicId
    ) -> tuple[TopicId, int | None] | None:
        """What was read under this name, where that was another topic."""
        if topic_id == NO_TOPIC_ID:
            return None
        if partition in self._left:
            before = self._left[partition]
            return None if before[0] == topic_id else before
        for other, (former, _) in self._left.items():
            if other.topic == partition.topic and former != topic_id:
                return former, None
        return None

    async def _ask_leader(self, leader: Node, states: Collection[TopicPartitionState]) -> None:
        try:
            await self._finding.places(leader, states)
        except Exception:
            logger.exception("%s is asked again", leader)
            self._look_up(state.partition for state in states)
        finally:
            for state in states:
                state.is_sought = False
            self._found(states)
            self._missing.set()

    def _found(self, states: Collection[TopicPartitionState]) -> None:
        self._serve_all()
        if any(state.error is not None for state in states):
            self.nudge()

    def _serve_all(self) -> None:
        """A task for each broker that has something of ours."""
        for state in self._states.values():
            node = state.node
            if node is not None and node.id not in self._brokers:
                broker = self._brokers[node.id] = _Broker()
                self._spawn(self._serve(node.id, broker))
                self._spawn(self._serve_beside(node.id, broker))
        self._go_on()

    # Asking a broker

    def _go_on(self) -> None:
        for broker in self._brokers.values():
            broker.go_on()

    async def _serve(self, node_id: int, broker: _Broker) -> None:
        """Ask one broker for whatever is wanted of it, one request after the other."""
        session = Session()
        while True:
            broker.work.clear()
            node, broker.waits_for = self._wanted(node_id, broker.beside)
            if node is None:
                await self._idle(broker.work)
                continue
            answered = await self._try(node, broker.waits_for, session)
            broker.waits_for = {}
            if answered:
                await asyncio.sleep(0)  # whoever waits for records is first
            else:
                session.broke()
                await asyncio.sleep(RETRY_BACKOFF_S)

    async def _serve_beside(self, node_id: int, broker: _Broker) -> None:
        """What was added, resumed or sought, or was full, while a request waits for records has not
        to wait for that. It is asked for beside, until the next request names it as well.
        """
        while True:
            await broker.late.wait()
            broker.late.clear()
            if not broker.waits_for:
                continue
            node, broker.beside = wanted = self._wanted(node_id, broker.waits_for)
            if node is None:
                continue
            answered = await self._try(node, broker.beside)
            broker.beside = {}
            if not answered or self._wanted(node_id, broker.waits_for) == wanted:
                await asyncio.sleep(RETRY_BACKOFF_S)  # it has no records either
            broker.go_on()

    async def _try(
        self,
        node: Node,
        wanted: Mapping[TopicPartition, PartitionFetch],
        session: Session | None = None,
    ) -> bool:
        """Whether the broker has answered."""
        try:
            await self._ask(node, dict(wanted), session)
        except AuthenticationError as error:
            asked = [self._states[partition] for partition in wanted if partition in self._states]
            _refuse(asked, error)
            self._found(asked)
            return False
        except KohortError as error:
            logger.info("fetch from %s: %s", node, error)
            self._look_up(wanted)
            return False
        except Exception:
            logger.exception("fetch from %s", node)
            return False
        return True

    async def _idle(self, work: asyncio.Event) -> None:
        """Until there may be something to ask for; a partition that rests is looked at again."""
        now = asyncio.get_running_loop().time()
        rests = any(state.not_before > now for state in self._states.values())
        try:
            async with asyncio.timeout(RETRY_BACKOFF_S if rests else None):
                await work.wait()
        except TimeoutError:
            return

    def _wanted(
        self, node_id: int, asked_already: Mapping[TopicPartition, PartitionFetch]
    ) -> tuple[Node | None, dict[TopicPartition, PartitionFetch]]:
        """What to ask this broker for now, and where it is; nobody where there is nothing."""
        now = asyncio.get_running_loop().time()
        if self._is_full():
            return None, {}
        asked: Node | None = None
        found = {}
        for state in self._states.values():
            if state.replica is not None and now > state.replica_until:
                state.replica = None
                self._go_on()
            node = state.node
            if node is None or node.id != node_id:
                continue
            wanted = state.wanted(now)
            if wanted is not None and asked_already.get(state.partition) != wanted:
                asked = node
                found[state.partition] = wanted
        return asked, found

    def _is_full(self) -> bool:
        """Whether as much is ready as may be. Who is paused gives way, and is fetched again."""
        if self._queued() < self._settings.queued_max_bytes:
            return False
        for state in self._states.values():
            if state.paused and state.buffer is not None and state.buffer.bytes:
                state.go_to(state.position)
        return self._queued() >= self._settings.queued_max_bytes

    def _queued(self) -> int:
        return sum(state.buffer.bytes for state in self._states.values() if state.buffer)

    async def _ask(
        self, node: Node, wanted: Mapping[TopicPartition, PartitionFetch], session: Session | None
    ) -> None:
        """Without a session the broker does not wait for records, and is asked on the connection
        for look-ups. So such an answer is no longer than that of one partition.
        """
        settings = self._settings
        part = everything(wanted) if session is None else session.ask(wanted)
        request = FetchRequest(
            max_wait_ms=settings.fetch_max_wait_ms if session else 0,
            min_bytes=settings.fetch_min_bytes,
            max_bytes=settings.fetch_max_bytes if session else settings.max_partition_fetch_bytes,
            isolation_level=int(settings.reads_committed),
            session_id=part.session_id,
            session_epoch=part.session_epoch,
            topics=part.topics,
            forgotten_topics_data=part.forgotten,
            rack_id=settings.client_rack or "",
        )
        by_id = all(asked.topic_id != NO_TOPIC_ID for asked in wanted.values())
        limit_s = (settings.request_timeout_ms + request.max_wait_ms) / 1000
        cluster = self._cluster if session else self._metadata.cluster
        answer: FetchResponse = await cluster.ask(
            node,
            request,
            deadline=asyncio.get_running_loop().time() + limit_s,
            at_most=32767 if by_id else BY_NAME,
        )
        if answer.error_code:
            error = api_error(answer.error_code)
            if error.code not in BROKEN or session is None:
                raise error
            session.broke()
            logger.info("fetch from %s: %s: with a new session", node, error)
            self._look_up(wanted, error.code)
            return
        if session is not None:
            session.answered(answer.session_id)
        names = {asked.topic_id: partition.topic for partition, asked in wanted.items()}
        for topic in answer.responses:
            name = topic.topic or names.get(TopicId(topic.topic_id), "")
            for result in topic.partitions:
                partition = TopicPartition(name, result.partition_index)
                if partition in wanted:
                    self._take_in(node, partition, wanted[partition], result)

    # What came of it

    def _take_in(
        self, node: Node, partition: TopicPartition, wanted: PartitionFetch, data: PartitionData
    ) -> None:
        state = self._states.get(partition)
        if state is None or state.buffer is None:
            return
        if state.buffer.fetch_from.offset != wanted.offset or state.topic_id != wanted.topic_id:
            return  # somebody has sought meanwhile, or the topic was made anew
        if data.error_code:
            error = explained(api_error(data.error_code), self._cluster.principal, partition)
            self._refused(node, state, state.buffer, error, data)
            return
        state.log_start = data.log_start_offset
        state.high_watermark = data.high_watermark
        state.last_stable = data.last_stable_offset
        if data.preferred_read_replica >= 0:
            state.replica = self._metadata.node(data.preferred_read_replica)
            state.replica_until = asyncio.get_running_loop().time() + _REPLICA_S
            if state.replica is None:
                state.look_up(asyncio.get_running_loop().time() + RETRY_BACKOFF_S)
            self._look()
        state.buffer.add(data)
        # What it has sent, it has.
        state.checked_epoch = max(state.checked_epoch, wanted.current_epoch)
        if state.is_ready:
            self.nudge()

    def _refused(
        self,
        node: Node,
        state: TopicPartitionState,
        buffer: Buffer,
        error: ApiError,
        data: PartitionData,
    ) -> None:
        later = asyncio.get_running_loop().time() + RETRY_BACKOFF_S
        logger.info("%s: %s", state.partition, error)
        match error.code:
            case ErrorCode.OFFSET_OUT_OF_RANGE if (
                state.leader is None or state.leader.id != node.id
            ):
                state.look_up(later)  # a replica may be behind
            case ErrorCode.OFFSET_OUT_OF_RANGE if buffer.has_something:
                state.not_before = later  # what is there comes first
            case ErrorCode.OFFSET_OUT_OF_RANGE:
                out_of_range(state, self._settings.auto_offset_reset, data.log_start_offset)
            case ErrorCode.CORRUPT_MESSAGE:
                why = error.message or "the broker finds it damaged"
                state.error = RecordError(state.partition, buffer.fetch_from.offset, why)
            case _:
                state.refused(error, later)
        if state.error is not None:
            self.nudge()
        self._look()

    def _look_up(self, wanted: Iterable[TopicPartition], code: ErrorCode | None = None) -> None:
        """The broker does not answer, or knows other topics: ask who leads these now."""
        if code in (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.INVALID_FETCH_SESSION_EPOCH):
            return
        later = asyncio.get_running_loop().time() + RETRY_BACKOFF_S
        for partition in wanted:
            state = self._states.get(partition)
            if state is not None:
                state.look_up(later)
        self._look()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks[task] = None
        task.add_done_callback(self._tasks.pop)


def _misses(state: TopicPartitionState) -> bool:
    """Whether something has to be found out before it can be fetched."""
    if state.error is not None or state.is_sought:
        return False
    return state.leader is None or state.reset is not None or state.has_to_be_checked


def _refuse(states: Iterable[TopicPartitionState], error: ApiError) -> None:
    for state in states:
        state.error = error
