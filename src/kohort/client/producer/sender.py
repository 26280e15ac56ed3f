# SPDX-License-Identifier: Apache-2.0
"""The task that sends what a producer's queue holds, and tells everybody what came of it."""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any, NamedTuple

from kohort.client.accumulator.accumulator import UNKNOWN, Outcome, RecordAccumulator
from kohort.client.accumulator.batch import Batch
from kohort.client.accumulator.error_actions import ErrorAction, is_elsewhere
from kohort.client.accumulator.errors import DeliveryError, produce_error
from kohort.client.log_deduplication import LogDeduplicator
from kohort.client.network.cluster import Backoff, Cluster, Node
from kohort.client.network.connection import Need
from kohort.client.network.connection_errors import ConnectionFailedError, RequestTimeoutError
from kohort.client.network.denials import explained
from kohort.client.network.environment import environment
from kohort.client.network.metadata import CachedTopic, Metadata
from kohort.client.producer.buffer_memory import BufferMemory
from kohort.client.producer.settings import ProducerSettings
from kohort.client.producer.stall_warnings import StallWarnings
from kohort.errors import (
    ApiError,
    AuthenticationError,
    ErrorCode,
    KohortError,
    UnsupportedVersionError,
)
from kohort.figures import counted
from kohort.terms import NO_TOPIC_ID, TopicId, TopicPartition, uuid_text
from kohort.wire.compression import Compression
from kohort.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)

logger = logging.getLogger(__name__)

BY_NAME = 12  # the last version that names topics
NEWEST = 32767
WITH_ZSTD = Need(7, "compression_type zstd", "KIP-110, Apache Kafka 2.1")


class Delivered(NamedTuple):
    """Where a record is. `timestamp_ms` is the time that the log has for it.

    `offset` is -1 where it is not known: with acks=0, and for a record that an earlier attempt had
    written already.
    """

    topic: str
    partition: int
    offset: int
    timestamp_ms: int


class Sender:
    """`cluster` is for Produce requests alone; look-ups go to that of `metadata`.

    `may_send` says whether a partition may be written to at the moment, and `version` the highest
    version of Produce to use. `on_failure` hears of each error that ends a batch, and gives what
    its deliveries raise; `on_fatal_error` gives the error of everything after one that ends the
    producer. `after_turn` is called when all was sent that may be sent, and `identify` is run when
    the queue needs a producer id. `choose` gives the partition of a record by topic, key and size.
    """

    def __init__(
        self,
        cluster: Cluster,
        metadata: Metadata,
        queue: RecordAccumulator,
        settings: ProducerSettings,
        identify: Callable[[], Coroutine[Any, Any, None]],
    ) -> None:
        self.trouble: ApiError | None = None  # nothing is sent any more, and why
        self.may_send: Callable[[TopicPartition], bool] = lambda _: True
        self.version: Callable[[], int] = lambda: NEWEST
        self.on_failure: Callable[[ApiError], ApiError] = lambda error: error
        self.on_fatal_error: Callable[[ApiError], ApiError] = lambda error: error
        self.choose: Callable[[CachedTopic, bytes | None, int], int] = _first
        self.after_turn: Callable[[], None] = lambda: None
        self.topics: set[str] = set()  # those whose leaders and partitions are kept up to date
        self.memory = BufferMemory(settings.buffer_memory, lambda: queue.used)
        self.queue = queue
        self._cluster = cluster
        self._metadata = metadata
        metadata.on_topic_recreated = self._topic_recreated
        self._settings = settings
        self._identify = identify
        self._need = WITH_ZSTD if queue.limits.codec == Compression.ZSTD else None
        self._wake = asyncio.Event()
        self._outcome_known = (
            asyncio.Event()
        )  # set for a moment whenever the fate of something is known
        self._under_way: Counter[int] = Counter()  # requests by node
        self._held_until: dict[int, float] = {}  # by node: its quota is used up
        self._anew: set[str] = set()  # topics that were deleted and made anew meanwhile
        self._lacking: set[str] = set()  # those that lacked a partition at the last look
        self._moved: set[str] = set()  # topics whose leaders are not those of the metadata
        self._why = ""  # the last look-up failed
        self._repeats = LogDeduplicator()
        self._patience = StallWarnings(lambda: asyncio.get_running_loop().time())
        self._tasks: dict[asyncio.Task[None], None] = {}  # ended in the order of their begin
        self._looking: asyncio.Task[None] | None = None
        self._identifying: asyncio.Task[None] | None = None
        self._flushing = 0

    # What the producer asks for

    def start(self) -> None:
        """Begin to send."""
        self.spawn(self._run())

    def wake(self) -> None:
        """There is something new to do."""
        self._wake.set()

    def now(self) -> int:
        """Milliseconds of the loop's clock."""
        return int(asyncio.get_running_loop().time() * 1000)

    async def flush(self) -> None:
        """Send everything at once, and wait until the fate of all of it is known."""
        number = self.queue.last_number
        self._flushing += 1
        self.queue.is_urgent = True
        self.wake()
        try:
            while not self.queue.is_done(number):
                await self._outcome_known.wait()
        finally:
            self._flushing -= 1
            self.queue.is_urgent = self._flushing > 0

    async def give_up(self, error: ApiError) -> None:
        """What waits fails with this error; wait until no answer is awaited any more. For as long
        as nothing may be sent.
        """
        self.drop(error)
        while not self.queue.is_empty:
            await self._outcome_known.wait()
            self.drop(error)

    def drop(self, error: ApiError) -> None:
        """What waits fails with this error."""
        outcomes = self.queue.drop(error)
        if outcomes:
            self.tell(outcomes)

    def to_fatal_error(self, error: ApiError) -> None:
        """Send nothing more: what waits fails with this error."""
        if self.trouble is None:
            self.trouble = self.on_fatal_error(error)
            self.tell(self.queue.drop(error))

    def spawn(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        """Run this until the end, or until `close`."""
        task = asyncio.create_task(work)
        self._tasks[task] = None
        task.add_done_callback(self._tasks.pop)
        return task

    def tell(self, outcomes: Iterable[Outcome]) -> None:
        """Everybody who waits for these records learns what became of them."""
        for batch, offset, append_time, error in outcomes:
            if error is not None:
                self._fail(batch.deliveries, error)
                continue
            topic, partition = batch.place
            step = 0 if offset < 0 else 1
            new, make = tuple.__new__, Delivered
            for delivery, timestamp in zip(batch.deliveries, batch.timestamps, strict=True):
                if not delivery.done():
                    time = timestamp if append_time < 0 else append_time
                    delivery.set_result(new(make, (topic, partition, offset, time)))
                offset += step  # noqa: PLW2901  (of the record after it)
        self.memory.look()
        self._pulse()

    def _fail(self, deliveries: Iterable[Any], error: ApiError) -> None:
        reason = self.on_failure(error)
        for delivery in deliveries:
            if not delivery.done():
                delivery.set_exception(reason)
                if self.queue.transactional:  # who commits is told, so nobody else has to
                    delivery.exception()

    async def close(self, error: ApiError) -> None:
        """End all tasks and connections. What has not been delivered fails with this error."""
        self.trouble = self.trouble or error
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        try:
            await asyncio.gather(*tasks, return_exceptions=True)
        finally:
            self.tell(self.queue.abandon(error))
            await self._cluster.close()

    def _pulse(self) -> None:
        """Whoever waits for something looks again."""
        self._outcome_known.set()
        self._outcome_known.clear()

    # The loop

    async def _run(self) -> None:
        try:
            refresh_s = self._settings.metadata_max_age_ms / 1000
            loop = asyncio.get_running_loop()
            refresh_at = loop.time() + refresh_s
            while True:
                self._wake.clear()
                wake_at = self._turn()
                if loop.time() >= refresh_at:
                    refresh_at = loop.time() + refresh_s
                    self.spawn(self._refresh())
                at = refresh_at if wake_at is None else min(refresh_at, wake_at / 1000)
                try:
                    async with asyncio.timeout_at(at):
                        await self._wake.wait()
                except TimeoutError:
                    continue
        except Exception as error:
            logger.exception("the producer has stopped")
            self.to_fatal_error(
                ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, f"the producer failed: {error!r}")
            )

    def _turn(self) -> int | None:
        """Send all that is due; when to look again."""
        queue = self.queue
        now = self.now()
        self.tell(queue.expire(now, self._why))
        if queue.producer is None and self._identifying is None:
            self._identifying = self.spawn(self._identify())
            self._identifying.add_done_callback(self._identified)
        while self.trouble is None:
            taken = queue.take(now, self._leader, self._is_free, self.may_send)
            if taken.leaderless:
                self._look_up(taken.leaderless)
            if not taken.shares:
                break
            for node_id, batches in taken.shares:
                self._under_way[node_id] += 1
                self.spawn(self._send(node_id, batches))
        self.after_turn()
        return queue.wake_at(now)

    def _identified(self, _task: "asyncio.Task[None]") -> None:
        self._identifying = None
        self.wake()

    def _leader(self, place: TopicPartition) -> int | None:
        if place.topic in self._moved:
            return None
        known = self._metadata.partition(place)
        return None if known is None or known.leader is None else known.leader.id

    def _is_free(self, node_id: int) -> bool:
        if self._under_way[node_id] >= self._settings.max_in_flight_requests_per_connection:
            return False
        return asyncio.get_running_loop().time() >= self._held_until.get(node_id, 0.0)

    # Who leads

    def _look_up(self, topics: set[str]) -> None:
        if self._looking is None and topics:
            self._looking = self.spawn(self._look(set(topics)))

    async def _look(self, topics: set[str]) -> None:
        loop = asyncio.get_running_loop()
        try:
            for topic in topics:
                self._metadata.outdated(topic)
            deadline = loop.time() + self._settings.request_timeout_ms / 1000
            found = await self._metadata.topics(topics, deadline, create=True)
            self._moved -= topics
            self._patience.passed("the cluster")
            self._repeats.end()
            self._why = ""
            for topic, outcome in found.items():
                why = self._why_not(topic, outcome)
                if why:
                    self._why = why
                    self._patience.failed(f"topic {topic}", why)
                else:
                    self._patience.passed(f"topic {topic}")
        except AuthenticationError as error:
            for topic in topics:
                self.tell(self.queue.drop(error, topic=topic))
        except KohortError as error:
            self._why = str(error)
            self._patience.failed("the cluster", error)
            if self._repeats.is_due(str(error)):
                logger.info("topics are not known yet: %s", error)
        finally:
            if self._why:
                await asyncio.sleep(self._settings.retry_backoff_ms / 1000)
            self._looking = None
            self.wake()

    def _why_not(self, topic: str, outcome: CachedTopic | ApiError) -> str:
        """Why a topic cannot be written to, or not to all of its partitions."""
        if isinstance(outcome, ApiError):
            self._moved.add(topic)
            if not outcome.code.retriable:
                self.tell(self.queue.drop(outcome, topic=topic))
            return str(outcome)
        if any(result.leader is None for result in outcome.partitions.values()):
            return f"a partition of {topic} has no leader"
        for partition in self.queue.partitions(topic):
            if partition not in outcome.partitions:  # the topic was made anew
                self._displace(outcome)
                return f"{topic} has no partition {partition} any more"
        self._lacking.discard(topic)
        self._anew.discard(topic)
        return ""

    def _displace(self, topic: CachedTopic) -> None:
        """Records of partitions that are not there any more go to others, or fail where the
        application chose the partition. A broker that lags behind may know fewer partitions than
        there are: the topic has to be another one, by its id. Where brokers give no ids, they have
        to say so twice.
        """
        said_before = topic.id == NO_TOPIC_ID and topic.name in self._lacking
        if topic.name not in self._anew and not said_before:
            self._lacking.add(topic.name)
            return
        gone = [at for at in self.queue.partitions(topic.name) if at not in topic.partitions]
        for batch in self.queue.displace(topic.name, gone):
            pinned = []
            for at, record in enumerate(batch.contents()):
                if batch.is_pinned(at):
                    pinned.append(batch.deliveries[at])
                elif not batch.deliveries[at].done():
                    partition = self.choose(topic, record.key, batch.charge // batch.count)
                    self.queue.replace(batch, at, record, partition, self.now())
            if pinned:
                self._fail(pinned, _gone(batch, topic))
        self.memory.look()
        self._pulse()

    async def _refresh(self) -> None:
        """Leaders may have moved, and topics have grown, without anybody who told."""
        for topic in self.topics:
            self._metadata.outdated(topic)
        deadline = asyncio.get_running_loop().time() + self._settings.request_timeout_ms / 1000
        try:
            found = await self._metadata.topics(list(self.topics), deadline)
        except KohortError as error:
            logger.info("topics are not looked at again: %s", error)
            return
        self.topics -= {topic for topic, outcome in found.items() if isinstance(outcome, ApiError)}

    def _topic_recreated(self, topic: str, former: TopicId, topic_id: TopicId) -> None:
        text = f"{topic} was deleted and made anew"
        logger.warning(
            "%s (id %s, before %s): what is not delivered goes to the new one",
            *(text, uuid_text(topic_id), uuid_text(former)),
        )
        self._anew.add(topic)
        if self.queue.topic_recreated(topic):
            error = ApiError(
                ErrorCode.UNKNOWN_TOPIC_ID, f"{text}: records of the transaction are gone with it"
            )
            self.on_failure(error)
            self.drop(error)
        known = self._metadata.cached(topic)
        if known is not None and known.partitions:
            self._displace(known)  # before anybody sends to the new ones: keys keep their order

    # Requests

    async def _send(self, node_id: int, batches: Sequence[Batch]) -> None:
        try:
            answer = await self._ask(node_id, batches)
        except (ConnectionFailedError, RequestTimeoutError) as error:
            self._patience.failed(f"node {node_id}", error)
            self._failed(batches, error, sent=error.sent)
        except AuthenticationError as error:  # to wait for another one helps nobody
            self._failed(batches, error, sent=True)
        except UnsupportedVersionError as error:
            self._failed(batches, ApiError(ErrorCode.UNSUPPORTED_VERSION, str(error)), sent=True)
        except KohortError as error:
            text = f"the answer cannot be read: {error}"
            self._failed(batches, ApiError(ErrorCode.NETWORK_EXCEPTION, text), sent=True)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            logger.exception("produce")
            self._failed(batches, ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, repr(error)), sent=True)
        else:
            self._answered(node_id, batches, answer)
        finally:
            self._under_way[node_id] -= 1
            self.wake()
            self._pulse()

    async def _ask(self, node_id: int, batches: Sequence[Batch]) -> ProduceResponse | None:
        settings = self._settings
        topics: dict[str, list[PartitionProduceData]] = {}
        ids = {batch.place.topic: self._topic_id(batch.place.topic) for batch in batches}
        at_most = min(self.version(), BY_NAME if NO_TOPIC_ID in ids.values() else NEWEST)
        for batch in batches:
            data = PartitionProduceData(
                index=batch.place.partition,
                records=batch.sealed(transactional=self.queue.transactional),
            )
            topics.setdefault(batch.place.topic, []).append(data)
        request = ProduceRequest(
            transactional_id=settings.transactional_id,
            acks=settings.acks,
            timeout_ms=settings.request_timeout_ms,
            topic_data=[
                TopicProduceData(name=name, topic_id=ids[name], partition_data=data)
                for name, data in topics.items()
            ],
        )
        deadline = asyncio.get_running_loop().time() + settings.request_timeout_ms / 1000
        connection = await self._cluster.connection(self._node(node_id).address, deadline)
        if settings.acks == 0:
            await connection.tell(request, need=self._need, at_most=at_most)
            return None
        answer: ProduceResponse = await connection.ask(
            request, deadline=deadline, need=self._need, at_most=at_most
        )
        if connection.held_until:  # its quota is used up
            self._held_until[node_id] = connection.held_until
            asyncio.get_running_loop().call_at(connection.held_until, self.wake)
        names = {topic_id: name for name, topic_id in ids.items()}
        for topic in answer.responses:
            topic.name = topic.name or names.get(TopicId(topic.topic_id), "")
        return answer

    def _topic_id(self, name: str) -> TopicId:
        known = self._metadata.cached(name)
        return NO_TOPIC_ID if known is None else known.id

    def _node(self, node_id: int) -> Node:
        node = self._metadata.node(node_id)
        if node is None:
            raise ConnectionFailedError(f"node {node_id} is no broker any more", sent=False)
        return node

    def _answered(
        self, node_id: int, batches: Sequence[Batch], answer: ProduceResponse | None
    ) -> None:
        self._patience.passed(f"node {node_id}")
        if answer is None:
            for batch in batches:
                self.tell(self.queue.acked(batch, UNKNOWN, UNKNOWN))
            return
        response = {
            (topic.name, result.index): result
            for topic in answer.responses
            for result in topic.partition_responses
        }
        for batch in batches:
            result = response.get(batch.place)
            if result is None:
                text = "the broker's answer lacks it"
                self._refused(batch, ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, text))
            elif result.error_code:
                error = explained(produce_error(result), self._cluster.principal, batch.place)
                self._patience.failed(str(batch.place), error)
                self._refused(batch, error, result.base_offset)
            else:
                self._patience.passed(str(batch.place))
                self.tell(self.queue.acked(batch, result.base_offset, result.log_append_time_ms))

    def _failed(self, batches: Sequence[Batch], error: ApiError, *, sent: bool) -> None:
        for batch in batches:
            if sent:
                self._refused(batch, error)
            else:
                self.queue.unsent(batch, error, self.now())
                self._moved.add(batch.place.topic)

    def _refused(self, batch: Batch, error: ApiError, offset: int = UNKNOWN) -> None:
        logger.info("%s: %s", batch.place, error)
        if is_elsewhere(error.code) or isinstance(error, ConnectionFailedError):
            self._moved.add(batch.place.topic)
        is_fatal = self.queue.error_action(batch, error.code) is ErrorAction.FATAL
        outcomes = self.queue.refused(batch, error, self.now(), offset)
        if is_fatal:
            self.to_fatal_error(error)
        self.tell(outcomes)


def _first(topic: CachedTopic, _key: bytes | None, _size: int) -> int:
    return int(next(iter(topic.partitions)))


def _gone(batch: Batch, topic: CachedTopic) -> DeliveryError:
    count = len(topic.partitions)
    many = counted(count, "partition")
    known = "it may have been written to the former topic" if batch.maybe_written else ""
    text = (
        f"{batch.place}: {topic.name} has no partition {batch.place.partition} any more, it was "
        f"made anew with {many}; {known or 'it was not written'}"
    )
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return DeliveryError(code, text, maybe_written=batch.maybe_written)


def pauses(settings: ProducerSettings) -> Callable[[int], int]:
    """How long to wait after so many attempts, with a jitter of a fifth, in milliseconds."""
    chance = environment().chance.random
    backoff = Backoff(settings.retry_backoff_ms / 1000, settings.retry_backoff_max_ms / 1000)
    return lambda attempt: round(backoff.pause_s(attempt, chance()) * 1000)
