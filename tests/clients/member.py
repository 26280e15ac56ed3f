# SPDX-License-Identifier: Apache-2.0
"""A group member in a process of its own:
python member.py KIND BOOTSTRAP TOPIC GROUP JOURNAL [INSTANCE].

Kinds: confluent-classic, confluent-cooperative, confluent-consumer, kafka-python, aiokafka,
kohort-classic, kohort-consumer and kohort-weighed (which may be asked to compute for all). It
reads, commits about four times a second, and writes what happens into the journal, a JSON object
a line: `owns` (all its partitions), `read` (partition, offset, number), `committed` (partition,
offset), `failed`. With an instance id it is a static member, whose session is long enough for a
restart.
"""

import asyncio
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

COMMIT_SECONDS = 0.25


def session_ms(instance: str | None) -> int:
    """Who is static has time for a restart on a busy machine."""
    return 6000 if instance is None else 60_000


class Journal:
    def __init__(self, path: str) -> None:
        self.file = Path(path).open("a", encoding="utf-8")  # noqa: SIM115
        self.ending = False
        signal.signal(signal.SIGTERM, self._end)

    def _end(self, *_: object) -> None:
        self.ending = True

    def note(self, **facts: Any) -> None:
        self.file.write(json.dumps({"at": time.monotonic(), **facts}) + "\n")
        self.file.flush()


def confluent(
    bootstrap: str, topic: str, group: str, journal: Journal, instance: str | None, protocol: str
) -> None:
    from confluent_kafka import Consumer, KafkaException

    settings: dict[str, Any] = {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "group.protocol": "consumer" if protocol == "consumer" else "classic",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "fetch.wait.max.ms": 100,
        "reconnect.backoff.max.ms": 300,
    }
    if protocol == "cooperative":
        settings["partition.assignment.strategy"] = "cooperative-sticky"
    if protocol != "consumer":
        settings |= {"session.timeout.ms": session_ms(instance), "heartbeat.interval.ms": 500}
    if instance is not None:
        settings["group.instance.id"] = instance
    consumer = Consumer(settings)

    def commit() -> None:
        try:
            done = consumer.commit(asynchronous=False) or ()
        except KafkaException as error:
            journal.note(failed=str(error))
            position[0] = True  # once more
            return
        journal.note(committed=[[one.partition, one.offset] for one in done if one.error is None])
        for one in done:
            if one.error is not None:
                journal.note(failed=str(one.error))
                position[0] = True

    def owns(extra: list[Any], without: list[Any]) -> None:
        held = {one.partition for one in consumer.assignment()} | {one.partition for one in extra}
        journal.note(owns=sorted(held - {one.partition for one in without}))

    def revoked(_: Any, gone: list[Any]) -> None:
        if position[0]:
            commit()
        owns([], gone)

    position = [False]
    consumer.subscribe(
        [topic],
        on_assign=lambda _, got: owns(got, []),
        on_revoke=revoked,
        on_lost=lambda _, gone: owns([], gone),
    )
    last = time.monotonic()
    while not journal.ending:
        messages = consumer.consume(500, 0.1)
        read = []
        for one in messages:
            if one.error() is None:
                read.append([one.partition(), one.offset(), int(one.value())])
            else:
                journal.note(failed=str(one.error()))
        if read:
            position[0] = True
            journal.note(read=read)
        if position[0] and time.monotonic() - last > COMMIT_SECONDS:
            last, position[0] = time.monotonic(), False
            commit()
    consumer.close()


def kafka_python(
    bootstrap: str, topic: str, group: str, journal: Journal, instance: str | None
) -> None:
    from kafka import ConsumerRebalanceListener, KafkaConsumer
    from kafka.errors import KafkaError

    def new_consumer() -> Any:
        return KafkaConsumer(
            bootstrap_servers=bootstrap,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            group_instance_id=instance,
            session_timeout_ms=session_ms(instance),
            heartbeat_interval_ms=500,
            fetch_max_wait_ms=100,
            reconnect_backoff_max_ms=300,
        )

    consumer = None
    while consumer is None and not journal.ending:
        try:
            consumer = new_consumer()
        except KafkaError as error:  # no broker was there for half a minute
            journal.note(failed=str(error))
    if consumer is None:
        return

    class Listener(ConsumerRebalanceListener):
        def on_partitions_revoked(self, revoked: Any) -> None:
            journal.note(owns=[])

        def on_partitions_assigned(self, assigned: Any) -> None:
            journal.note(owns=sorted(one.partition for one in consumer.assignment()))

    consumer.subscribe([topic], listener=Listener())
    while not journal.ending:
        try:
            batches = consumer.poll(timeout_ms=200, max_records=500)
        except KafkaError as error:  # of a broker that is away or slow: an application asks again
            journal.note(failed=str(error))
            continue
        read = [
            [tp.partition, one.offset, int(one.value)] for tp, got in batches.items() for one in got
        ]
        if read:
            journal.note(read=read)
            try:
                consumer.commit()
            except KafkaError as error:
                journal.note(failed=str(error))
                continue
            journal.note(
                committed=[[tp.partition, got[-1].offset + 1] for tp, got in batches.items()]
            )
    consumer.close(autocommit=False)


async def aio(
    bootstrap: str, topic: str, group: str, journal: Journal, instance: str | None
) -> None:
    from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener
    from aiokafka.errors import KafkaConnectionError, KafkaError

    def new_consumer() -> Any:
        return AIOKafkaConsumer(
            bootstrap_servers=bootstrap,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            group_instance_id=instance,
            session_timeout_ms=session_ms(instance),
            heartbeat_interval_ms=500,
            fetch_max_wait_ms=100,
        )

    consumer = new_consumer()

    class Listener(ConsumerRebalanceListener):
        async def on_partitions_revoked(self, revoked: Any) -> None:
            journal.note(owns=[])

        async def on_partitions_assigned(self, assigned: Any) -> None:
            journal.note(owns=sorted(one.partition for one in assigned))

    while not journal.ending:
        consumer.subscribe([topic], listener=Listener())
        try:
            await consumer.start()
            break
        except KafkaConnectionError as error:  # it knocks once only, and cannot be started again
            journal.note(failed=str(error))
            await consumer.stop()
            await asyncio.sleep(0.2)
            consumer = new_consumer()
    while not journal.ending:
        try:
            batches = await consumer.getmany(timeout_ms=200, max_records=500)
        except KafkaError as error:
            journal.note(failed=str(error))
            continue
        read = [
            [tp.partition, one.offset, int(one.value)] for tp, got in batches.items() for one in got
        ]
        if read:
            journal.note(read=read)
            try:
                await consumer.commit()
            except KafkaError as error:
                journal.note(failed=str(error))
                continue
            journal.note(
                committed=[[tp.partition, got[-1].offset + 1] for tp, got in batches.items()]
            )
    await consumer.stop()


async def kohort(
    bootstrap: str, topic: str, group: str, journal: Journal, instance: str | None, protocol: str
) -> None:
    from kohort import Consumer, KohortError, RebalanceListener

    class Listener(RebalanceListener):
        def on_assigned(self, partitions: Any) -> None:
            journal.note(owns=sorted(one.partition for one in consumer.assignment()))

        async def on_revoked(self, partitions: Any) -> None:
            await commit()
            self.on_lost(partitions)

        def on_lost(self, partitions: Any) -> None:
            left = consumer.assignment().difference(partitions)
            journal.note(owns=sorted(one.partition for one in left))

    async def commit() -> None:
        offsets, done = dict(to_commit), {}
        to_commit.clear()
        try:
            await consumer.commit(offsets)
        except KohortError as error:
            journal.note(failed=str(error))
            to_commit.update({**offsets, **to_commit})  # once more, but for what was read since
        else:
            done = offsets
        journal.note(committed=[[one.partition, offset] for one, offset in done.items()])

    to_commit: dict[Any, int] = {}
    settings: dict[str, Any] = {"group_protocol": "classic"} if protocol == "classic" else {}
    if protocol == "weighed":
        settings["assignors"] = [one_of_each_weight()]
    consumer = Consumer(
        topic,
        bootstrap_servers=bootstrap,
        group_id=group,
        group_instance_id=instance,
        listener=Listener(),
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=session_ms(instance),
        heartbeat_interval_ms=500,
        fetch_max_wait_ms=100,
        **settings,
    )
    async with consumer:
        last = time.monotonic()
        while not journal.ending:
            try:
                batches = await consumer.getmany(timeout_ms=100)
            except KohortError as error:
                journal.note(failed=str(error))
                continue
            read = [
                [place.partition, one.offset, int(one.value)]
                for place, got in batches.items()
                for one in got
            ]
            if read:
                journal.note(read=read)
                to_commit.update({place: got[-1].offset + 1 for place, got in batches.items()})
            if to_commit and time.monotonic() - last > COMMIT_SECONDS:
                last = time.monotonic()
                await commit()


def one_of_each_weight() -> Any:
    """The first example of an assignor, with a weight that differs from process to process, and by
    which four members get one of six partitions at least.
    """
    sys.path.append(str(Path(__file__).parents[2] / "examples" / "assignors"))
    from by_weight import ByWeight

    return ByWeight(4 + os.getpid() % 3)


def main() -> None:
    kind, bootstrap, topic, group, path, *more = sys.argv[1:]
    journal, instance = Journal(path), more[0] if more else None
    if kind.startswith("confluent-"):
        confluent(bootstrap, topic, group, journal, instance, kind.partition("-")[2])
    elif kind.startswith("kohort-"):
        protocol = kind.partition("-")[2]
        asyncio.run(kohort(bootstrap, topic, group, journal, instance, protocol))
    elif kind == "kafka-python":
        kafka_python(bootstrap, topic, group, journal, instance)
    else:
        asyncio.run(aio(bootstrap, topic, group, journal, instance))


if __name__ == "__main__":
    main()
