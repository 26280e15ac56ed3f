# SPDX-License-Identifier: Apache-2.0
"""Leaders and replicas, in a cluster that keeps one copy."""

import pytest
from tests.server.desk import Desk

from kohort.errors import ErrorCode
from kohort.server.access import CLUSTER
from kohort.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kohort.wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from kohort.wire.messages.list_partition_reassignments import ListPartitionReassignmentsRequest


@pytest.fixture
def desk():
    desk = Desk(node_id="1", nodes=2)
    desk.create(partitions=2)
    return desk


def elected(desk, wanted, *, kind=0, version=2):
    topics = None
    if wanted is not None:
        topics = [
            TopicPartitions(topic=name, partitions=indexes) for name, indexes in wanted.items()
        ]
    request = ElectLeadersRequest(election_type=kind, topic_partitions=topics)
    answer = desk.ask(request, version)
    if answer.error_code:
        return answer.error_code
    return {
        (topic.topic, one.partition_id): one.error_code
        for topic in answer.replica_election_results
        for one in topic.partition_result
    }


@pytest.mark.parametrize("version", [0, 1, 2])
def test_no_election_is_needed(desk, version):
    assert elected(desk, {"orders": [0, 1, 2], "nothing": [0]}, version=version) == {
        ("orders", 0): ErrorCode.ELECTION_NOT_NEEDED,
        ("orders", 1): ErrorCode.ELECTION_NOT_NEEDED,
        ("orders", 2): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ("nothing", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert elected(desk, None, version=version) == {}


def test_elections_are_preferred_or_unclean(desk):
    assert elected(desk, {"orders": [0]}, kind=1) == {("orders", 0): ErrorCode.ELECTION_NOT_NEEDED}
    assert elected(desk, {"orders": [0]}, kind=2) == ErrorCode.INVALID_REQUEST


def reassigned(desk, name, index, replicas, version=1):
    partition = ReassignablePartition(partition_index=index, replicas=replicas)
    topic = ReassignableTopic(name=name, partitions=[partition])
    answer = desk.ask(AlterPartitionReassignmentsRequest(topics=[topic]), version)
    if answer.error_code:
        return answer.error_code
    return answer.responses[0].partitions[0].error_code


@pytest.mark.parametrize("version", [0, 1])
def test_a_partition_stays_where_it_is(desk, version):
    here = desk.cluster.placement.replicas(desk.cluster.catalog.by_name["orders"], 0)
    there = [3 - here[0]]
    for replicas, code in (
        (here, 0),
        (there, ErrorCode.POLICY_VIOLATION),
        (None, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS),
        ([], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([1, 1], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([9], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ):
        assert reassigned(desk, "orders", 0, replicas, version) == code
    assert reassigned(desk, "orders", 2, here) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert reassigned(desk, "nothing", 0, here) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_nothing_is_on_its_way(desk):
    answer = desk.ask(ListPartitionReassignmentsRequest(topics=None), 0)
    assert (answer.error_code, answer.topics) == (0, [])


def test_who_may_not_is_told():
    desk = Desk(node_id="1", may=lambda _client, _operation, kind, _name: kind != CLUSTER)
    refused = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert elected(desk, {"orders": [0]}) == refused
    assert reassigned(desk, "orders", 0, [1]) == refused
    assert desk.ask(ListPartitionReassignmentsRequest(topics=None), 0).error_code == refused
