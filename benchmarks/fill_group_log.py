"""A real Apache Kafka whose `__consumer_offsets` holds what a log directory holds.

The batches are produced as they are. A broker lets foreign hands write into an internal topic only
under the client id of its own tools.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kohort.client.connection import Address, Connection
from kohort.wire import batch
from kohort.wire.messages.find_coordinator import FindCoordinatorRequest
from kohort.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

GROUP_LOG = "__consumer_offsets"
NAMED = 12  # the last version of Produce that names topics


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
        asyncio.run(fill(broker.address, directory))
        yield broker.address


async def fill(bootstrap: str, directory: Path) -> None:
    """Produce every batch of the directory's segments."""
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
        await asyncio.gather(
            *(_fill_partition(connection, one) for one in directory.glob(f"{GROUP_LOG}-*"))
        )
    finally:
        await connection.close()


def _soon() -> float:
    return asyncio.get_running_loop().time() + 60


async def _fill_partition(connection: Connection, folder: Path) -> None:
    index = int(folder.name.rpartition("-")[2])
    for file in sorted(folder.glob("*.log")):
        data = file.read_bytes()
        for position, header in batch.walk(data):
            await _produce(connection, index, data[position : position + header.length])


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
    answer = await connection.ask(request, deadline=_soon(), at_most=NAMED)
    error = answer.responses[0].partition_responses[0].error_code
    if error:
        raise SystemExit(f"{GROUP_LOG}-{index}: the broker answered {error}")
