# SPDX-License-Identifier: Apache-2.0
"""Log directories, by brokers of all ages."""

import asyncio

from tests.client.scripted import CLOSE, ScriptedCluster, asynchronous

from kohort import ErrorCode, LogDirDescription, LogDirReplica
from kohort.wire.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)


def directory(path, *sizes, **fields):
    partitions = [
        DescribeLogDirsPartition(
            partition_index=index, partition_size=size, offset_lag=0, is_future_key=index == 1
        )
        for index, size in reversed(list(enumerate(sizes)))
    ]
    topics = [DescribeLogDirsTopic(name="t", partitions=partitions)]
    return DescribeLogDirsResult(log_dir=path, topics=topics, **fields)


@asynchronous
async def test_every_broker_tells_its_own_and_who_does_not_is_named():
    def answer(asked):
        if asked.node == 2:
            return CLOSE
        offline = DescribeLogDirsResult(log_dir="/b", error_code=ErrorCode.KAFKA_STORAGE_ERROR)
        first = directory("/a", 5, 6, total_bytes=100, usable_bytes=0, is_cordoned=True)
        return DescribeLogDirsResponse(results=[first] if asked.node else [first, offline])

    answers = {DescribeLogDirsRequest: answer}
    async with ScriptedCluster(3, answers) as scripted, scripted.admin() as admin:
        described = await admin.describe_log_dirs()
        assert list(described) == [0, 1, 2]
        replicas = {("t", 0): LogDirReplica(5, 0), ("t", 1): LogDirReplica(6, 0, is_future=True)}
        assert described[1] == {"/a": LogDirDescription("/a", replicas, 100, 0, is_cordoned=True)}
        assert list(described[1]["/a"].replicas) == [("t", 0), ("t", 1)]
        offline = described[0]["/b"]
        assert offline.error.code is ErrorCode.KAFKA_STORAGE_ERROR
        assert (offline.replicas, offline.total_bytes) == ({}, None)
        assert described.failed[2].code is ErrorCode.NETWORK_EXCEPTION
        await admin.describe_log_dirs(1, partitions=[("t", 1), ("u", 0), ("t", 0)])
    last = scripted.sent("DescribeLogDirs")[-1]
    assert last.node == 1
    assert [(each.topic, each.partitions) for each in last.request.topics] == [
        ("t", [1, 0]),
        ("u", [0]),
    ]
    assert scripted.sent("DescribeLogDirs")[0].request.topics is None


@asynchronous
async def test_an_old_broker_without_an_answer_means_that_the_right_lacks():
    full = DescribeLogDirsResponse(results=[directory("/a", 5)])
    denied = DescribeLogDirsResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    for versions, answer, outcome in (
        ("1-2", DescribeLogDirsResponse(), None),
        ("1-5", denied, None),
        ("1-4", full, (None, None)),
    ):
        answers = {DescribeLogDirsRequest: lambda _, answer=answer: answer}
        async with ScriptedCluster(1, answers) as scripted, scripted.admin() as admin:
            scripted.offer("DescribeLogDirs", versions)
            described = await admin.describe_log_dirs([0])
        if outcome is None:
            assert "not authorized for Describe on the cluster" in described.failed[0].message
        else:
            found = described[0]["/a"]
            assert (found.total_bytes, found.is_cordoned) == outcome


@asynchronous
async def test_a_broker_that_is_slow_holds_up_only_itself():
    slow = asyncio.Event()

    async def answer(asked):
        if asked.node == 0:
            await slow.wait()
        return DescribeLogDirsResponse(results=[directory(f"/{asked.node}", 1)])

    answers = {DescribeLogDirsRequest: answer}
    order = []
    async with ScriptedCluster(3, answers) as scripted, scripted.admin() as admin:
        async for broker_id, directories in admin.describe_log_dirs(timeout=60):
            order.append(broker_id)
            assert list(directories) == [f"/{broker_id}"]
            if len(order) == 2:
                slow.set()
    assert sorted(order[:2]) == [1, 2]
    assert order[2:] == [0]
