# SPDX-License-Identifier: Apache-2.0
"""Each client on every kind of listener, with every mechanism: a record goes in and comes out, in
a group (SEC-44a). `make test` does some combinations, `make prove` all.
"""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import Consumer, Producer
from kafka import KafkaConsumer, KafkaProducer
from tests.clients.secured import (
    MECHANISMS,
    Secured,
    combinations,
    of_aiokafka,
    of_confluent,
    of_java,
    of_kafka_python,
    of_kohort,
    secured,
)
from tests.peers.java_client import properties_text
from tests.peers.kafka import run_tool, unavailable
from tests.waiting import SOON_S, eventually

import kohort

pytestmark = [pytest.mark.clients, pytest.mark.timeout(300)]

USUAL = {*(("SASL_PLAINTEXT", name) for name in MECHANISMS), ("SASL_SSL", "SCRAM-SHA-512")}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    with secured(tmp_path_factory.mktemp("listeners")) as here:
        yield here


@combinations(USUAL)
def test_librdkafka(running: Secured, listener: str, mechanism: str) -> None:
    topic = f"librdkafka-{listener}-{mechanism}"
    options = of_confluent(running, mechanism, listener)
    failed: list[object] = []
    producer = Producer(options)
    producer.produce(topic, b"value", on_delivery=lambda error, _: error and failed.append(error))
    assert producer.flush(SOON_S) == 0
    assert failed == []
    consumer = Consumer(
        options | {"group.id": topic, "auto.offset.reset": "earliest", "group.protocol": "consumer"}
    )
    consumer.subscribe([topic])
    eventually(lambda: (record := consumer.poll(1)) and record.value() == b"value", "a record")
    consumer.close()


@combinations(USUAL)
def test_kafka_python(running: Secured, listener: str, mechanism: str) -> None:
    topic = f"kafka-python-{listener}-{mechanism}"
    options = of_kafka_python(running, mechanism, listener)
    producer = KafkaProducer(**options)
    producer.send(topic, b"value").get(SOON_S)
    producer.close()
    consumer = KafkaConsumer(topic, group_id=topic, auto_offset_reset="earliest", **options)
    assert next(consumer).value == b"value"
    consumer.close()


@combinations(USUAL)
def test_aiokafka(running: Secured, listener: str, mechanism: str) -> None:
    topic = f"aiokafka-{listener}-{mechanism}"
    options = of_aiokafka(running, mechanism, listener)

    async def go() -> bytes:
        async with AIOKafkaProducer(**options) as producer:
            await producer.send_and_wait(topic, b"value")
        async with AIOKafkaConsumer(
            topic, group_id=topic, auto_offset_reset="earliest", **options
        ) as consumer:
            value: bytes = (await consumer.getone()).value
            return value

    assert asyncio.run(go()) == b"value"


@combinations(USUAL)
def test_kohort(running: Secured, listener: str, mechanism: str) -> None:
    topic = f"kohort-{listener}-{mechanism}"
    options = of_kohort(running, mechanism, listener)

    async def go() -> bytes | None:
        async with kohort.Producer(**options) as producer:
            await producer.send_and_wait(topic, b"value")
        async with kohort.Consumer(
            topic, group_id=topic, auto_offset_reset="earliest", **options
        ) as consumer:
            async for record in consumer:
                return record.value
        return None

    assert asyncio.run(go()) == b"value"


@pytest.mark.java
@combinations({("SASL_SSL", "SCRAM-SHA-512")})
def test_java(running: Secured, listener: str, mechanism: str, tmp_path: Path) -> None:
    """Its console producer and its console consumer."""
    if reason := unavailable():
        pytest.skip(reason)
    topic = f"java-{listener}-{mechanism}"
    config = tmp_path / "client.properties"
    config.write_text(properties_text(of_java(running, mechanism, listener)))
    server = "--bootstrap-server", running.bootstrap(listener), "--command-config", str(config)
    wrote = run_tool(
        "org.apache.kafka.tools.ConsoleProducer", *server, "--topic", topic, given="value\n"
    )
    assert wrote.returncode == 0, wrote.stderr
    read = run_tool(
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
        *(*server, "--topic", topic, "--group", topic),
        *("--from-beginning", "--max-messages", "1", "--timeout-ms", "60000"),
    )
    assert read.stdout == "value\n", read.stderr
