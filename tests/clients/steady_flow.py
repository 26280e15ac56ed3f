# SPDX-License-Identifier: Apache-2.0
"""Records that flow for a while through a client of each make: sent in order, and read in a group.

A flow says what it has sent and read, and every error that its user would have been told of. None
of it may show what is done to the broker meanwhile.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from time import monotonic, sleep
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from kafka import KafkaConsumer, KafkaProducer
from tests.clients.secured import (
    Secured,
    of_aiokafka,
    of_confluent,
    of_java,
    of_kafka_python,
    of_kohort,
)
from tests.peers.java_client import JavaConsumer, produce
from tests.waiting import SOON_S

import kohort

PAUSE_S = 0.01
LATE_S = SOON_S / 2  # how long after the last record was sent all must have been read


@dataclass
class Flow:
    """What has become of `topic`, by a client that runs for some seconds with these options."""

    topic: str
    options: Any
    seconds: float
    sent: int = 0
    got: list[bytes] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    began: float = field(default_factory=monotonic)
    late: float = 0.0

    @property
    def sends_on(self) -> bool:
        return monotonic() < self.began + self.seconds

    @property
    def reads_on(self) -> bool:
        """Until all that was sent has been read, or the time is over."""
        if self.sends_on or not self.late:
            return True
        return len(self.got) < self.sent and monotonic() < self.late + LATE_S

    @contextmanager
    def sending(self) -> Iterator[None]:
        """However it ends, the other half ends as well."""
        try:
            yield
        finally:
            self.late = monotonic()

    def next_value(self) -> bytes:
        self.sent += 1
        return b"%d" % (self.sent - 1)

    def check(self) -> None:
        """Every record was read once and in order, and nobody complained."""
        assert self.complaints == []
        assert self.sent > 0
        assert self.got == [b"%d" % number for number in range(self.sent)]


def _both(flow: Flow, send: Callable[[], None], read: Callable[[], None]) -> None:
    def sending() -> None:
        with flow.sending():
            send()

    with ThreadPoolExecutor(2) as pool:
        for ended in [pool.submit(sending), pool.submit(read)]:
            ended.result()


def _librdkafka(flow: Flow) -> None:
    def complain(error: Any, *_: Any) -> None:
        if error is not None:
            flow.complaints.append(str(error))

    options = {**flow.options, "error_cb": complain, "log_level": 0}

    def send() -> None:
        producer = Producer({**options, "linger.ms": 0, "enable.idempotence": True})
        while flow.sends_on:
            producer.produce(flow.topic, flow.next_value(), on_delivery=complain)
            producer.poll(PAUSE_S)
        assert producer.flush(LATE_S) == 0

    def read() -> None:
        group = {"group.id": flow.topic, "auto.offset.reset": "earliest"}
        consumer = Consumer({**options, **group, "topic.metadata.refresh.interval.ms": 500})
        consumer.subscribe([flow.topic])
        while flow.reads_on:
            record = consumer.poll(0.2)
            if record is not None and not record.error():
                flow.got.append(record.value())
        consumer.close()

    _both(flow, send, read)


def _kafka_python(flow: Flow) -> None:
    def send() -> None:
        producer = KafkaProducer(**flow.options)
        results = []
        while flow.sends_on:
            results.append(producer.send(flow.topic, flow.next_value()))
            sleep(PAUSE_S)
        for result in results:
            result.get(LATE_S)
        producer.close()

    def read() -> None:
        group = {"group_id": flow.topic, "auto_offset_reset": "earliest"}
        consumer = KafkaConsumer(flow.topic, **group, **flow.options)
        while flow.reads_on:
            for records in consumer.poll(200).values():
                flow.got.extend(record.value for record in records)
        consumer.close()

    _both(flow, send, read)


async def _asyncio(flow: Flow, producer: Any, consumer: Any) -> None:
    """What aiokafka and Kohort do alike."""

    async def send() -> None:
        with flow.sending():
            async with producer:
                results = []
                while flow.sends_on:
                    results.append(await producer.send(flow.topic, flow.next_value()))
                    await asyncio.sleep(PAUSE_S)
                await asyncio.wait_for(asyncio.gather(*results), LATE_S)

    async def read() -> None:
        async with consumer:
            while flow.reads_on:
                for records in (await consumer.getmany(timeout_ms=200)).values():
                    flow.got.extend(record.value for record in records)

    await asyncio.gather(send(), read())


def _aiokafka(flow: Flow) -> None:
    async def go() -> None:
        group = {"group_id": flow.topic, "auto_offset_reset": "earliest"}
        await _asyncio(
            flow,
            AIOKafkaProducer(enable_idempotence=True, **flow.options),
            AIOKafkaConsumer(flow.topic, **group, **flow.options),
        )

    asyncio.run(go())


def _kohort(flow: Flow) -> None:
    async def go() -> None:
        await _asyncio(
            flow,
            kohort.Producer(linger_ms=0, **flow.options),
            kohort.Consumer(
                flow.topic, group_id=flow.topic, auto_offset_reset="earliest", **flow.options
            ),
        )

    asyncio.run(go())


def _java(flow: Flow) -> None:
    """VerifiableProducer and VerifiableConsumer, as processes."""
    options = dict(flow.options)
    bootstrap = options.pop("bootstrap.servers")
    rate = round(1 / PAUSE_S)
    count = round(flow.seconds * rate)
    with JavaConsumer(bootstrap, flow.topic, flow.topic, properties=options) as consumer:
        sent = produce(
            bootstrap,
            flow.topic,
            count,
            properties=options | {"linger.ms": 0},
            per_second=rate,
            seconds=flow.seconds + 3 * SOON_S,
        )
        flow.sent = len(sent)
        with suppress(TimeoutError):
            consumer.until(lambda read: len(read.records) >= count, LATE_S)
        consumer.leave()
        flow.got.extend((value or "").encode() for value in consumer.values())
        words = consumer.complaints.read_text(errors="replace")
        flow.complaints.extend(line for line in words.splitlines() if " ERROR " in line)


CLIENTS: dict[str, tuple[Callable[[Flow], None], Callable[..., Any]]] = {
    "librdkafka": (_librdkafka, of_confluent),
    "kafka-python": (_kafka_python, of_kafka_python),
    "aiokafka": (_aiokafka, of_aiokafka),
    "kohort": (_kohort, of_kohort),
    "java": (_java, of_java),
}
"""How each client flows, and how it is told where a listener is and who it is."""


class _Errors(logging.Handler):
    """What a client of Python writes into its log as an error."""

    def __init__(self, into: list[str]) -> None:
        super().__init__(logging.ERROR)
        self.into = into

    def emit(self, record: logging.LogRecord) -> None:
        if record.name.partition(".")[0] in {"kafka", "aiokafka"}:
            self.into.append(f"{record.name}: {record.getMessage()}")


def make_topic(running: Secured, topic: str) -> None:
    """Clients say that a topic is missing which their first request makes."""
    admin = AdminClient({"bootstrap.servers": running.bootstrap("PLAINTEXT")})
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(SOON_S)


def flow_through(
    client: str, running: Secured, listener: str, mechanism: str, seconds: float
) -> Flow:
    """Let records flow for so many seconds; what has become of them."""
    run, options_of = CLIENTS[client]
    options = options_of(running, mechanism, listener)
    if client == "java":
        options["bootstrap.servers"] = running.bootstrap(listener)
    topic = f"flow-{client}-{listener}-{mechanism}"
    make_topic(running, topic)
    flow = Flow(topic, options, seconds)
    errors = _Errors(flow.complaints)
    logging.getLogger().addHandler(errors)
    try:
        run(flow)
    finally:
        logging.getLogger().removeHandler(errors)
    return flow
