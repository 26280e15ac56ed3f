# SPDX-License-Identifier: Apache-2.0
"""What comes and goes at a broker: topics, groups of both protocols, members, producers with and
without transactions, connections that say nothing. Each life makes its own, uses it, and leaves
nothing behind.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from itertools import count
from random import Random

from kohort import AdminClient, Consumer, NewTopic, Producer

PARTITIONS = 4
RECORDS = 40
LIFE_S = 60.0
"""No life takes longer, however busy the machine is."""
MONITOR_S = 1.0
HANG_UP_S = 0.05

Life = Callable[[str, str], Awaitable[None]]
"""Given where the broker is and a name that nobody has had."""


async def _produce(bootstrap: str, topic: str, transactional_id: str | None) -> None:
    async with Producer(
        bootstrap_servers=bootstrap, transactional_id=transactional_id, linger_ms=1
    ) as producer:
        if transactional_id is None:
            for number in range(RECORDS):
                await producer.send(topic, b"%d" % number, key=b"%d" % number)
            await producer.flush()
        else:
            async with producer.transaction():
                for number in range(RECORDS):
                    await producer.send(topic, b"%d" % number, key=b"%d" % number)


async def _member(
    bootstrap: str, topic: str, group: str, protocol: str, read: set[tuple[int, int]]
) -> None:
    async with Consumer(
        topic,
        bootstrap_servers=bootstrap,
        group_id=group,
        group_protocol=protocol,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
    ) as consumer:
        while len(read) < RECORDS:
            batches = await consumer.getmany(timeout_ms=200)
            for records in batches.values():
                read |= {(record.partition, record.offset) for record in records}


async def _group(bootstrap: str, name: str, protocol: str, transactional_id: str | None) -> None:
    async with AdminClient(bootstrap_servers=bootstrap) as admin:
        (await admin.create_topics([NewTopic(name, PARTITIONS)])).all()
        try:
            await _produce(bootstrap, name, transactional_id)
            read: set[tuple[int, int]] = set()
            members = [_member(bootstrap, name, name, protocol, read) for _ in range(3)]
            await asyncio.gather(*members)
            (await admin.delete_groups([name])).all()
        finally:
            (await admin.delete_topics([name])).all()


async def consumer_group(bootstrap: str, name: str) -> None:
    await _group(bootstrap, name, "consumer", None)


async def classic_group(bootstrap: str, name: str) -> None:
    await _group(bootstrap, name, "classic", name)


async def silent_connections(bootstrap: str, _name: str) -> None:
    """Twenty at once, some of which stop in the middle of a request."""
    host, _, port = bootstrap.rpartition(":")
    async with AsyncExitStack() as stack:
        for number in range(20):
            _, writer = await asyncio.open_connection(host, int(port))
            stack.callback(writer.close)
            if number % 2:
                writer.write(b"\0\0\1\0\0\3")
        await asyncio.sleep(HANG_UP_S)


LIVES: dict[str, Life] = {
    "consumer group": consumer_group,
    "classic group": classic_group,
    "silent connections": silent_connections,
}


async def _lives(
    bootstrap: str, life: str, numbers: Iterator[int], done: Counter[str], over: asyncio.Event
) -> None:
    while not over.is_set():
        async with asyncio.timeout(LIFE_S):
            await LIVES[life](bootstrap, f"passing-{next(numbers)}")
        done[life] += 1


async def _monitor(bootstrap: str, done: Counter[str], over: asyncio.Event) -> None:
    """What a tool does that looks after a cluster: it lists and describes everything."""
    async with AdminClient(bootstrap_servers=bootstrap) as admin:
        while not over.is_set():
            groups = [one.group_id for one in await admin.list_groups()]
            await admin.describe_groups(groups)
            for group in groups:
                await admin.list_group_offsets(group)
            await admin.list_topics()
            done["look of the monitor"] += 1
            await asyncio.sleep(MONITOR_S)


async def live(bootstrap: str, seconds: float, each: int, seed: int, done: Counter[str]) -> None:
    """Have `each` of every kind of life go on, one after the other, for so long; `done` counts
    them. What fails ends all.
    """
    chance, numbers, over = Random(seed), count(), asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(_monitor(bootstrap, done, over))
        for life in LIVES:
            for _ in range(each):
                tasks.create_task(_lives(bootstrap, life, numbers, done, over))
                await asyncio.sleep(chance.random() / 10)
        await asyncio.sleep(seconds)
        over.set()
