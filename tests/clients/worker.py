# SPDX-License-Identifier: Apache-2.0
"""A transactional worker in a process of its own: python worker.py KIND BOOTSTRAP NAME.

Kinds: confluent-classic, confluent-consumer, aiokafka, kohort. It reads numbers from `in` as a
member of the group `workers` and writes each to `out`, with its offset in the same transaction.
Every fifth transaction it aborts, and does again. It goes on until it is killed; after an error
that its producer does not survive it ends, and another one may take its place.

librdkafka 2.16 begins anew with its list of brokers when all are away, and then never sends the
commit of offsets that was under way (`metadata.recovery.strategy`): it is told not to.
aiokafka 0.14 takes OffsetFetch that is refused as a whole (version 2 and above) for a group without
offsets, and would skip what it has aborted while the group moves: it goes back by what it has read.
"""

import asyncio
import contextlib
import sys
from typing import Any

BATCH = 20
TIMEOUT_MS = 10_000


def confluent(bootstrap: str, name: str, protocol: str) -> None:
    from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

    settings: dict[str, Any] = {
        "bootstrap.servers": bootstrap,
        "group.id": "workers",
        "group.protocol": protocol,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "isolation.level": "read_committed",
        "reconnect.backoff.max.ms": 300,
        "metadata.recovery.strategy": "none",
    }
    if protocol == "classic":
        settings |= {"session.timeout.ms": 6000, "heartbeat.interval.ms": 500}
    consumer = Consumer(settings)
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "transactional.id": name,
            "transaction.timeout.ms": TIMEOUT_MS,
            "reconnect.backoff.max.ms": 300,
            "metadata.recovery.strategy": "none",
        }
    )
    producer.init_transactions(60)
    consumer.subscribe(["in"])

    def again() -> None:
        """Go back to what is committed."""
        for one in consumer.committed(consumer.assignment(), 30):
            consumer.seek(TopicPartition(one.topic, one.partition, max(one.offset, 0)))

    def until_it_ends(end: Any) -> None:
        while True:
            try:
                end(30)
            except KafkaException as error:
                if not error.args[0].retriable():
                    raise
            else:
                return

    done = 0
    while True:
        messages = [one for one in consumer.consume(BATCH, 0.5) if one.error() is None]
        if not messages:
            continue
        done += 1
        producer.begin_transaction()
        try:
            for one in messages:
                producer.produce("out", one.value())
            producer.send_offsets_to_transaction(
                consumer.position(consumer.assignment()), consumer.consumer_group_metadata(), 30
            )
            if done % 5 == 0:
                until_it_ends(producer.abort_transaction)
                again()
            else:
                until_it_ends(producer.commit_transaction)
        except KafkaException as error:
            if not error.args[0].txn_requires_abort():
                raise
            until_it_ends(producer.abort_transaction)
            again()


async def aiokafka(bootstrap: str, name: str) -> None:
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
    from aiokafka.errors import KafkaError

    consumer = AIOKafkaConsumer(
        "in",
        bootstrap_servers=bootstrap,
        group_id="workers",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        isolation_level="read_committed",
        session_timeout_ms=6000,
        heartbeat_interval_ms=500,
    )
    producer = AIOKafkaProducer(
        bootstrap_servers=bootstrap, transactional_id=name, transaction_timeout_ms=TIMEOUT_MS
    )
    await producer.start()
    await consumer.start()
    done = 0
    while True:
        batches = await consumer.getmany(timeout_ms=500, max_records=BATCH)
        if not batches:
            continue
        done += 1
        await producer.begin_transaction()
        try:
            for messages in batches.values():
                for one in messages:
                    await producer.send("out", one.value)
            offsets = {place: messages[-1].offset + 1 for place, messages in batches.items()}
            await producer.send_offsets_to_transaction(offsets, "workers")
            if done % 5:
                await producer.commit_transaction()
                continue
            await producer.abort_transaction()
        except KafkaError:
            with contextlib.suppress(KafkaError):
                await producer.abort_transaction()
            raise
        for place, messages in batches.items():
            consumer.seek(place, messages[0].offset)


class Again(Exception):  # noqa: N818  (not an error)
    """This transaction is aborted on purpose."""


async def kohort(bootstrap: str, name: str) -> None:
    from kohort import Consumer, Producer, TransactionError

    consumer = Consumer(
        "in",
        bootstrap_servers=bootstrap,
        group_id="workers",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        isolation_level="read_committed",
    )
    producer = Producer(
        bootstrap_servers=bootstrap, transactional_id=name, transaction_timeout_ms=TIMEOUT_MS
    )
    done = 0
    async with consumer, producer:
        while True:
            batches = await consumer.getmany(timeout_ms=500, max_records=BATCH)
            if not batches:
                continue
            done += 1
            try:
                async with producer.transaction():
                    for records in batches.values():
                        for one in records:
                            await producer.send("out", one.value)
                    await producer.send_offsets_to_transaction(
                        {place: records[-1].offset + 1 for place, records in batches.items()},
                        consumer.group_metadata(),
                    )
                    if done % 5 == 0:
                        raise Again  # noqa: TRY301  (it is for the block)
            except TransactionError as error:
                if error.maybe_committed:
                    await producer.commit_transaction()
                    continue
                if not error.abortable:
                    raise
            except Again:
                pass
            else:
                continue
            for place, records in batches.items():
                if place in consumer.assignment():
                    consumer.seek(place, records[0].offset)


def main() -> None:
    kind, bootstrap, name = sys.argv[1:]
    if kind in ("aiokafka", "kohort"):
        asyncio.run(globals()[kind](bootstrap, name))
    else:
        confluent(bootstrap, name, kind.removeprefix("confluent-"))


if __name__ == "__main__":
    main()
