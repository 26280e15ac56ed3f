# SPDX-License-Identifier: Apache-2.0
"""A real Apache Kafka whose `__consumer_offsets` holds what a log directory holds.

The batches are produced as they are. A broker lets foreign hands write into an internal topic only
under the client id of its own tools.
"""

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from kohort.client.network.address import Address
from kohort.client.network.connection import Connection
from kohort.wire import batch
from kohort.wire.messages.find_coordinator import FindCoordinatorRequest
from kohort.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

GROUP_LOG = "__consumer_offsets"
NAMED = 12  # the last version of Produce that names topics
NOT_YET = (3, 5, 6)  # the partition has just been made and has no leader


@contextmanager
def filled(directory: Path) -> Iterator[str]:
    """Its address."""
    from tests.peers.kafka import Kafka

    count = len(list(directory.glob(f"{GROUP_LOG}-*")))
    settings = {
        "offsets.topic.num.partitions": count,
        "log.cleaner.enable": "false",
        "log4j.logger.kafka": "ERROR",
    }
    with Kafka(settings) as broker:
        asyncio.run(fill(broker.address, list(_partitions(directory))))
        yield broker.address


def _partitions(directory: Path) -> Iterator[tuple[int, bytes]]:
    for folder in directory.glob(f"{GROUP_LOG}-*"):
        data = b"".join(file.read_bytes() for file in sorted(folder.glob("*.log")))
        yield int(folder.name.rpartition("-")[2]), data


async def fill(bootstrap: str, partitions: Iterable[tuple[int, bytes]]) -> None:
    """Produce every batch of these partitions, a batch at a time in each."""
    connection = await Connection.open(
        Address.of(bootstrap), client_id="__admin_client", deadline=_soon()
    )
    try:
        while True:  # asking makes the topic
            answer = await connection.ask(
                FindCoordinatorRequest(key_type=0, coordinator_keys=["any"]), deadline=_soon()
            )
            if answer.coordinators[0].error_code == 0:
                break
            await asyncio.sleep(0.1)
        await asyncio.gather(*(_fill_partition(connection, *one) for one in partitions))
    finally:
        await connection.close()


def _soon() -> float:
    return asyncio.get_running_loop().time() + 60


async def _fill_partition(connection: Connection, index: int, data: bytes) -> None:
    for position, header in batch.walk(data):
        # What a producer sends begins at offset 0.
        one = batch.stamp(data[position : position + header.length], 0, -1)
        await _produce(connection, index, one)


async def _produce(connection: Connection, index: int, records: bytes) -> None:
    request = ProduceRequest(
        transactional_id=None,
        acks=1,
        timeout_ms=30_000,
        topic_data=[
            TopicProduceData(
                name=GROUP_LOG,
                partition_data=[PartitionProduceData(index=index, records=records)],
            )
        ],
    )
    for _ in range(50):
        answer = await connection.ask(request, deadline=_soon(), at_most=NAMED)
        told = answer.responses[0].partition_responses[0]
        error = told.error_code
        if error not in NOT_YET:
            break
        await asyncio.sleep(0.2)
    if error:
        raise SystemExit(f"{GROUP_LOG}-{index}: the broker answered {error}: {told.error_message}")
