# SPDX-License-Identifier: Apache-2.0
"""DescribeLogDirs: sizes of partitions."""

import pytest
from tests.server.desk import Desk

from kohort.errors import ErrorCode
from kohort.server.access import CLUSTER
from kohort.sim.disk import SimulatedFiles
from kohort.storage.files import DiskFiles
from kohort.wire.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest


def sizes(desk, wanted=None, *, version=5, node=0):
    topics = None
    if wanted is not None:
        topics = [
            DescribableLogDirTopic(topic=name, partitions=indexes)
            for name, indexes in wanted.items()
        ]
    answer = desk.ask(DescribeLogDirsRequest(topics=topics), version, node=node)
    if answer.error_code:
        return answer.error_code
    (result,) = answer.results
    assert (result.error_code, result.total_bytes, result.is_cordoned) == (0, -1, False)
    assert result.log_dir == desk.cluster.logs.place
    return {
        (topic.name, one.partition_index): one.partition_size
        for topic in result.topics
        for one in topic.partitions
    }


@pytest.mark.parametrize("version", range(1, 6))
def test_all_partitions_or_those_that_are_asked_for(version):
    desk = Desk(node_id="1", offsets_topic_num_partitions="2")
    desk.create(partitions=2)
    assert desk.produce(value=b"x" * 100).error_code == 0
    found = sizes(desk, version=version)
    assert set(found) == {
        ("orders", 0),
        ("orders", 1),
        ("__consumer_offsets", 0),
        ("__consumer_offsets", 1),
    }
    assert found["orders", 0] > 100
    assert found["orders", 1] == 0
    wanted = {"orders": [1, 1, 9, -1], "nothing": [0]}
    assert sizes(desk, wanted, version=version) == {("orders", 1): 0}


def test_the_directory_is_named():
    assert Desk(node_id="1").cluster.logs.place == "memory"
    desk = Desk(files=SimulatedFiles(), path="/here", node_id="1")
    assert desk.cluster.logs.place == "/here"
    assert sizes(desk)


def test_a_relative_directory_is_named_in_full(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    desk = Desk(files=DiskFiles(), path="here", node_id="1")
    assert desk.cluster.logs.place == f"{tmp_path}/here"
    assert sizes(desk)
    desk.cluster.close()


def test_a_node_tells_of_its_own_partitions():
    desk = Desk(node_id="1", nodes=2)
    desk.create(partitions=4)
    mine, other = (
        {place for place in sizes(desk, node=node) if place[0] == "orders"} for node in (0, 1)
    )
    assert mine
    assert other
    assert mine | other == {("orders", index) for index in range(4)}


def test_who_may_not_is_told():
    desk = Desk(node_id="1", may=lambda _client, _operation, kind, _name: kind != CLUSTER)
    assert sizes(desk) == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
