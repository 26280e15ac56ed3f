# SPDX-License-Identifier: Apache-2.0
"""An application that reads, and writes what it has read together with how far it has come."""

import asyncio
import logging
from typing import Any, ClassVar

from kohort.client.accumulator.errors import TransactionError
from kohort.client.consumer import Consumer
from kohort.client.fetcher import AnyRecord
from kohort.client.producer import Producer
from kohort.errors import ApiError, KohortError
from kohort.sim.actor_context import ActorContext
from kohort.sim.programs.facts import CopyGroup
from kohort.sim.programs.operating import Operator
from kohort.sim.programs.topics import COPIES, FEED
from kohort.terms import TopicPartition

logger = logging.getLogger(__name__)

GROUP = "copiers"
ENDS = 5
SESSION_MS = 8000


class Copier(Operator):
    """Copies the records of one topic to another one, each exactly once. All of them are one group,
    and each has a transactional id of its own.
    """

    kind: ClassVar[str] = "copying program"
    freezes_ms = (300, 20_000, 60_000)

    def __init__(self, stage: ActorContext, number: int) -> None:
        super().__init__(stage, number)
        self.group = GROUP
        self.classic = stage.stream("copiers").random() < 0.5
        self.consumer: Consumer = None  # type: ignore[assignment]
        self.producer: Producer = None  # type: ignore[assignment]

    def _new_clients(self) -> None:
        shared: dict[str, Any] = {
            "bootstrap_servers": self.servers,
            "client_id": self.client,
            "metadata_max_age_ms": 20_000,
            "request_timeout_ms": 4000,
        }
        by: dict[str, Any] = {
            "group_protocol": "consumer",
            "group_consumer_session_timeout_ms": self.stage.session_ms,
        }
        if self.classic:
            by = {"group_protocol": "classic", "session_timeout_ms": SESSION_MS}
        self.consumer = Consumer(
            FEED,
            group_id=GROUP,
            isolation_level="read_committed",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            max_poll_interval_ms=20_000,
            default_api_timeout_ms=8000,
            close_timeout_ms=8000,
            fetch_max_wait_ms=2000,
            **shared,
            **by,
        )
        self.producer = Producer(
            transactional_id=f"copy-{self.number}",
            transaction_timeout_ms=12_000,
            delivery_timeout_ms=6000,
            max_block_ms=8000,
            **shared,
        )

    async def work(self) -> None:
        self.tell(CopyGroup(GROUP, FEED, COPIES))
        self._new_clients()
        consumer, producer = self.consumer, self.producer
        try:
            await consumer.start()
            await producer.start()
            while not self.stopping:
                found = await consumer.getmany(timeout_ms=500, max_records=20)
                if found:
                    await self._copy(found)
        except (KohortError, ValueError) as error:
            logger.info("%s ends: %s", self.client, error)
        await producer.close()
        await consumer.close(processed=False)

    async def _copy(self, found: dict[TopicPartition, list[AnyRecord]]) -> None:
        """One transaction; what comes to nothing is read again. Raises TransactionError where the
        producer is of no more use.
        """
        producer, consumer, random = self.producer, self.consumer, self.random
        who = consumer.group_metadata()
        try:
            await producer.begin_transaction()
            for part, records in found.items():
                for record in records:
                    value = f"{part.topic}:{part.partition}:{record.offset}"
                    await producer.send(COPIES, value.encode(), partition=part.partition % 2)
            if random.random() < 0.05 and not self.calm:
                await asyncio.sleep(random.uniform(0, 15))
            ends = {part: records[-1].offset + 1 for part, records in found.items()}
            await producer.send_offsets_to_transaction(ends, who)
            await self._commit()
        except TransactionError as error:
            if error.maybe_committed or not error.abortable:
                raise  # the next life begins where the group is
            await producer.abort_transaction()
        except ApiError:  # a record was not taken
            await producer.abort_transaction()
        else:
            return
        for part, records in found.items():
            if part in consumer.assignment():
                consumer.seek(part, records[0].offset)

    async def _commit(self) -> None:
        for left in reversed(range(ENDS)):
            try:
                await self.producer.commit_transaction()
            except TransactionError as error:
                if not (error.maybe_committed and error.code.retriable and left):
                    raise
            else:
                return
