# SPDX-License-Identifier: Apache-2.0
"""A producer: records with keys, and a copy from topic to topic that loses and doubles nothing.

`python examples/produce.py HOST:PORT` writes to your cluster; without an address, to a broker in
memory.
"""

import asyncio
import sys

import kohort

CITIES = ("Oslo", "Lima", "Cairo")


async def write(bootstrap: str, count: int) -> None:
    """Records of one key go to one partition, in their order."""
    settings = {"value_serializer": str.encode, "key_serializer": str.encode}
    async with kohort.Producer(bootstrap_servers=bootstrap, **settings) as producer:
        deliveries = [
            await producer.send("orders", f"order {number}", key=CITIES[number % 3])
            for number in range(count)
        ]
        try:
            told = [await delivery for delivery in deliveries]
        except kohort.DeliveryError as error:
            print(f"not delivered (maybe written: {error.maybe_written}): {error}")
            raise
    print(f"wrote {len(told)} orders to {len({one.partition for one in told})} partitions")


async def copy(bootstrap: str, count: int) -> None:
    """What was read, what is written for it and the offsets become true together, or not at all."""
    reading = {"group_id": "copy", "auto_offset_reset": "earliest", "enable_auto_commit": False}
    copied = 0
    async with (
        kohort.Consumer("orders", bootstrap_servers=bootstrap, **reading) as consumer,
        kohort.Producer(bootstrap_servers=bootstrap, transactional_id="copy-1") as producer,
    ):
        while copied < count:
            batch = await consumer.getmany(timeout_ms=500, max_records=4)
            if not batch:
                continue
            async with producer.transaction():
                for records in batch.values():
                    for record in records:
                        await producer.send("invoices", record.value, key=record.key)
                ends = {place: records[-1].offset + 1 for place, records in batch.items()}
                await producer.send_offsets_to_transaction(ends, consumer.group_metadata())
            copied += sum(map(len, batch.values()))
    print(f"copied {copied} orders in transactions")


async def try_it() -> None:
    """With a broker inside this program."""
    async with kohort.Broker() as broker:
        host, port = broker.addresses[0]
        bootstrap = f"{host}:{port}"
        async with kohort.AdminClient(bootstrap) as admin:
            topics = [kohort.NewTopic(name, 3) for name in ("orders", "invoices")]
            (await admin.create_topics(topics)).all()
        await write(bootstrap, 12)
        await copy(bootstrap, 12)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        asyncio.run(write(sys.argv[1], 12))
    else:
        asyncio.run(try_it())
