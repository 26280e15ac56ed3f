# SPDX-License-Identifier: Apache-2.0
"""The producer and the consumers of the demo, each in a process that can be killed.

    python demo_parts.py produce BOOTSTRAP TOPIC JOURNAL
    python demo_parts.py consumer BOOTSTRAP TOPIC GROUP NAME JOURNAL     (KIP-848, confluent-kafka)
    python demo_parts.py classic BOOTSTRAP TOPIC GROUP NAME JOURNAL      (kafka-python)
    python demo_parts.py weighed BOOTSTRAP TOPIC GROUP NAME JOURNAL      (kohort.Consumer; the name
                                                                         ends with the weight)

Everything that happens goes into the journal, a JSON object on each line: the demo's checks read
nothing else.
"""

import json
import signal
import sys
import time
from pathlib import Path

COMMIT_EVERY_SECONDS = 0.5


class Journal:
    """What one process has seen, in order, flushed line by line: a kill loses nothing of it."""

    def __init__(self, path: str) -> None:
        self._file = Path(path).open("a", encoding="utf-8")  # noqa: SIM115

    def note(self, **facts: object) -> None:
        self._file.write(json.dumps({"at": time.time(), **facts}) + "\n")
        self._file.flush()


class Ending:
    """True once the process has been asked to end."""

    def __init__(self) -> None:
        self.asked = False
        signal.signal(signal.SIGTERM, self._ask)
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    def _ask(self, *_: object) -> None:
        self.asked = True


def produce(bootstrap: str, topic: str, journal_path: str) -> None:
    """About 200 numbered records a second, and a note of each that the broker has acknowledged."""
    from confluent_kafka import Producer

    journal, ending = Journal(journal_path), Ending()
    producer = Producer(
        {"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 5, "log_level": 0}
    )

    def delivered(error: object, message: object) -> None:
        if error is None:
            number = int(message.value())  # type: ignore[attr-defined]
            journal.note(acked=number)
        else:
            journal.note(failed=str(error))

    number = 0
    while not ending.asked:
        producer.produce(topic, key=str(number % 1000), value=str(number), callback=delivered)
        number += 1
        producer.poll(0.005)
    left = producer.flush(30)
    journal.note(unsent=left)


def consume(bootstrap: str, topic: str, group: str, name: str, journal_path: str) -> None:
    """A member of a KIP-848 group that commits twice a second."""
    from confluent_kafka import Consumer, KafkaException

    journal, ending = Journal(journal_path), Ending()
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "group.protocol": "consumer",
            "client.id": name,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "log_level": 0,
        }
    )

    def commit() -> None:
        try:
            done = consumer.commit(asynchronous=False)
        except KafkaException as error:
            journal.note(refused=str(error))
            return
        for one in done or ():
            if one.error is None:
                journal.note(committed=[one.partition, one.offset])

    def revoked(_: object, partitions: list) -> None:
        commit()
        journal.note(gave=[one.partition for one in partitions])

    consumer.subscribe(
        [topic],
        on_assign=lambda _, got: journal.note(got=[one.partition for one in got]),
        on_revoke=revoked,
    )
    last = time.monotonic()
    unsaved = False
    while not ending.asked:
        message = consumer.poll(0.1)
        if message is not None and message.error() is None:
            journal.note(read=[message.partition(), message.offset(), int(message.value())])
            unsaved = True
        if unsaved and time.monotonic() - last > COMMIT_EVERY_SECONDS:
            last, unsaved = time.monotonic(), False
            commit()
    consumer.close()


def classic(bootstrap: str, topic: str, group: str, name: str, journal_path: str) -> None:
    """A member of a classic group, with a client that does not know KIP-848."""
    import logging

    from kafka import KafkaConsumer
    from kafka.errors import KafkaError

    logging.getLogger("kafka").setLevel(logging.CRITICAL)
    journal, ending = Journal(journal_path), Ending()
    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=bootstrap,
        group_id=group,
        client_id=name,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=6000,
        heartbeat_interval_ms=500,
    )
    while not ending.asked:
        try:
            batches = consumer.poll(timeout_ms=200)
        except KafkaError as error:  # the broker is away: ask again
            journal.note(refused=str(error))
            continue
        for partition, messages in batches.items():
            for one in messages:
                journal.note(read=[partition.partition, one.offset, int(one.value)])
        if batches:
            try:
                consumer.commit()
            except KafkaError as error:
                journal.note(refused=str(error))
                continue
            for partition, messages in batches.items():
                journal.note(committed=[partition.partition, messages[-1].offset + 1])
    consumer.close(autocommit=False)


def weighed(bootstrap: str, topic: str, group: str, name: str, journal_path: str) -> None:
    """A member that says how strong it is, and may be asked to compute for the whole group."""
    import asyncio

    from assignors.by_weight import ByWeight

    from kohort import Consumer

    journal, ending = Journal(journal_path), Ending()

    async def read() -> None:
        async with Consumer(
            topic,
            bootstrap_servers=bootstrap,
            group_id=group,
            client_id=name,
            auto_offset_reset="earliest",
            assignors=[ByWeight(float(name.rpartition("-")[2]))],
        ) as consumer:
            while not ending.asked:
                for partition, records in (await consumer.getmany(timeout_ms=200)).items():
                    for one in records:
                        journal.note(read=[partition.partition, one.offset, int(one.value)])

    asyncio.run(read())


if __name__ == "__main__":
    parts = {"produce": produce, "consumer": consume, "classic": classic, "weighed": weighed}
    parts[sys.argv[1]](*sys.argv[2:])
