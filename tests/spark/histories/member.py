# SPDX-License-Identifier: Apache-2.0
"""One member of a group in a process of its own: python member.py SETTINGS, a JSON object.

It joins at once and then does what it is told on its standard input, a JSON object a line: `commit`
or `transaction` (offsets as [topic, partition, offset]; an open one ends by `finish`), `subscribe`
(topics), `stall` (seconds that it takes the next time it has to give partitions up), `leave`. On
its standard output it tells what it did (`done`) and what it got and gave up (`got`, `lost`), each
with the time in milliseconds. It reads records and throws them away, and commits nothing by itself.
"""

import asyncio
import json
import logging
import queue
import sys
import threading
import time
from typing import Any

TIMEOUTS = {"session.timeout.ms": 4000, "heartbeat.interval.ms": 300}
FRESH = {"topic.metadata.refresh.interval.ms": 1000, "metadata.max.age.ms": 3000}


def tell(**facts: Any) -> None:
    print(json.dumps({"at": int(time.time() * 1000), **facts}), flush=True)


def commands() -> "queue.Queue[dict[str, Any]]":
    """What stands on the standard input, line by line; its end is a `leave`."""
    arrived: queue.Queue[dict[str, Any]] = queue.Queue()

    def read() -> None:
        for line in sys.stdin:
            arrived.put(json.loads(line))
        arrived.put({"do": "leave"})

    threading.Thread(target=read, daemon=True).start()
    return arrived


def confluent(given: dict[str, Any]) -> None:
    from confluent_kafka import Consumer, Producer, TopicPartition

    own = {"bootstrap.servers": given["bootstrap"], "client.id": given["client_id"]}
    own["log_level"] = 0  # a broker that stops is nothing to write about
    settings = own | FRESH | {"group.id": given["group"], "enable.auto.commit": False}
    settings |= {"max.poll.interval.ms": given["rebalance_timeout_ms"]}
    if given["kind"] == "consumer":
        settings |= {"group.protocol": "consumer"}
    else:
        strategy = "cooperative-sticky" if given["kind"] == "cooperative" else "range"
        settings |= {"partition.assignment.strategy": strategy} | TIMEOUTS
    if given["instance_id"]:
        settings |= {"group.instance.id": given["instance_id"]}
    consumer = Consumer(settings)

    def names(partitions: list[Any]) -> list[list[Any]]:
        return sorted([one.topic, one.partition] for one in partitions)

    stalls: list[float] = []

    def revoked(_: Any, gone: list[Any]) -> None:
        if stalls:
            time.sleep(stalls.pop())
        tell(lost=names(gone))

    def subscribe(topics: list[str]) -> None:
        consumer.subscribe(
            topics,
            on_assign=lambda _, got: tell(got=names(got)),
            on_revoke=revoked,
            on_lost=lambda _, gone: tell(lost=names(gone)),
        )

    producers: list[Producer] = []

    def transaction(offsets: list[TopicPartition], end: str) -> None:
        if not producers:
            transactional_id = f"{given['group']}-{given['client_id']}"
            producers.append(Producer(own | {"transactional.id": transactional_id}))
            producers[0].init_transactions(30)
        producers[0].begin_transaction()
        group = consumer.consumer_group_metadata()
        producers[0].send_offsets_to_transaction(offsets, group, 30)
        if end != "open":
            finish(end)

    def finish(end: str) -> None:
        if end == "commit":
            producers[0].commit_transaction(30)
        else:
            producers[0].abort_transaction(30)

    subscribe(given["topics"])
    arrived = commands()
    while True:
        consumer.poll(0.05)
        try:
            order = arrived.get_nowait()
        except queue.Empty:
            continue
        offsets = [TopicPartition(*one) for one in order.get("offsets", ())]
        match order["do"]:
            case "commit":
                consumer.commit(offsets=offsets, asynchronous=False)
            case "transaction":
                transaction(offsets, order["end"])
            case "finish":
                finish(order["end"])
            case "subscribe":
                subscribe(order["topics"])
            case "stall":
                stalls.append(order["seconds"])
            case "leave":
                consumer.close()
        tell(done=order["do"])
        if order["do"] == "leave":
            return


async def aio(given: dict[str, Any]) -> None:
    from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition

    logging.disable()  # a broker that stops is nothing to write about
    consumer = AIOKafkaConsumer(
        bootstrap_servers=given["bootstrap"],
        client_id=given["client_id"],
        group_id=given["group"],
        group_instance_id=given["instance_id"],
        enable_auto_commit=False,
        session_timeout_ms=TIMEOUTS["session.timeout.ms"],
        heartbeat_interval_ms=TIMEOUTS["heartbeat.interval.ms"],
        metadata_max_age_ms=1000,
    )

    class Listener(ConsumerRebalanceListener):
        def on_partitions_revoked(self, revoked: Any) -> None:
            tell(lost=sorted([one.topic, one.partition] for one in revoked))

        def on_partitions_assigned(self, assigned: Any) -> None:
            tell(got=sorted([one.topic, one.partition] for one in assigned))

    consumer.subscribe(given["topics"], listener=Listener())
    await consumer.start()
    arrived = commands()
    while True:
        await consumer.getmany(timeout_ms=50)
        try:
            order = arrived.get_nowait()
        except queue.Empty:
            continue
        match order["do"]:
            case "commit":
                await consumer.commit(
                    {TopicPartition(topic, index): to for topic, index, to in order["offsets"]}
                )
            case "subscribe":
                consumer.subscribe(order["topics"], listener=Listener())
            case "leave":
                await consumer.stop()
        tell(done=order["do"])
        if order["do"] == "leave":
            return


if __name__ == "__main__":
    settings = json.loads(sys.argv[1])
    if settings["kind"] == "aiokafka":
        asyncio.run(aio(settings))
    else:
        confluent(settings)
