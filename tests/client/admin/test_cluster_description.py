# SPDX-License-Identifier: Apache-2.0
"""The cluster as a whole, by brokers of all ages."""

import pytest
from tests.client.scripted import ScriptedCluster, asynchronous

from kohort import AclOperation, ApiError, NodeDescription, UnsupportedVersionError
from kohort.errors import ErrorCode
from kohort.wire.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

BOTH = {"include_authorized_operations": True, "include_fenced_brokers": True}


@asynchronous
async def test_brokers_cost_one_look_at_the_metadata():
    async with ScriptedCluster(2) as scripted, scripted.admin() as admin:
        nodes = await admin.describe_cluster()
        assert [node.node_id for node in nodes] == [0, 1]
        assert (nodes.controller_id, nodes.cluster_id) == (0, None)
        assert nodes.authorized_operations is None
        scripted.offer("Metadata", "0")
        await scripted.stop_connections()
        assert (await admin.describe_cluster()).controller_id is None
    assert scripted.names() == []


@asynchronous
async def test_operations_and_fenced_brokers_are_there_where_they_are_asked_for():
    def answer(asked):
        request = asked.request
        brokers = [DescribeClusterBroker(broker_id=1, host="b", port=2, rack="r")]
        if request.include_fenced_brokers:
            brokers.insert(0, DescribeClusterBroker(broker_id=3, host="c", port=4, is_fenced=True))
        asked_for = request.include_cluster_authorized_operations
        return DescribeClusterResponse(
            cluster_id="c",
            controller_id=1,
            brokers=brokers,
            cluster_authorized_operations=(1 << 7 | 1 << 8) if asked_for else -(2**31),
        )

    answers = {DescribeClusterRequest: answer}
    async with ScriptedCluster(1, answers) as scripted, scripted.admin() as admin:
        nodes = await admin.describe_cluster(**BOTH)
        assert nodes == (
            NodeDescription(1, "b", 2, "r"),
            NodeDescription(3, "c", 4, None, is_fenced=True),
        )
        assert (nodes.cluster_id, nodes.controller_id) == ("c", 1)
        assert nodes.authorized_operations == {AclOperation.ALTER, AclOperation.DESCRIBE}
        fenced = await admin.describe_cluster(include_fenced_brokers=True)
        assert fenced.authorized_operations is None


@asynchronous
async def test_a_broker_that_is_too_old_or_refuses_is_no_cluster_without_rights():
    denied = DescribeClusterResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    answers = {DescribeClusterRequest: lambda _: denied}
    async with ScriptedCluster(1, answers) as scripted, scripted.admin() as admin:
        with pytest.raises(ApiError, match="not authorized for Describe on the cluster"):
            await admin.describe_cluster(include_authorized_operations=True)
        scripted.offer("DescribeCluster", "0-1")
        await scripted.stop_connections()
        with pytest.raises(UnsupportedVersionError, match=r"fenced brokers needs v2 \(KIP-1073"):
            await admin.describe_cluster(**BOTH)
    assert len(scripted.sent("DescribeCluster")) == 1
