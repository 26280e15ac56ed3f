# SPDX-License-Identifier: Apache-2.0
"""Transactions of whole brokers: ours, and Apache Kafka."""

import asyncio

import pytest
from tests.client.scripted import asynchronous
from tests.client.whole_brokers import CURRENT_BROKERS, create_topic, whole_broker

from kohort import (
    AdminClient,
    ApiError,
    DeliveryError,
    ErrorCode,
    Producer,
    TopicPartition,
    TransactionError,
)
from kohort.errors import KohortError

FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)


@pytest.fixture(scope="module", params=CURRENT_BROKERS)
def bootstrap(request):
    with whole_broker(request.param) as address:
        create_topic(address, "orders", 2)
        yield address


async def open_transaction(bootstrap, transactional_id, *partitions):
    """A producer whose transaction is open, and in these partitions."""
    producer = Producer(bootstrap_servers=bootstrap, transactional_id=transactional_id)
    await producer.start()
    await producer.begin_transaction()
    for partition in partitions:
        await (await producer.send(partition.topic, b"x", partition=partition.partition))
    return producer


async def commit_late(producer):
    await (await producer.send("orders", b"late", partition=0))
    await producer.commit_transaction()


async def opened(admin, partition):
    """The producers whose transactions are open in a partition."""
    states = (await admin.describe_producers([partition]))[partition]
    return [state for state in states if state.transaction_start_offset is not None]


@asynchronous
async def test_a_transaction_is_found_described_and_fenced(bootstrap):
    async with AdminClient(bootstrap) as admin:
        producer = await open_transaction(bootstrap, "billing", SECOND, FIRST)
        (listed,) = await admin.list_transactions(states="ongoing")
        assert (listed.transactional_id, listed.state) == ("billing", "Ongoing")
        found = (await admin.describe_transactions("billing"))["billing"]
        assert (found.state, found.partitions) == ("Ongoing", (FIRST, SECOND))
        assert found.producer_id == listed.producer_id
        assert found.coordinator_id in [node.node_id for node in await admin.describe_cluster()]
        assert found.timeout_ms == 60_000
        assert found.start_time_ms > 1_700_000_000_000
        (state,) = await opened(admin, FIRST)
        assert (state.producer_id, state.producer_epoch) == (found.producer_id, 0)
        assert state.last_sequence == 0
        assert state.transaction_start_offset == 0

        fenced = (await admin.fence_producers(["billing", "never used"])).all()
        assert fenced["billing"].producer_epoch > 0
        assert await opened(admin, FIRST) == []
        with pytest.raises((DeliveryError, TransactionError)):
            await commit_late(producer)
        await close(producer)
        ended = await admin.describe_transactions(["billing", "never used", "nobody"])
        assert ended["billing"].partitions == ()
        assert ended["billing"].start_time_ms is None
        assert ended["never used"].state == "Empty"
        assert ended.failed["nobody"].code is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND


@asynchronous
async def test_transactions_are_filtered(bootstrap):
    async with AdminClient(bootstrap) as admin:
        (await admin.fence_producers(["filter-a", "filter-b"])).all()
        of_pattern = await admin.list_transactions(pattern="filter-.")
        ids = [each.transactional_id for each in of_pattern]
        assert ids == ["filter-a", "filter-b"]
        second = of_pattern.transactions[1]
        assert list(await admin.list_transactions(producer_ids=[second.producer_id])) == [second]
        assert len(await admin.list_transactions(pattern="filter-.", states="Ongoing")) == 0
        producer = await open_transaction(bootstrap, "filter-c", FIRST)
        for least, expected in ((0, ["filter-c"]), (3_600_000, [])):
            found = await admin.list_transactions(
                states="Ongoing", min_duration_ms=least, pattern="filter-.*"
            )
            assert [each.transactional_id for each in found] == expected
        long_ago = await admin.list_transactions(min_duration_ms=3_600_000, pattern="filter-.")
        assert [each.transactional_id for each in long_ago] == ["filter-a", "filter-b"]
        await producer.abort_transaction()
        await producer.close()
        with pytest.raises(ApiError, match="INVALID_REGULAR_EXPRESSION"):
            await admin.list_transactions(pattern="(")


@asynchronous
async def test_one_partition_of_a_transaction_is_aborted(bootstrap):
    async with AdminClient(bootstrap) as admin:
        producer = await open_transaction(bootstrap, "hanging", FIRST, SECOND)
        (state,) = await opened(admin, FIRST)
        numbers = {"producer_id": state.producer_id, "producer_epoch": state.producer_epoch}
        await admin.abort_transaction(FIRST, **numbers)
        assert await opened(admin, FIRST) == []
        assert len(await opened(admin, SECOND)) == 1
        (await admin.fence_producers("hanging")).all()
        with pytest.raises(ApiError, match="INVALID_PRODUCER_EPOCH"):
            await admin.abort_transaction(FIRST, **numbers)
        await close(producer)


async def close(producer):
    """End a producer that has been fenced, and may say so."""
    try:
        async with asyncio.timeout(60):
            await producer.close()
    except KohortError:
        pass
