# SPDX-License-Identifier: Apache-2.0
"""What a broker's metrics say, under upstream's names."""

import pytest
from tests.coordinator.classics import join_request, sync_request
from tests.coordinator.consumers import request as heartbeat
from tests.server.desk import Desk
from tests.server.transactional import Producing

from kohort.runtime.driver import Condition
from kohort.server.catalog import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from kohort.server.metrics.meters import Traffic
from kohort.server.metrics.metrics import METRICS, MetricsSnapshot, missing, served_name
from kohort.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)

GROUPS = "kafka_server_group_coordinator_metrics_"
OLD = "kafka_coordinator_group_groupmetadatamanager_"


def read(desk, traffic=None):
    """Every number by name, or by name and labels."""
    reading = MetricsSnapshot(desk.cluster, traffic or Traffic())
    found = {}
    for metric in METRICS:
        for labels, number in metric.read(reading):
            assert len(labels) == len(metric.labels)
            found[(metric.name, *labels) if labels else metric.name] = number
    return found


@pytest.fixture
def desk():
    """A consumer group, a classic one, one that only holds offsets, and three offsets."""
    desk = Desk(offsets_topic_num_partitions="4", group_initial_rebalance_delay_ms="0")
    desk.create("orders", partitions=3)
    for group in ("one", "two"):
        assert desk.ask(heartbeat("a", 0, group_id=group), 1).error_code == 0
    assert desk.ask(heartbeat("a", -1, group_id="two"), 1).error_code == 0
    joined = desk.ask(join_request(group_id="classic"), 3)
    assert desk.ask(sync_request(joined.member_id, 1, group_id="classic"), 3).error_code == 0
    partitions = [OffsetCommitRequestPartition(partition_index=i) for i in range(3)]
    topics = [OffsetCommitRequestTopic(name="orders", partitions=partitions)]
    desk.ask(OffsetCommitRequest(group_id="simple", member_id="", topics=topics), 8)
    return desk


def test_groups_and_what_happens_to_them(desk):
    """K848-133 and K848-134."""
    found = read(desk)
    assert found[GROUPS + "group_count", "classic"] == 2
    assert found[GROUPS + "group_count", "consumer"] == 2
    assert found[GROUPS + "consumer_group_count", "stable"] == 1
    assert found[GROUPS + "consumer_group_count", "empty"] == 1
    assert found[GROUPS + "offset_commit_count"] == 3
    assert found[GROUPS + "offset_expiration_count"] == 0
    assert found[GROUPS + "offset_deletion_count"] == 0
    assert found[GROUPS + "group_completed_rebalance_count"] == 1
    assert found[GROUPS + "consumer_group_rebalance_count"] == 3
    assert found[OLD + "numgroups"] == 2
    assert found[OLD + "numgroupsstable"] == found[OLD + "numgroupsempty"] == 1
    assert found[OLD + "numoffsets"] == 3


def test_partitions_and_times(desk):
    """K848-135."""
    desk.step_ns = 100_000
    desk.ask(heartbeat("b", 1, group_id="one"), 1)
    found = read(desk)
    assert found[GROUPS + "num_partitions", "active"] == 4
    assert found[GROUPS + "num_partitions", "loading"] == 0
    assert found[GROUPS + "num_partitions", "failed"] == 0
    assert found[GROUPS + "event_queue_size"] == found["kohort_replies_parked"] == 0
    for name in ("event_queue_time_ms", "event_processing_time_ms"):
        times = [found[f"{GROUPS}{name}_{one}"] for one in ("p50", "p95", "p99", "p999", "max")]
        assert times == sorted(times)
        assert times[-1] > 0
    assert 0 <= found[GROUPS + "thread_idle_ratio_avg"] <= 1


def test_what_waits_is_seen(desk):
    asked = desk.send(heartbeat("b", 0, group_id="one"), 1)
    assert read(desk)[GROUPS + "event_queue_size"] == 1
    desk.settle(sync=False)
    assert asked.answer is None
    assert read(desk)[GROUPS + "event_queue_size"] == 0
    desk.settle()
    assert asked.answer.error_code == 0


def test_a_shard_that_is_unloaded_takes_its_groups_along_and_no_count_goes_back(desk):
    before = read(desk)
    for driver in desk.cluster.drivers.values():
        driver.start_loading()
    found = read(desk)
    assert found[GROUPS + "num_partitions", "loading"] == 4
    assert found[GROUPS + "group_count", "consumer"] == found[OLD + "numgroups"] == 0
    assert found[OLD + "numoffsets"] == 0
    assert found[GROUPS + "offset_commit_count"] == 3
    for driver in desk.cluster.drivers.values():
        driver.load_some(desk.now)
    after = read(desk)
    for name in ("group_count", "consumer_group_count", "num_partitions"):
        for key, number in before.items():
            if key[0] == GROUPS + name:
                assert after[key] == number, key
    assert after[GROUPS + "consumer_group_rebalance_count"] == 3


def test_requests_and_errors_by_name(desk):
    desk.ask(heartbeat("nobody", 4, group_id="one"), 1)
    found = read(desk)
    assert found["kafka_network_requestmetrics_requests", "ConsumerGroupHeartbeat", "1"] == 4
    errors = "kafka_network_requestmetrics_errors"
    assert found[errors, "ConsumerGroupHeartbeat", "UNKNOWN_MEMBER_ID"] == 1


def test_connections_and_bytes(desk):
    traffic = Traffic()
    traffic.opened, traffic.closed, traffic.refused = 5, 2, 1
    traffic.received_bytes, traffic.sent_bytes = 100, 50
    found = read(desk, traffic)
    sockets = "kafka_server_socket_server_metrics_"
    assert found[sockets + "connection_count"] == 3
    assert found[sockets + "connection_creation"] == 5
    assert found[sockets + "incoming_byte"] == 100
    assert found[sockets + "outgoing_byte"] == 50
    assert found["kohort_connections_refused"] == 1


def test_what_keeps_a_broker_from_being_ready(desk):
    assert missing(desk.cluster) == []
    desk.cluster.drivers[2].start_loading()
    desk.cluster.drivers[3].condition = Condition.FAILED
    del desk.cluster.drivers[0]
    assert missing(desk.cluster) == [
        f"{OFFSETS_TOPIC}-0 is not open",
        f"{OFFSETS_TOPIC}-2 is loading",
        f"{OFFSETS_TOPIC}-3 is failed",
    ]
    assert missing(None) == ["the broker is not started"]


def test_a_broker_is_not_ready_while_it_cannot_serve_transactions():
    """A broker whom nobody has asked for transactions has no topic of them, and is ready."""
    desk = Desk()
    assert missing(desk.cluster) == []
    Producing(desk)
    assert missing(desk.cluster) == []
    desk.cluster.transaction_coordinators[1].condition = Condition.FAILED
    del desk.cluster.transaction_coordinators[2]
    assert missing(desk.cluster) == [
        f"{TRANSACTIONS_TOPIC}-1 is failed",
        f"{TRANSACTIONS_TOPIC}-2 is not open",
    ]


def test_a_metric_is_listed_once_and_says_what_it_is():
    names = [served_name(metric) for metric in METRICS]
    assert len(names) == len(set(names))
    for metric in METRICS:
        assert metric.text
        assert metric.name.startswith("kafka_") == bool(metric.kafka)
