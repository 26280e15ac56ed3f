# SPDX-License-Identifier: Apache-2.0
"""One producer in a process of its own: `producing_client.py CLIENT ADDRESS TOPIC SIZE COUNT`.

Prints the CPU seconds and the seconds that COUNT records of SIZE bytes took, from the first to the
last acknowledgement, after a tenth of them to warm up. All clients have the same settings:
acks=all, idempotence, batches of 64 KiB, no compression.
"""

import asyncio
import json
import sys
import time

BATCH, LINGER_MS = 65_536, 5


async def kohort(address: str, topic: str, value: bytes, counts: list[int]) -> None:
    from kohort import Producer

    settings = {"batch_size": BATCH, "linger_ms": LINGER_MS}
    async with Producer(bootstrap_servers=address, **settings) as producer:
        for count in counts:
            begin = started()
            for _ in range(count):
                await producer.send(topic, value)
            await producer.flush()
            told = ended(begin)
    print(json.dumps(told))


async def aiokafka(address: str, topic: str, value: bytes, counts: list[int]) -> None:
    from aiokafka import AIOKafkaProducer

    producer = AIOKafkaProducer(
        bootstrap_servers=address,
        enable_idempotence=True,
        max_batch_size=BATCH,
        linger_ms=LINGER_MS,
    )
    async with producer:
        for count in counts:
            begin = started()
            for _ in range(count):
                await producer.send(topic, value)
            await producer.flush()
            told = ended(begin)
    print(json.dumps(told))


def confluent(address: str, topic: str, value: bytes, counts: list[int]) -> None:
    from confluent_kafka import Producer

    failed = []

    def delivered(error, _message):
        if error is not None:
            failed.append(error)

    producer = Producer(
        {
            "bootstrap.servers": address,
            "enable.idempotence": True,
            "batch.size": BATCH,
            "linger.ms": LINGER_MS,
        }
    )
    for count in counts:
        begin = started()
        for _ in range(count):
            while True:
                try:
                    producer.produce(topic, value, on_delivery=delivered)
                    break
                except BufferError:
                    producer.poll(0.01)
            producer.poll(0)
        producer.flush()
        told = ended(begin)
    if failed:
        raise SystemExit(f"{len(failed)} were not delivered: {failed[0]}")
    print(json.dumps(told))


def started() -> tuple[float, float]:
    return time.process_time(), time.perf_counter()


def ended(begin: tuple[float, float]) -> dict[str, float]:
    return {
        "cpu_s": time.process_time() - begin[0],
        "seconds": time.perf_counter() - begin[1],
    }


def main() -> None:
    client, address, topic, size, count = sys.argv[1:]
    counts = [int(count) // 10, int(count)]
    given = (address, topic, bytes(int(size)), counts)
    if client == "confluent-kafka":
        confluent(*given)
    else:
        asyncio.run({"kohort": kohort, "aiokafka": aiokafka}[client](*given))


if __name__ == "__main__":
    main()
