# SPDX-License-Identifier: Apache-2.0
"""Leader epochs: where each ended, in one log that a real broker wrote and both read."""

import asyncio
import shutil
import time

import pytest
from tests.client.joining import soon
from tests.peers.kafka import Kafka, unavailable

from kohort import Producer
from kohort.client.admin import AdminClient, NewTopic
from kohort.client.network.address import Address
from kohort.client.network.cluster import Cluster
from kohort.testing import Broker
from kohort.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kohort.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kohort.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

pytestmark = [pytest.mark.java, pytest.mark.timeout(600)]

TOPIC = "led-in-turn"
BY_NAME = 12  # of Fetch
RECORDS = (3, 2, 1)  # by epoch


@pytest.fixture(scope="module")
def kafka():
    if reason := unavailable():
        pytest.skip(reason)
    with Kafka({}, heap="512M") as broker:
        yield broker


async def produce(bootstrap, count):
    async with Producer(bootstrap_servers=bootstrap) as producer:
        for number in range(count):
            delivered = await producer.send(TOPIC, b"%d" % number, partition=0)
            await delivered


async def make_topic(bootstrap):
    async with AdminClient(bootstrap) as admin:
        (await admin.create_topics([NewTopic(TOPIC, 1, 1)])).all()


async def told(bootstrap, stamps):
    """All that clients can ask about epochs."""
    cluster = Cluster([Address.of(bootstrap)], client_id="epochs")
    try:
        connection = await cluster.any_connection(soon())
        return {
            "ends": [await epoch_end(connection, epoch) for epoch in range(-2, 9)],
            "offsets": [await listed(connection, stamp) for stamp in (-2, -1, -3, *stamps)],
            "fetched": {
                (epoch, offset): await fetched(connection, epoch, offset)
                for epoch in range(-1, 8)
                for offset in range(8)
            },
        }
    finally:
        await cluster.close()


async def epoch_end(connection, epoch):
    wanted = OffsetForLeaderPartition(partition=0, current_leader_epoch=-1, leader_epoch=epoch)
    topics = [OffsetForLeaderTopic(topic=TOPIC, partitions=[wanted])]
    answer = await connection.ask(OffsetForLeaderEpochRequest(topics=topics), deadline=soon())
    (one,) = answer.topics[0].partitions
    return one.error_code, one.leader_epoch, one.end_offset


async def listed(connection, timestamp):
    wanted = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    topics = [ListOffsetsTopic(name=TOPIC, partitions=[wanted])]
    request = ListOffsetsRequest(replica_id=-1, topics=topics)
    answer = await connection.ask(request, deadline=soon())
    (one,) = answer.topics[0].partitions
    return one.error_code, one.offset, one.leader_epoch


async def fetched(connection, epoch, offset):
    wanted = FetchPartition(
        partition=0, fetch_offset=offset, last_fetched_epoch=epoch, partition_max_bytes=1 << 20
    )
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=1 << 20,
        session_epoch=-1,
        topics=[FetchTopic(topic=TOPIC, partitions=[wanted])],
    )
    answer = await connection.ask(request, deadline=soon(), at_most=BY_NAME)
    (one,) = answer.responses[0].partitions
    parted = one.diverging_epoch
    return one.error_code, parted.epoch, parted.end_offset, bool(one.records)


def test_both_tell_the_same_of_one_log(kafka, tmp_path):
    """Each start of a broker is another leader."""
    asyncio.run(make_topic(kafka.address))
    stamps = []
    for count in RECORDS:
        if stamps:
            kafka.restart()
        stamps.append(time.time_ns() // 1_000_000)
        asyncio.run(produce(kafka.address, count))
    theirs = asyncio.run(told(kafka.address, stamps))
    kafka.stop()
    epochs = {epoch for _, _, epoch in theirs["offsets"]}
    assert len(epochs) == len(RECORDS), theirs

    shutil.copytree(kafka.data, tmp_path / "data")
    for file in (None, f"{TOPIC}-0/leader-epoch-checkpoint"):
        if file is not None:
            (tmp_path / "data" / file).unlink()  # then the batches tell
        with Broker({"node.id": "1"}, data_dir=tmp_path / "data", process=True) as broker:
            ours = asyncio.run(told(broker.bootstrap, stamps))
        for asked, answers in theirs.items():
            assert ours[asked] == answers, asked
