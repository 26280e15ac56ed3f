# SPDX-License-Identifier: Apache-2.0
"""Producer: writes records to topics, for asyncio programs."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Self, Unpack

from kohort.client.accumulator.accumulator import Limits, RecordAccumulator
from kohort.client.accumulator.errors import DeliveryError
from kohort.client.accumulator.partitioning import StickyPartitioner, partition_of
from kohort.client.accumulator.transactions import UNFINISHED
from kohort.client.admin.group_views import CommittedOffset
from kohort.client.consumer import GroupMetadata
from kohort.client.lifetime import Client
from kohort.client.network.environment import environment
from kohort.client.network.metadata import CachedTopic, Metadata
from kohort.client.producer.identity import ask_for_identity
from kohort.client.producer.sender import Delivered, Sender, pauses
from kohort.client.producer.settings import CODECS, ProducerOptions, ProducerSettings
from kohort.client.producer.transaction_client import TransactionClient
from kohort.client.settings import DEFAULT_SERVER, client_settings
from kohort.client.topic_partitions import ByPartition, by_topic_partition
from kohort.errors import ApiError, ErrorCode
from kohort.terms import PartitionIndex
from kohort.wire.batch import HEADER_SIZE, RECORD_SIZE

logger = logging.getLogger(__name__)

Headers = Iterable[tuple[str, bytes | None]] | Mapping[str, bytes | None]
Delivery = asyncio.Future[Delivered]

_HEADER_EXTRA = 10  # what a header takes beside its name and value, at most
_LOOK_S = 0.1
_INT64_MAX = (1 << 63) - 1
_running_loop = asyncio.get_running_loop


class Producer(Client):
    """Writes to topics of any Kafka-compatible cluster.

        async with Producer(bootstrap_servers="127.0.0.1:9092") as producer:
            delivery = await producer.send("orders", b"an order", key=b"customer 7")
            print((await delivery).offset)

    Records are collected for `linger_ms` and sent in batches. What is sent again is written once
    and in order (`enable_idempotence`, which is the default). A delivery that nobody awaits is made
    all the same; its error is logged by asyncio. Another event loop than that of `start` is refused
    by RuntimeError.

    Args:
        bootstrap_servers: as for AdminClient; a dict of settings under upstream's names will do.
        settings: those of `ProducerSettings`: upstream's names, with underscores for the dots, and
            those of TLS and SASL as for AdminClient.

    Raises:
        ValueError: a setting is unknown or out of bounds, or settings contradict each other.
    """

    def __init__(
        self,
        *,
        bootstrap_servers: str | Iterable[str] | Mapping[str, Any] = DEFAULT_SERVER,
        **settings: Unpack[ProducerOptions],
    ) -> None:
        self.settings, common = client_settings(ProducerSettings, bootstrap_servers, settings)
        self._addresses = common.addresses
        self.settings.check()
        setup_ms = self.settings.socket_connection_setup_timeout_ms
        self._cluster = common.cluster(self.settings.client_id, setup_ms)
        self._metadata = Metadata(self._cluster, max_age_s=self.settings.metadata_max_age_ms / 1000)
        self._queue = RecordAccumulator(
            Limits(
                self.settings.batch_size,
                self.settings.linger_ms,
                self.settings.max_request_size,
                self.settings.delivery_timeout_ms,
                CODECS[self.settings.compression_type],
            ),
            idempotent=self.settings.is_idempotent,
            transactional=self.settings.transactional_id is not None,
            pause_ms=pauses(self.settings),
        )
        self._sender = Sender(
            self._cluster.another(), self._metadata, self._queue, self.settings, self._identify
        )
        self._sender.choose = self._choose
        self._room = self._sender.memory
        self._coordinating: TransactionClient | None = None
        if self.settings.transactional_id is not None:
            self._coordinating = TransactionClient(
                *(self._cluster, self.settings, self.settings.transactional_id, self._sender)
            )
        self._sticky: dict[str, StickyPartitioner] = {}
        self._clock = environment().clock
        self._size_max = self.settings.max_request_size - HEADER_SIZE
        serializers = (self.settings.key_serializer, self.settings.value_serializer)
        self._makes_bytes = serializers != (None, None)
        self._owes_turn = False
        self._is_open = False
        self._closed = False
        self._ended = asyncio.Event()  # `close` is over

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
        await self.close()

    async def start(self) -> None:
        """Wait until the cluster answers, up to `max_block_ms`. With a `transactional_id` take it
        over: what a producer before this one has left unfinished is aborted, and it is fenced.
        Raises ApiError.
        """
        self._check_not_closed()
        if self._is_open:
            return
        try:
            deadline = self._deadline()
            await self._cluster.reach(deadline)
            if self._coordinating is not None:
                await self._coordinating.initialise(deadline)
        except BaseException:
            self._closed = True
            self._ended.set()
            await self._cluster.close()
            raise
        self._loop = asyncio.get_running_loop()
        self._is_open = True
        self._sender.start()

    async def close(self) -> None:
        """Deliver everything, which ends with `delivery_timeout_ms` at the latest, and end all
        connections. An open transaction is aborted. Who is cancelled meanwhile gives up what is
        left: its deliveries fail. A second call waits for the first.
        """
        self._check_loop()
        if self._closed:
            await self._ended.wait()
            return
        self._closed = True
        was_open, self._is_open = self._is_open, False
        try:
            if was_open:
                await self._finish()
        finally:
            error = ApiError(ErrorCode.NETWORK_EXCEPTION, "the producer was closed")
            try:
                await self._sender.close(error)
            finally:
                try:
                    await self._cluster.close()
                finally:
                    self._ended.set()

    # Records

    async def send(
        self,
        topic: str,
        value: Any = None,
        *,
        key: Any = None,
        headers: Headers = (),
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> Delivery:
        """Take a record, and return what will be `Delivered` or raise DeliveryError.

        Waits for room (`buffer_memory`) and for the topic, up to `max_block_ms`. The key chooses
        the partition; without one the producer keeps to one for a batch. The time is that of now.
        Whoever is cancelled here has sent nothing.

        Raises:
            DeliveryError: the record was not taken, and is certainly not written:
                MESSAGE_TOO_LARGE, REQUEST_TIMED_OUT for no room or no such topic in time,
                UNKNOWN_TOPIC_OR_PARTITION for a partition that is not there.
            ApiError: the cluster refuses this topic or this producer.
            TransactionError: the transaction has failed.
            ValueError: the producer is not started, closed, in no transaction, or committing one;
                `timestamp_ms` is below 0 or above an int64.
            TypeError: key or value are not bytes, and there is no serializer that makes them so;
                `headers` are no pairs or mapping of texts and bytes; another argument has not its
                type.
        """
        if _running_loop() is not self._loop:
            self._check_loop()
        if self._owes_turn:
            self._owes_turn = False
            await asyncio.sleep(0)  # what is full is sent while the application goes on
        if timestamp_ms is not None:
            _check_time(timestamp_ms)
        if self._makes_bytes:
            key, value = self._serialized(key, value)
        size = RECORD_SIZE
        if value is not None:
            size += len(value) if type(value) is bytes else _refuse("value", value)
        if key is not None:
            size += len(key) if type(key) is bytes else _refuse("key", key)
        pairs: tuple[tuple[str, bytes | None], ...] = ()
        if headers:
            pairs = _pairs(headers)
            size += _size_of(pairs)
        if size > self._size_max:
            raise self._too_large(topic, size)
        known = self._metadata.cached(topic)
        if known is None or (partition is not None and partition not in known.partitions):
            known = await self._find(topic, partition)
        if self._room.waiting or self._queue.used + size > self._room.limit:
            await self._wait_for_memory(topic, size)
        if not self._is_open or self._coordinating is not None or self._sender.trouble is not None:
            self._check_in_transaction()
        pinned = partition is not None
        if partition is None:
            sticky = None if key is not None else self._sticky.get(topic)
            if sticky is not None and sticky.left > 0 and sticky.partition in known.partitions:
                sticky.left -= size
                partition = sticky.partition
            else:
                partition = self._choose(known, key, size)
        delivery: Delivery = asyncio.Future(loop=self._loop)
        if self._queue.add(
            (topic, partition),
            self._clock.time_ns() // 1_000_000 if timestamp_ms is None else timestamp_ms,
            *(key, value, pairs, delivery, size),
            self._sender.now,
            pinned=pinned,
        ):
            self._sender.wake()
            self._owes_turn = True  # of the next call: this one cannot be cancelled any more
        return delivery

    async def send_and_wait(
        self,
        topic: str,
        value: Any = None,
        *,
        key: Any = None,
        headers: Headers = (),
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> Delivered:
        """Send a record and wait for its delivery. Raises what `send` and a delivery raise."""
        delivery = await self.send(
            *(topic, value),
            key=key,
            headers=headers,
            partition=partition,
            timestamp_ms=timestamp_ms,
        )
        return await delivery

    async def flush(self) -> None:
        """Send all that was taken, at once, and wait until the fate of each record is known.

        Raises nothing for a record that was not delivered: its delivery does.
        """
        self._check_loop()
        await self._sender.flush()

    async def partitions_for(self, topic: str) -> list[int]:
        """The partitions of a topic. Waits for it up to `max_block_ms`, then raises
        DeliveryError; raises ApiError where the cluster refuses it.
        """
        found = await self._find(topic, None)
        return sorted(int(partition) for partition in found.partitions)

    # Transactions

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        """What is sent in this block becomes visible together, or not at all.

            async with producer.transaction():
                await producer.send("orders", b"one")
                await producer.send("orders", b"another")

        It is committed at the end of the block, and aborted where the block raises.

        Raises:
            TransactionError: it was not committed. With `abortable` it was aborted, and may be
                tried again; with `maybe_committed` call `commit_transaction` to find out; else the
                producer is of no more use, and another one has to be made.
            ValueError: the producer has no `transactional_id`, or is in a transaction already.
        """
        await self.begin_transaction()
        try:
            yield
        except BaseException:
            await self._abort_quietly()
            raise
        try:
            await self.commit_transaction()
        except BaseException:
            if self._transactions().transactions.phase in UNFINISHED:
                await self._abort_quietly()
            raise

    async def begin_transaction(self) -> None:
        """What is sent from now on belongs to a transaction. Raises as `transaction`."""
        self._check_may_send()
        await self._transactions().begin()

    async def commit_transaction(self) -> None:
        """Deliver all that was sent, and make it visible. What others send meanwhile is refused.

        Raises as `transaction`, but does not abort. After `maybe_committed`, or when it was
        cancelled, it may be called again.
        """
        await self._transactions().commit(self._deadline())

    async def abort_transaction(self) -> None:
        """Nothing that was sent becomes visible. What is not delivered yet fails.

        Raises TransactionError; ValueError outside a transaction.
        """
        await self._transactions().abort(self._deadline())

    async def send_offsets_to_transaction(
        self,
        offsets: ByPartition[int | CommittedOffset],
        group: GroupMetadata | str,
    ) -> None:
        """Commit offsets of a group with the transaction: those of the next records to read.

        `consumer.group_metadata()` says who read them, so that a consumer whose partitions others
        have got does not commit (KIP-447); the name of a group says nothing. Raises
        TransactionError; ValueError outside a transaction.
        """
        whole = {
            place: CommittedOffset(offset) if isinstance(offset, int) else offset
            for place, offset in by_topic_partition("offsets", offsets).items()
        }
        for place, offset in whole.items():
            if offset.offset < 0:
                raise ValueError(f"offset {offset.offset} of {place}, expected 0 or more")
        who = GroupMetadata(group, -1, "", None) if isinstance(group, str) else group
        transactions = self._transactions()
        if whole:
            await transactions.send_offsets(whole, who, self._deadline())

    # Inside

    def _details(self) -> Mapping[str, object]:
        settings = self.settings
        return {"client_id": settings.client_id, "transactional_id": settings.transactional_id}

    async def _finish(self) -> None:
        if self._coordinating is not None and self._coordinating.transactions.phase in UNFINISHED:
            await self._abort_quietly()
        await self._sender.flush()

    async def _abort_quietly(self) -> None:
        """Abort after an error that matters more than what comes of it."""
        try:
            await self.abort_transaction()
        except (ApiError, ValueError) as error:
            logger.warning("the transaction could not be aborted, and will time out: %s", error)

    def _check_loop(self) -> None:
        if self._loop is not None and asyncio.get_running_loop() is not self._loop:
            raise RuntimeError("the producer belongs to the event loop in which it was started")

    def _transactions(self) -> TransactionClient:
        self._check_loop()
        if self._coordinating is None:
            raise ValueError("the producer has no transactions: give it a transactional_id")
        return self._coordinating

    def _deadline(self) -> float:
        return asyncio.get_running_loop().time() + self.settings.max_block_ms / 1000

    async def _identify(self) -> None:
        await ask_for_identity(self._cluster, self._queue, self._sender.to_fatal_error)

    def _check_not_closed(self) -> None:
        self._check_loop()
        if self._closed:
            raise ValueError("the producer is closed")

    def _check_may_send(self) -> None:
        self._check_not_closed()
        if not self._is_open:
            raise ValueError("the producer is not started: use `async with`, or `start`")
        if self._sender.trouble is not None:
            raise self._sender.trouble

    def _check_in_transaction(self) -> None:
        self._check_may_send()
        if self._coordinating is not None:
            self._coordinating.transactions.check_open()

    def _serialized(self, key: Any, value: Any) -> tuple[Any, Any]:
        settings = self.settings
        if key is not None and settings.key_serializer is not None:
            key = settings.key_serializer(key)
        if value is not None and settings.value_serializer is not None:
            value = settings.value_serializer(value)
        return key, value

    def _choose(self, topic: CachedTopic, key: bytes | None, size: int) -> int:
        if key is not None and not self.settings.partitioner_ignore_keys:
            return partition_of(key, len(topic.partitions))
        sticky = self._sticky.get(topic.name)
        if sticky is None:
            sticky = self._sticky[topic.name] = StickyPartitioner(
                self.settings.batch_size, environment().chance.random
            )
        if sticky.left <= 0 or sticky.partition not in topic.partitions:
            self._move(sticky, topic)
        sticky.left -= size
        return sticky.partition

    def _move(self, sticky: StickyPartitioner, topic: CachedTopic) -> None:
        """The batch is as good as full: it is sent, and the next one is for another partition."""
        self._queue.complete((topic.name, sticky.partition))
        self._sender.wake()
        found = topic.partitions.items()
        led = [int(at) for at, partition in found if partition.leader] or [
            int(at) for at, _ in found
        ]
        sticky.move(led, lambda partition: self._queue.queued(topic.name, partition))

    async def _find(self, topic: str, partition: int | None) -> CachedTopic:
        """The topic, as soon as there is one. A partition has to be there at the second look."""
        self._check_may_send()
        if not isinstance(topic, str):
            raise TypeError(f"topic is {topic!r}, expected a text")
        if partition is not None and not isinstance(partition, int):
            raise TypeError(f"partition is {partition!r}, expected an int")
        self._sender.topics.add(topic)
        deadline = self._deadline()
        loop = asyncio.get_running_loop()
        while True:
            self._metadata.outdated(topic)
            found = (await self._metadata.topics([topic], deadline, create=True))[topic]
            if isinstance(found, CachedTopic) and found.partitions:
                if partition is None or PartitionIndex(partition) in found.partitions:
                    return found
                raise _not_taken(
                    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                    f"{topic} has {len(found.partitions)} partitions, partition {partition} is "
                    "not among them",
                )
            if isinstance(found, ApiError) and not found.code.retriable:
                raise ApiError(found.code, f"{topic}: {found.message or 'refused'}")
            if loop.time() + _LOOK_S >= deadline:
                raise _not_taken(
                    ErrorCode.REQUEST_TIMED_OUT,
                    f"{topic} is not there after {self.settings.max_block_ms} ms: {found}",
                )
            await asyncio.sleep(_LOOK_S)
            self._check_may_send()

    async def _wait_for_memory(self, topic: str, size: int) -> None:
        self._check_may_send()
        if size > self.settings.buffer_memory:
            raise _not_taken(
                ErrorCode.MESSAGE_TOO_LARGE,
                f"a record of {size} bytes for {topic}, expected at most buffer_memory, which is "
                f"{self.settings.buffer_memory}",
            )
        self._sender.wake()
        try:
            await self._room.wait(size, self._deadline())
        except TimeoutError:
            raise _not_taken(
                ErrorCode.REQUEST_TIMED_OUT,
                f"no room for a record of {topic} after {self.settings.max_block_ms} ms: "
                f"{self._queue.used} bytes of {self.settings.buffer_memory} are not delivered yet",
            ) from None

    def _too_large(self, topic: str, size: int) -> DeliveryError:
        return _not_taken(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"a record of {size} bytes for {topic}, expected at most max_request_size "
            f"({self.settings.max_request_size}) less {HEADER_SIZE}",
        )


def _not_taken(code: ErrorCode, message: str) -> DeliveryError:
    return DeliveryError(code, message, maybe_written=False)


def _refuse(name: str, given: Any) -> int:
    raise TypeError(f"{name} is {given!r}, expected bytes; or give a {name}_serializer")


def _check_time(given: Any) -> None:
    if type(given) is not int:
        raise TypeError(f"timestamp_ms is {given!r}, expected an int of milliseconds")
    if not 0 <= given <= _INT64_MAX:
        raise ValueError(f"timestamp_ms is {given}, expected 0 to {_INT64_MAX}")


def _pairs(given: Headers) -> tuple[tuple[str, bytes | None], ...]:
    """Headers as pairs. Raises TypeError for what is none."""
    some: Any = given.items() if isinstance(given, Mapping) else given
    if isinstance(some, str | bytes) or not isinstance(some, Iterable):
        raise TypeError(f"headers is {given!r}, expected pairs or a mapping of texts and bytes")
    pairs = tuple(some)
    for pair in pairs:
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise TypeError(f"headers has {pair!r}, expected a pair of a text and bytes or None")
    return pairs


def _size_of(headers: Iterable[tuple[str, bytes | None]]) -> int:
    """What headers take at most. Raises TypeError for what is none."""
    size = 0
    for name, item in headers:
        if not isinstance(name, str) or not (item is None or isinstance(item, bytes)):
            raise TypeError(f"header {name!r} is {item!r}, expected a text and bytes or None")
        size += len(name.encode()) + len(item or b"") + _HEADER_EXTRA
    return size
