# SPDX-License-Identifier: Apache-2.0
"""The metrics of a broker's process, with real groups, before and after a restart."""

import re
import urllib.request

import pytest
from tests.coordinator.classics import join_request, sync_request
from tests.coordinator.consumers import request as heartbeat
from tests.serve.talk import serving
from tests.waiting import SOON_S, eventually

pytest.importorskip("prometheus_client", reason="the extra `metrics` is not installed")

from prometheus_client.parser import text_string_to_metric_families

GROUPS = "kafka_server_group_coordinator_metrics_"


def address_in(ready):
    found = re.search(r"metrics on (http://127\.0\.0\.1:\d+/metrics)$", ready.strip())
    assert found, ready
    return found[1]


def scrape(url):
    with urllib.request.urlopen(url, timeout=SOON_S) as answer:
        text = answer.read().decode()
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_groups_are_scraped_and_come_back_after_a_restart(tmp_path):
    """K848-134 and K848-135, by the endpoint."""
    options = ("-X", "group.initial.rebalance.delay.ms=0", "--metrics", "0")
    with serving("--data-dir", str(tmp_path), *options) as broker, broker.talk() as talk:
        url = address_in(broker.ready_line)
        talk.create_topic("orders", partitions=2)
        joined = talk.ask(heartbeat("a", 0, group_id="new"), 1)
        assert joined.error_code == 0
        for _ in range(3):
            talk.ask(heartbeat("a", joined.member_epoch, group_id="new"), 1)
        member = talk.ask(join_request(group_id="old"), 3).member_id
        assert talk.ask(sync_request(member, 1, group_id="old"), 3).error_code == 0
        talk.commit("simple", "orders", 5)
        found = {}

        def fresh():
            found.update(scrape(url))
            return found[GROUPS + "offset_commit_count_total",] == 1

        eventually(fresh, "the commit is counted")
        assert found[GROUPS + "group_count", "classic"] == 2
        assert found[GROUPS + "group_count", "consumer"] == 1
        assert found[GROUPS + "group_completed_rebalance_count_total",] == 1
        assert found[GROUPS + "consumer_group_rebalance_count_total",] == 1
        assert found[GROUPS + "batch_flush_time_ms_max",] > 0
        assert found[GROUPS + "event_purgatory_time_ms_max",] > 0
        asked = "kafka_network_requestmetrics_requests_total"
        assert found[asked, "ConsumerGroupHeartbeat", "1"] == 4
        assert found["kafka_server_socket_server_metrics_connection_count",] >= 1
        assert found["kafka_server_socket_server_metrics_incoming_byte_total",] > 0
        with urllib.request.urlopen(url.replace("/metrics", "/healthz"), timeout=SOON_S) as health:
            assert health.status == 200
    with serving("--data-dir", str(tmp_path), *options) as broker:
        url = address_in(broker.ready_line)
        eventually(lambda: scrape(url)[GROUPS + "num_partitions", "active"] == 4, "all is loaded")
        found = scrape(url)
        assert found[GROUPS + "group_count", "classic"] == 2
        assert found[GROUPS + "consumer_group_count", "stable"] == 1
        assert found["kafka_coordinator_group_groupmetadatamanager_numoffsets",] == 1
        assert found[GROUPS + "offset_commit_count_total",] == 0
        assert found[GROUPS + "partition_load_time_max",] > 0
