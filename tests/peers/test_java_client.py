# SPDX-License-Identifier: Apache-2.0
"""The Java member helper proven against the broker that it was made for, under both protocols."""

import pytest
from tests.peers.java_client import JavaConsumer, produce
from tests.peers.kafka import Kafka, unavailable

pytestmark = [pytest.mark.java, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def broker():
    if reason := unavailable():
        pytest.skip(reason)
    settings = {
        "num.partitions": 4,
        "group.consumer.min.heartbeat.interval.ms": 300,
        "group.consumer.heartbeat.interval.ms": 300,
    }
    with Kafka(settings, heap="512M") as running:
        yield running


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_two_members_share_a_topic_and_one_leaves(broker, protocol):
    topic, group = f"shared-{protocol}", f"group-{protocol}"
    produce(broker.address, topic, 40)
    everything = {(topic, partition) for partition in range(4)}
    with JavaConsumer(broker.address, group, topic, protocol=protocol) as first:
        first.until(lambda it: it.assigned == everything and len(it.records) == 40)
        assert sorted(map(int, first.values())) == list(range(40))
        first.until(lambda it: sum(it.committed.values()) == 40)
        with JavaConsumer(broker.address, group, topic, protocol=protocol) as second:
            second.until(lambda it: len(it.assigned) == 2)
            first.until(lambda it: it.assigned == everything - second.assigned)
            second.leave()
        first.until(lambda it: it.assigned == everything)
