# SPDX-License-Identifier: Apache-2.0
"""One client of a group in a process of its own: python client.py SETTINGS, a JSON object.

It reads, commits what it has read every `commit_s`, and keeps a journal: a line of JSON for each
poll that returned records, [time in ms, "poll", {partition: [first offset, last offset]}], and one
for each commit that was acknowledged, [time in ms, "commit", {partition: offset}]. On its standard
input it is told, a word a line: `hang` (poll nothing for `hang_s`) or `leave`.
"""

import asyncio
import json
import logging
import queue
import sys
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any


class Journal:
    """Lines of a file, each on its way to the disk when it was written: a kill takes none."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", buffering=1)

    def polled(self, records: Iterable[tuple[int, int]]) -> None:
        spans: dict[int, list[int]] = {}
        for partition, offset in records:
            spans.setdefault(partition, [offset, offset])[1] = offset
        if spans:
            self._tell("poll", spans)

    def committed(self, offsets: dict[int, int]) -> None:
        if offsets:
            self._tell("commit", offsets)

    def _tell(self, what: str, told: dict[int, Any]) -> None:
        self._file.write(json.dumps([int(time.time() * 1000), what, told]) + "\n")


def orders() -> "queue.Queue[str]":
    """What stands on the standard input, line by line; its end is a `leave`."""
    arrived: queue.Queue[str] = queue.Queue()

    def read() -> None:
        for line in sys.stdin:
            arrived.put(line.strip())
        arrived.put("leave")

    threading.Thread(target=read, daemon=True).start()
    return arrived


def next_of(arrived: "queue.Queue[str]") -> str | None:
    try:
        return arrived.get_nowait()
    except queue.Empty:
        return None


def confluent(given: dict[str, Any], journal: Journal) -> None:
    """As most programs do: librdkafka commits by itself what was polled."""
    from confluent_kafka import Consumer

    def acknowledged(error: Any, partitions: list[Any]) -> None:
        if error is None:
            done = {one.partition: one.offset for one in partitions if one.error is None}
            journal.committed({index: offset for index, offset in done.items() if offset >= 0})

    settings = {
        "bootstrap.servers": given["bootstrap"],
        "client.id": given["client_id"],
        "group.id": given["group"],
        "log_level": 0,  # a broker that is away is nothing to write about
        "auto.offset.reset": "earliest",
        "auto.commit.interval.ms": int(given["commit_s"] * 1000),
        "max.poll.interval.ms": given["max_poll_ms"],
        "reconnect.backoff.max.ms": given["backoff_ms"],
        "on_commit": acknowledged,
    }
    if given["kind"] == "consumer":
        settings |= {"group.protocol": "consumer"}
    else:
        strategy = "cooperative-sticky" if given["kind"] == "cooperative" else "range"
        settings |= {"partition.assignment.strategy": strategy}
        settings |= {"session.timeout.ms": given["session_ms"], "heartbeat.interval.ms": 1000}
    consumer = Consumer(settings)
    consumer.subscribe([given["topic"]])
    arrived = orders()
    while (order := next_of(arrived)) != "leave":
        if order == "hang":
            time.sleep(given["hang_s"])
        found = consumer.consume(1000, given["poll_s"])
        journal.polled((one.partition(), one.offset()) for one in found if one.error() is None)
    consumer.close()


async def aio(given: dict[str, Any], journal: Journal) -> None:
    """A coordination that was cancelled within aiokafka ends it: then begin anew."""
    logging.disable()  # a broker that is away is nothing to write about
    arrived = orders()
    while not await aio_life(given, journal, arrived):
        pass


async def aio_life(given: dict[str, Any], journal: Journal, arrived: "queue.Queue[str]") -> bool:
    """Whether it was told to leave. Commits by hand, since aiokafka does not tell what it has
    committed by itself.
    """
    from aiokafka import AIOKafkaConsumer
    from aiokafka.errors import KafkaError

    consumer = AIOKafkaConsumer(
        given["topic"],
        bootstrap_servers=given["bootstrap"],
        client_id=given["client_id"],
        group_id=given["group"],
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=given["session_ms"],
        heartbeat_interval_ms=1000,
        max_poll_interval_ms=given["max_poll_ms"],
    )
    read: dict[Any, int] = {}
    committed_at = time.monotonic()
    try:
        await consumer.start()
        while (order := next_of(arrived)) != "leave":
            if order == "hang":
                await asyncio.sleep(given["hang_s"])  # its heart beats on
            found = await consumer.getmany(timeout_ms=int(given["poll_s"] * 1000))
            journal.polled((where.partition, one.offset) for where in found for one in found[where])
            read |= {where: records[-1].offset + 1 for where, records in found.items()}
            if time.monotonic() - committed_at >= given["commit_s"]:
                committed_at = time.monotonic()
                mine = {where: to for where, to in read.items() if where in consumer.assignment()}
                read = {}
                # Who has lost a partition is refused: another one reads from the last commit on.
                with suppress(KafkaError):
                    if mine:
                        await consumer.commit(mine)
                        journal.committed({where.partition: to for where, to in mine.items()})
            await asyncio.sleep(max(0.0, given["poll_s"] - 0.05))
    except (KafkaError, asyncio.CancelledError):
        return False
    else:
        return True
    finally:
        with suppress(KafkaError, asyncio.CancelledError):
            await consumer.stop()


if __name__ == "__main__":
    settings = json.loads(sys.argv[1])
    kept = Journal(Path(settings["journal"]))
    if settings["kind"] == "aiokafka":
        asyncio.run(aio(settings, kept))
    else:
        confluent(settings, kept)
