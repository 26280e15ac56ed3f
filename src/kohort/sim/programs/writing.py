# SPDX-License-Identifier: Apache-2.0
"""An application that writes: by the real Producer, with transactions or without."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any, ClassVar

from kohort.client.accumulator.errors import DeliveryError, TransactionError
from kohort.client.producer import Producer
from kohort.errors import ApiError
from kohort.sim.actor_context import ActorContext
from kohort.sim.programs.facts import (
    DeliveryRefused,
    DeliveryUnresolved,
    RecordDelivered,
    SendCalled,
    TransactionConcluded,
)
from kohort.sim.programs.operating import Operator
from kohort.sim.programs.topics import FEED, SIDE, TOPICS

logger = logging.getLogger(__name__)

QUIET_US = 40_000_000  # after all has become calm
BURST = (1, 2, 12)
ENDS = 3  # how often an end whose answer was lost is asked for again


class Writer(Operator):
    """Writes to the topics of the programs, records that are all different."""

    kind: ClassVar[str] = "writing program"

    def __init__(self, stage: ActorContext, number: int) -> None:
        super().__init__(stage, number)
        random = stage.stream(f"writer {number}")
        self.transactional_id = f"write-{number}" if random.random() < 0.4 else None
        self.producer: Producer = None  # type: ignore[assignment]
        self.sent = 0
        self._open: dict[int, bytes] = {}  # deliveries without an outcome
        self._quiet_at: int | None = None

    def settings(self) -> dict[str, Any]:
        random = self.random
        request_ms = random.choice([2000, 5000])
        return {
            "bootstrap_servers": self.servers,
            "client_id": self.client,
            "transactional_id": self.transactional_id,
            "transaction_timeout_ms": 15_000,
            "linger_ms": random.choice([0, 5, 300]),
            "batch_size": random.choice([0, 100, 16_384]),
            "buffer_memory": random.choice([2000, 32 << 20]),
            "request_timeout_ms": request_ms,
            "delivery_timeout_ms": request_ms + random.choice([400, 8000]),
            "max_block_ms": 8000,
            "retry_backoff_ms": random.choice([10, 100]),
            "compression_type": random.choice(["none", "gzip"]),
            "metadata_max_age_ms": 20_000,
            "max_in_flight_requests_per_connection": random.choice([1, 5]),
        }

    async def work(self) -> None:
        self._open = {}
        self.sent = 0
        self.producer = Producer(**self.settings())
        try:
            await self.producer.start()
            while not (self.stopping or self.over or self._is_quiet()):
                if self.transactional_id is None:
                    await self._burst()
                else:
                    await self._transaction()
                await asyncio.sleep(self.random.uniform(0.2, 10 if self.calm else 4))
        except (ApiError, ValueError) as error:
            logger.info("%s ends: %s", self.client, error)
        await self.producer.close()
        await asyncio.sleep(0)  # outcomes are told by the loop
        for value in self._open.values():
            self.tell(DeliveryUnresolved(self.client, value))
        while self.calm and not (self.stopping or self.over):  # noqa: ASYNC110  (nobody tells)
            await asyncio.sleep(1)

    def _is_quiet(self) -> bool:
        """Whether it writes no more, so that readers can come to the end."""
        if self.calm and self._quiet_at is None:
            self._quiet_at = self.now + QUIET_US
        return self._quiet_at is not None and self.now > self._quiet_at

    async def _burst(self) -> None:
        random = self.random
        for _ in range(random.choice(BURST)):
            await self._send()
        if random.random() < 0.2:
            await self.producer.flush()

    async def _send(self) -> bytes | None:
        """Send one record; its value, or None where it was not taken."""
        random = self.random
        topic = random.choice([FEED, FEED, SIDE])
        number = self.sent = self.sent + 1
        value = f"{self.client}:{number}".encode()
        chance = random.random()
        partition = random.randrange(TOPICS[topic]) if chance < 0.3 else None
        key = b"key %d" % random.randrange(5) if chance > 0.6 else None
        self.tell(SendCalled(self.client, number, topic, value))
        try:
            delivery = await self.producer.send(topic, value, key=key, partition=partition)
        except TransactionError:
            self.tell(DeliveryRefused(self.client, value, maybe=False))
            raise
        except ApiError as error:
            logger.info("%s is not taken: %s", value, error)
            self.tell(DeliveryRefused(self.client, value, maybe=False))
            return None
        self._open[number] = value
        delivery.add_done_callback(self._outcome(number, value))
        return value

    def _outcome(self, number: int, value: bytes) -> Callable[["asyncio.Future[Any]"], None]:
        client = self.client

        def on_outcome(delivery: "asyncio.Future[Any]") -> None:
            self._open.pop(number, None)
            error = delivery.exception()
            if error is None:
                topic, partition, offset, _ = delivery.result()
                self.tell(RecordDelivered(client, number, (topic, partition), offset, value))
            else:
                maybe = not isinstance(error, DeliveryError) or error.maybe_written
                self.tell(DeliveryRefused(client, value, maybe))

        return on_outcome

    async def _dawdle(self, seconds: float) -> None:
        """Do nothing for a while, but not once all is calm."""
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        while loop.time() < until and not self.calm:  # noqa: ASYNC110  (nobody tells)
            await asyncio.sleep(min(0.5, until - loop.time()))

    # Transactions

    async def _transaction(self) -> None:
        """One of them. Raises TransactionError where the producer is of no more use."""
        producer, random = self.producer, self.random
        values: list[bytes] = []
        await producer.begin_transaction()
        outcome: bool | None = False
        try:
            try:
                for _ in range(random.choice(BURST)):
                    value = await self._send()
                    if value is not None:
                        values.append(value)
                    if random.random() < 0.03 and not self.calm:
                        await self._dawdle(random.uniform(0, 20))  # may be too long
                if random.random() < 0.25:
                    await producer.abort_transaction()
                else:
                    outcome = None
                    outcome = await self.commit()
            except TransactionError as error:
                if error.maybe_committed or not error.abortable:
                    raise
                outcome = False
                await producer.abort_transaction()
        finally:
            self.tell(TransactionConcluded(tuple(values), outcome))

    async def commit(self) -> bool:
        """Commit, and ask again where the answer was lost. Raises TransactionError."""
        for left in reversed(range(ENDS)):
            try:
                await self.producer.commit_transaction()
            except TransactionError as error:
                if not (error.maybe_committed and error.code.retriable and left):
                    raise
            else:
                break
        return True
