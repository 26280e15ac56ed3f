# SPDX-License-Identifier: Apache-2.0
"""Lag in seconds, last commits and idle groups of a real Apache Kafka."""

import asyncio
import time

import pytest
from tests.client.scripted import asynchronous
from tests.peers.kafka import Kafka, unavailable

from kohort.client.admin import AdminClient, NewTopic
from kohort.client.producer import Producer
from kohort.figures import Bound

pytestmark = [pytest.mark.java, pytest.mark.timeout(600)]
HOUR_MS = 3_600_000
PARTITIONS = 8


@pytest.fixture(scope="module")
def address():
    if reason := unavailable():
        pytest.skip(reason)
    with Kafka({"offsets.topic.num.partitions": 3}, heap="512M") as running:
        yield f"127.0.0.1:{running.port}"


@asynchronous
async def test_lag_in_seconds_of_long_batches_deleted_records_and_markers(address):
    now_ms = time.time_ns() // 1_000_000
    settings = {"bootstrap_servers": address, "transactional_id": "t", "batch_size": 1 << 18}
    async with (
        AdminClient(address, timeout=60) as admin,
        Producer(**settings) as producer,
    ):
        await admin.create_topics([NewTopic("times", PARTITIONS, 1)])
        await producer.begin_transaction()
        for index in range(PARTITIONS):
            for number in range(3):  # one batch, longer than what is asked for at first
                await producer.send(
                    "times",
                    bytes([number]) * 50_000,
                    partition=index,
                    timestamp_ms=now_ms - (3 - number) * HOUR_MS,
                )
        await producer.commit_transaction()
        found = (await admin.time_lags({("times", index): 1 for index in range(PARTITIONS)})).all()
        assert {(lag.seconds // 3600, lag.bound, lag.record_offset) for lag in found.values()} == {
            (2, Bound.EXACT, 1)
        }
        for _ in range(100):  # a commit is answered before its markers are written
            ends = (
                await admin.list_offsets(dict.fromkeys(found, "latest"), read_committed=True)
            ).all()
            if {end.offset for end in ends.values()} == {4}:
                break
            await asyncio.sleep(0.1)
        else:
            pytest.fail(f"no markers: {ends}")
        (await admin.delete_records({("times", 1): 2})).all()
        places = {("times", 0): 3, ("times", 1): 0, ("times", 2): 77}
        for committed in (False, True):
            found = (await admin.time_lags(places, read_committed=committed)).all()
            assert (found["times", 0].seconds, found["times", 0].bound) == (0, Bound.EXACT)
            deleted = found["times", 1]
            assert (deleted.seconds // 3600, deleted.bound) == (1, Bound.AT_LEAST)
            assert deleted.reason == "deleted"
            assert found["times", 2].seconds == 0


@asynchronous
async def test_last_commits_are_read_from_the_log_of_groups(address):
    async with AdminClient(address, timeout=60) as admin:
        await admin.create_topics([NewTopic("orders", 1, 1)])
        before = time.time_ns() // 1_000_000
        for group in ("billing", "audit", "reports"):
            (await admin.alter_group_offsets(group, {("orders", 0): 0})).all()
        after = time.time_ns() // 1_000_000
        found = (await admin.commit_times(["billing", "audit", "reports", "nobody"])).all()
        assert found.pop("nobody") is None
        assert all(before <= at_ms <= after for at_ms in found.values())
        later = (await admin.commit_times("billing", since=after + HOUR_MS)).all()
        assert later == {"billing": None}
        same = (await admin.commit_times("billing", since=before)).all()
        assert same == {"billing": found["billing"]}
