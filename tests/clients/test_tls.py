# SPDX-License-Identifier: Apache-2.0
"""Real clients on a listener of TLS that asks for certificates: each writes a record and reads it
in a group.
"""

import asyncio
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.certificates import Authority
from tests.peers.kafka import run_tool, unavailable
from tests.server.tls_broker import TlsBroker

pytestmark = pytest.mark.clients

SOON_S = 60
SUBJECT = "User:CN=alice,O=Kohort"


class Served:
    """A broker, and the files that its clients need."""

    def __init__(self, folder: Path) -> None:
        authority = Authority()
        self.ca = authority.write(folder / "ca.pem")
        self.client = authority.sign("alice").write_pem(folder / "alice.pem")
        server = authority.sign("localhost").write_pem(folder / "server.pem")
        self.broker = TlsBroker(
            {
                "listeners": "SSL://127.0.0.1:0",
                "ssl.keystore.type": "PEM",
                "ssl.keystore.location": str(server),
                "ssl.truststore.type": "PEM",
                "ssl.truststore.location": str(self.ca),
                "ssl.client.auth": "required",
                "group.initial.rebalance.delay.ms": "0",
            }
        )

    @property
    def bootstrap(self) -> str:
        return f"localhost:{self.broker.port('SSL')}"

    @property
    def context(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=str(self.ca))
        context.load_cert_chain(self.client)
        return context


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    found = Served(tmp_path_factory.mktemp("tls"))
    with found.broker:
        yield found


def test_librdkafka(served: Served) -> None:
    from confluent_kafka import Consumer, Producer

    settings = {
        "bootstrap.servers": served.bootstrap,
        "security.protocol": "SSL",
        "ssl.ca.location": str(served.ca),
        "ssl.certificate.location": str(served.client),
        "ssl.key.location": str(served.client),
    }
    producer = Producer(settings)
    producer.produce("librdkafka", b"value")
    assert producer.flush(SOON_S) == 0
    consumer = Consumer({**settings, "group.id": "librdkafka", "auto.offset.reset": "earliest"})
    try:
        consumer.subscribe(["librdkafka"])
        record = consumer.poll(SOON_S)
        assert record is not None
        assert record.value() == b"value"
        assert SUBJECT in served.broker.principals()
    finally:
        consumer.close()


def test_kafka_python(served: Served) -> None:
    from kafka import KafkaConsumer, KafkaProducer

    settings = {
        "bootstrap_servers": served.bootstrap,
        "security_protocol": "SSL",
        "ssl_cafile": str(served.ca),
        "ssl_certfile": str(served.client),
        "ssl_keyfile": str(served.client),
    }
    producer = KafkaProducer(**settings)
    producer.send("kafka-python", b"value").get(SOON_S)
    producer.close()
    consumer = KafkaConsumer(
        "kafka-python",
        group_id="kafka-python",
        auto_offset_reset="earliest",
        consumer_timeout_ms=SOON_S * 1000,
        **settings,
    )
    try:
        assert next(consumer).value == b"value"
    finally:
        consumer.close()


def test_aiokafka(served: Served) -> None:
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

    async def talk() -> bytes:
        settings = {
            "bootstrap_servers": served.bootstrap,
            "security_protocol": "SSL",
            "ssl_context": served.context,
        }
        async with AIOKafkaProducer(**settings) as producer:
            await producer.send_and_wait("aiokafka", b"value")
        async with AIOKafkaConsumer(
            "aiokafka", group_id="aiokafka", auto_offset_reset="earliest", **settings
        ) as consumer:
            record = await asyncio.wait_for(consumer.getone(), SOON_S)
            return record.value

    assert asyncio.run(talk()) == b"value"


@pytest.mark.java
def test_java(served: Served, tmp_path: Path) -> None:
    """Its console consumer reads what librdkafka has written, with PEM files of its own."""
    if reason := unavailable():
        pytest.skip(reason)
    from confluent_kafka import Producer

    producer = Producer(
        {
            "bootstrap.servers": served.bootstrap,
            "security.protocol": "SSL",
            "ssl.ca.location": str(served.ca),
            "ssl.certificate.location": str(served.client),
            "ssl.key.location": str(served.client),
        }
    )
    producer.produce("java", b"value")
    assert producer.flush(SOON_S) == 0
    config = tmp_path / "client.properties"
    config.write_text(
        "security.protocol=SSL\n"
        f"ssl.truststore.type=PEM\nssl.truststore.location={served.ca}\n"
        f"ssl.keystore.type=PEM\nssl.keystore.location={served.client}\n"
    )
    ran = run_tool(
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
        *("--bootstrap-server", served.bootstrap, "--command-config", str(config)),
        *("--topic", "java", "--from-beginning", "--max-messages", "1", "--group", "java"),
    )
    assert "value" in ran.stdout, ran.stderr
