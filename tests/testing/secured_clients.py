# SPDX-License-Identifier: Apache-2.0
"""Clients of each make that write one record to a topic, or raise `Refused`."""

import asyncio

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError as AiokafkaError
from confluent_kafka import Producer
from kafka import KafkaProducer
from kafka.errors import KafkaError
from tests.waiting import SOON_S

import kohort
from kohort.errors import KohortError

REFUSALS = ("_SSL", "_AUTHENTICATION")  # a client of librdkafka goes on trying after them


class Refused(Exception):  # noqa: N818  (what every client calls otherwise)
    pass


def confluent(settings, topic):
    told = []
    producer = Producer({**settings, "error_cb": told.append})
    producer.produce(topic, b"value", on_delivery=lambda error, _: error and told.append(error))
    for _ in range(int(SOON_S * 10)):
        left = producer.flush(0.1)
        bad = [error for error in told if error.name() in REFUSALS or not left]
        if bad:
            producer.purge()
            raise Refused(", ".join(str(error) for error in bad))
        if not left:
            return
    raise AssertionError(f"nothing is delivered, and nobody says why: {told}")


def kafka_python(settings, topic):
    try:
        producer = KafkaProducer(**settings, bootstrap_timeout_ms=2000, max_block_ms=10_000)
    except KafkaError as error:
        raise Refused(str(error)) from error
    try:
        producer.send(topic, b"value").get(SOON_S)
    except KafkaError as error:
        raise Refused(f"{type(error).__name__}: {error}") from error
    finally:
        producer.close(timeout=1)


def aiokafka(settings, topic):
    async def go():
        producer = AIOKafkaProducer(**settings)
        try:
            await producer.start()
            await producer.send_and_wait(topic, b"value")
        except AiokafkaError as error:
            raise Refused(f"{type(error).__name__}: {error}") from error
        finally:
            await producer.stop()

    asyncio.run(go())


def own(settings, topic):
    async def go():
        try:
            async with kohort.Producer(**settings) as producer:
                await producer.send_and_wait(topic, b"value")
        except KohortError as error:
            raise Refused(str(error)) from error

    asyncio.run(go())


CLIENTS = {
    "confluent-kafka": confluent,
    "kafka-python": kafka_python,
    "aiokafka": aiokafka,
    "Kohort": own,
}
