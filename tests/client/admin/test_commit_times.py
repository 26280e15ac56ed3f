# SPDX-License-Identifier: Apache-2.0
"""When groups have committed last, from the records of their partition."""

import subprocess
import sys
import time

import pytest
from tests.client.scripted import asynchronous

from kohort.client.admin import AdminClient
from kohort.client.producer import Producer
from kohort.client.topic_reader import TopicReader
from kohort.errors import ApiError, ErrorCode
from kohort.testing.broker import Broker

DAY_MS = 86_400_000


@pytest.fixture
def broker():
    with Broker(in_memory=True) as broker:
        broker.create_topic("orders", partitions=2)
        yield broker


async def commit(admin, group, offset=1):
    (await admin.alter_group_offsets(group, {("orders", 0): offset, ("orders", 1): offset})).all()


@asynchronous
async def test_is_the_time_of_the_last_commit(broker):
    async with AdminClient(broker.bootstrap) as admin:
        before = broker.clock.now_ms
        await commit(admin, "billing")
        broker.clock.advance(3600)
        await commit(admin, "billing", 2)
        await commit(admin, "audit")
        found = (await admin.commit_times(["billing", "audit", "nobody"])).all()
    after = broker.clock.now_ms
    assert found["nobody"] is None
    assert before + 3_600_000 <= found["billing"] <= found["audit"] <= after


@asynchronous
async def test_counts_from_a_moment_on_alone(broker):
    async with AdminClient(broker.bootstrap) as admin:
        await commit(admin, "idle")
        broker.clock.advance(7200)
        await commit(admin, "busy")
        since = broker.clock.now_ms - 3_600_000
        found = (await admin.commit_times(["idle", "busy"], since=since)).all()
        assert (found["idle"], found["busy"] is None) == (None, False)
        later = broker.clock.now_ms + DAY_MS
        assert (await admin.commit_times("busy", since=later)).all() == {"busy": None}


@asynchronous
async def test_offsets_that_were_deleted_are_no_commit(broker):
    async with AdminClient(broker.bootstrap) as admin:
        await commit(admin, "gone")
        (before,) = (await admin.commit_times("gone")).all().values()
        await admin.delete_groups("gone")
        (after,) = (await admin.commit_times("gone")).all().values()
    assert before == after  # the tombstones are no commit, and compaction has not come yet


@asynchronous
async def test_a_transaction_commits_only_where_it_is_not_aborted(broker):
    settings = {"bootstrap_servers": broker.bootstrap, "transactional_id": "t"}
    async with Producer(**settings) as producer, AdminClient(broker.bootstrap) as admin:
        for group, is_good in (("aborted", False), ("good", True)):
            await producer.begin_transaction()
            await producer.send("orders", b"x")
            await producer.send_offsets_to_transaction({("orders", 0): 1}, group)
            await (producer.commit_transaction() if is_good else producer.abort_transaction())
        found = (await admin.commit_times(["aborted", "good"])).all()
    assert found["aborted"] is None
    assert found["good"] is not None


@asynchronous
async def test_what_was_not_read_in_time_is_an_error_and_no_answer(broker, monkeypatch):
    async def stuck(_self, **_options):
        time.sleep(0.05)  # noqa: ASYNC251  (the deadline is what this is about)
        return []

    async with AdminClient(broker.bootstrap) as admin:
        await commit(admin, "billing")
        monkeypatch.setattr(TopicReader, "read", stuck)
        found = await admin.commit_times("billing", timeout=0.5)
        assert found.failed["billing"].code is ErrorCode.REQUEST_TIMED_OUT

        async def denied(_self, **_options):
            raise ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "no")

        monkeypatch.setattr(TopicReader, "read", denied)
        found = await admin.commit_times("billing")
        assert found.failed["billing"].code is ErrorCode.TOPIC_AUTHORIZATION_FAILED


@pytest.mark.parametrize("first", ["kohort.client.topic_reader", "kohort.client.admin"])
def test_the_reader_and_the_client_can_be_imported_in_any_order(first):
    program = f"import {first}, kohort.client.topic_reader, kohort.client.admin"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
