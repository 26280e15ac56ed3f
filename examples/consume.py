# SPDX-License-Identifier: Apache-2.0
"""Consumer: a member of a group that counts words.

`python examples/consume.py HOST:PORT TOPIC GROUP` reads yours until Ctrl-C; without arguments it
reads a topic of a broker in memory, with two members, and ends.
"""

import asyncio
import signal
import sys
from collections import Counter
from collections.abc import Collection

from kohort import Consumer, RebalanceListener, TopicPartition


class Told(RebalanceListener):
    def __init__(self, name: str) -> None:
        self.name = name

    def on_assigned(self, partitions: Collection[TopicPartition]) -> None:
        print(f"{self.name} has {', '.join(map(str, partitions)) or 'nothing'}")

    def on_revoked(self, partitions: Collection[TopicPartition]) -> None:
        print(f"{self.name} gives up {', '.join(map(str, partitions))}")


async def count(name: str, words: Counter[str], bootstrap: str, topic: str, group: str) -> None:
    async with Consumer(
        topic,
        bootstrap_servers=bootstrap,
        group_id=group,
        client_id=name,
        auto_offset_reset="earliest",
        value_deserializer=bytes.decode,
        listener=Told(name),
    ) as consumer:
        async for record in consumer:
            words[record.value or ""] += 1  # asking for the next one says that this is done


async def try_it() -> None:
    """Two members share what a broker in memory has; then one of them leaves."""
    from kohort.testing import Broker

    text = "in the end is the beginning and in the beginning is the end"
    sent = text.split()
    words: Counter[str] = Counter()
    with Broker() as broker:
        broker.create_topic("words", 4)
        for word in sent:
            broker.produce("words", word.encode(), key=word.encode())
        members = [
            asyncio.create_task(count(name, words, broker.bootstrap, "words", "counters"))
            for name in ("anna", "ben")
        ]
        while words.total() < len(sent):  # noqa: ASYNC110  (they tell nobody)
            await asyncio.sleep(0.05)
        for member in members:
            member.cancel()  # each commits what it has done, and leaves
        await asyncio.gather(*members, return_exceptions=True)
    print(f"{words.total()} words, most often {words.most_common(1)[0][0]!r}")


async def read(bootstrap: str, topic: str, group: str) -> None:
    words: Counter[str] = Counter()
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)  # leave in order
    try:
        await count("consume.py", words, bootstrap, topic, group)
    finally:
        print(words.most_common(10))


if __name__ == "__main__":
    try:
        asyncio.run(read(*sys.argv[1:4]) if len(sys.argv) > 1 else try_it())
    except KeyboardInterrupt:
        print("stopped")
