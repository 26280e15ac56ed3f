# SPDX-License-Identifier: Apache-2.0
"""What was lost while the application worked on it counts for nobody: no offset of it is taken."""

import asyncio
from collections.abc import Iterator

import pytest
from tests.client.consumer.running import until
from tests.client.scripted import asynchronous

from kohort import ApiError, Consumer, ErrorCode, Producer, TransactionError
from kohort.testing import Broker

PROTOCOLS = pytest.mark.parametrize("protocol", ["consumer", "classic"])


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(in_memory=True) as broker:
        yield broker


def reader(broker: Broker, name: str, protocol: str) -> Consumer:
    broker.create_topic(name)
    broker.produce(name, *range(5))
    return Consumer(
        name,
        bootstrap_servers=broker.bootstrap,
        group_id=name,
        group_protocol=protocol,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )


async def lose_and_rejoin(broker: Broker, name: str, consumer: Consumer) -> None:
    """Out of the group by an admin's hand, and back in by itself, with a new epoch."""
    await asyncio.to_thread(broker.groups[name].remove_members)
    with pytest.raises(ApiError):  # which is how it hears of it
        await consumer.commit()
    await until(lambda: bool(consumer.assignment()))


@PROTOCOLS
@asynchronous
async def test_a_transaction_of_records_that_were_lost_is_refused(
    broker: Broker, protocol: str
) -> None:
    """Also where the consumer is a member again when it says who it is."""
    name = f"transaction-{protocol}"
    async with (
        reader(broker, name, protocol) as consumer,
        Producer(bootstrap_servers=broker.bootstrap, transactional_id=name) as producer,
    ):
        batch: dict[object, list[object]] = {}
        while not batch:
            batch = dict(await consumer.getmany(timeout_ms=1000))
        (place,) = batch
        ends = {(name, 0): len(batch[place])}

        async def copy() -> None:
            async with producer.transaction():
                await producer.send(f"{name}-out", b"x")
                await lose_and_rejoin(broker, name, consumer)
                await producer.send_offsets_to_transaction(ends, consumer.group_metadata())

        with pytest.raises(TransactionError):
            await copy()
        assert broker.groups[name].committed() == {}


@PROTOCOLS
@asynchronous
async def test_offsets_of_records_that_were_lost_are_refused(broker: Broker, protocol: str) -> None:
    name = f"commit-{protocol}"
    async with reader(broker, name, protocol) as consumer:
        await consumer.getone()
        await lose_and_rejoin(broker, name, consumer)
        with pytest.raises(ApiError) as refused:
            await consumer.commit({(name, 0): 1})
        assert refused.value.code is ErrorCode.UNKNOWN_MEMBER_ID
        assert broker.groups[name].committed() == {}
        await consumer.getone()
        await consumer.commit({(name, 0): 1})  # of what it was handed since
        assert broker.groups[name].committed() == {(name, 0): 1}
