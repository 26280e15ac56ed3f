# SPDX-License-Identifier: Apache-2.0
"""`--nodes 3`: what clients see must be a cluster."""

from collections import Counter

import pytest
from tests.serve.talk import serving
from tests.waiting import SOON_S

from kohort.errors import ErrorCode
from kohort.wire.messages.find_coordinator import FindCoordinatorRequest
from kohort.wire.messages.list_groups import ListGroupsRequest


@pytest.fixture(scope="module")
def cluster():
    with serving("--in-memory", "--nodes", "3", "-X", "node.id=10") as running:
        yield running


def coordinators(client, groups):
    answer = client.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=groups), 4)
    assert all(one.error_code == 0 for one in answer.coordinators)
    return {one.key: one.node_id for one in answer.coordinators}


def test_every_node_tells_of_all_three(cluster):
    seen = []
    for node in range(3):
        with cluster.talk(node) as client:
            answer = client.metadata()
            seen.append([(one.node_id, f"{one.host}:{one.port}") for one in answer.brokers])
    assert seen[0] == list(zip([10, 11, 12], cluster.addresses, strict=True))
    assert seen[1] == seen[2] == seen[0]
    assert len(set(cluster.addresses)) == 3


def test_leaders_and_replicas_are_spread(cluster):
    with cluster.talk(1) as client:
        client.create_topic("spread", 9, replication_factor=3)
        partitions = client.metadata("spread").topics[0].partitions
    assert Counter(one.leader_id for one in partitions) == {10: 3, 11: 3, 12: 3}
    for one in partitions:
        assert sorted(one.replica_nodes) == [10, 11, 12]
        assert sorted(one.isr_nodes) == [10, 11, 12]


def test_more_copies_than_nodes_are_refused(cluster):
    from kohort.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest

    wanted = CreatableTopic(name="four", num_partitions=1, replication_factor=4)
    with cluster.talk() as client:
        answer = client.ask(CreateTopicsRequest(topics=[wanted], timeout_ms=1000)).topics[0]
    assert answer.error_code == ErrorCode.INVALID_REPLICATION_FACTOR


def test_groups_are_spread_and_each_is_served_by_its_own_node(cluster):
    """K40-03."""
    groups = [f"group-{number}" for number in range(60)]
    with cluster.talk() as client:
        client.create_topic("t", 3)
        homes = coordinators(client, groups)
    with cluster.talk(2) as client:
        assert coordinators(client, groups) == homes
    assert set(homes.values()) == {10, 11, 12}
    for node in range(3):
        with cluster.talk(node) as client:
            for group, home in homes.items():
                expected = 0 if home == 10 + node else ErrorCode.NOT_COORDINATOR
                assert client.commit(group, "t", 1) == expected
            listed = {one.group_id for one in client.ask(ListGroupsRequest()).groups}
            assert listed == {group for group, home in homes.items() if home == 10 + node}


def test_a_record_goes_to_the_leader_only(cluster):
    with cluster.talk() as client:
        client.create_topic("led", 3)
        leaders = {
            one.partition_index: one.leader_id
            for one in client.metadata("led").topics[0].partitions
        }
    for node in range(3):
        with cluster.talk(node) as client:
            for index, leader in leaders.items():
                code = client.produce("led", b"x", index=index).error_code
                assert code == (0 if leader == 10 + node else ErrorCode.NOT_LEADER_OR_FOLLOWER)


def test_advertised_ports_follow_the_first():
    setting = "advertised.listeners=PLAINTEXT://outside:7000"
    with serving("--in-memory", "--nodes", "3", "-X", setting) as broker, broker.talk(2) as client:
        told = [(one.host, one.port) for one in client.metadata().brokers]
        assert told == [("outside", 7000), ("outside", 7001), ("outside", 7002)]


def test_what_is_kept_survives_with_all_nodes(tmp_path):
    for start in range(2):
        with serving("--data-dir", str(tmp_path), "--nodes", "3") as broker:
            with broker.talk() as client:
                client.create_topic("t", 3)
                homes = coordinators(client, ["a", "b", "c", "d"])
            for group, home in homes.items():
                with broker.talk(home) as client:
                    if start:
                        assert client.committed(group) == {("t", 0): 5}
                    else:
                        assert client.commit(group, "t", 5) == 0
            broker.process.kill()
            broker.process.wait(SOON_S)
