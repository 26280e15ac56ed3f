# SPDX-License-Identifier: Apache-2.0
"""AlterReplicaLogDirs, where a node has one data directory."""

import pytest
from tests.server.desk import Desk

from kohort.errors import ErrorCode
from kohort.server.access import CLUSTER
from kohort.sim.disk import SimulatedFiles
from kohort.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)


def alter(desk, *wanted, version=2, node=0):
    """The codes of (path, topic, partitions), by topic and partition."""
    dirs = [
        AlterReplicaLogDir(
            path=path, topics=[AlterReplicaLogDirTopic(name=name, partitions=indexes)]
        )
        for path, name, indexes in wanted
    ]
    results = desk.ask(AlterReplicaLogDirsRequest(dirs=dirs), version, node=node).results
    codes = [
        ((topic.topic_name, one.partition_index), one.error_code)
        for topic in results
        for one in topic.partitions
    ]
    assert len(dict(codes)) == len(codes), "a partition is answered once"
    return dict(codes)


@pytest.mark.parametrize("version", [1, 2])
def test_partitions_are_where_they_are(version):
    desk = Desk(files=SimulatedFiles(), path="/here", node_id="1")
    desk.create(partitions=2)
    assert alter(
        desk,
        ("/here", "orders", [0, 2, -1]),
        ("/here", "nothing", [0]),
        ("/there", "orders", [1]),
        ("/there", "none", [0]),
        version=version,
    ) == {
        ("orders", 0): 0,
        ("orders", 1): ErrorCode.LOG_DIR_NOT_FOUND,
        ("orders", 2): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ("orders", -1): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ("nothing", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ("none", 0): ErrorCode.LOG_DIR_NOT_FOUND,
    }
    assert desk.produce().error_code == 0


def test_the_last_directory_of_a_partition_counts():
    desk = Desk(files=SimulatedFiles(), path="/here", node_id="1")
    desk.create()
    there, here = ("/there", "orders", [0]), ("/here", "orders", [0, 0])
    assert alter(desk, there, here) == {("orders", 0): 0}
    assert alter(desk, here, there) == {("orders", 0): ErrorCode.LOG_DIR_NOT_FOUND}


def test_a_node_has_its_own_partitions():
    desk = Desk(node_id="1", nodes=2)
    desk.create()
    replicas = desk.cluster.placement.replicas(desk.cluster.catalog.by_name["orders"], 0)
    for node, node_id in enumerate((1, 2)):
        expected = 0 if node_id in replicas else ErrorCode.REPLICA_NOT_AVAILABLE
        assert alter(desk, ("memory", "orders", [0]), node=node) == {("orders", 0): expected}


def test_a_partition_that_is_out_of_service_is_not_well():
    desk = Desk(node_id="1")
    desk.create(partitions=2)
    desk.cluster.partition("orders", 1).failed = True
    assert alter(desk, ("memory", "orders", [0, 1])) == {
        ("orders", 0): 0,
        ("orders", 1): ErrorCode.KAFKA_STORAGE_ERROR,
    }


def test_who_may_not_is_told():
    desk = Desk(node_id="1", may=lambda _client, _operation, kind, _name: kind != CLUSTER)
    refused = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert alter(desk, ("memory", "orders", [0, 1])) == {
        ("orders", 0): refused,
        ("orders", 1): refused,
    }
