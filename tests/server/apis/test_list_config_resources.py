# SPDX-License-Identifier: Apache-2.0
"""ListConfigResources: what may have settings."""

import pytest
from tests.server.apis.test_group_configs import HEARTBEAT, alter, changed
from tests.server.desk import Desk

from kohort.errors import ErrorCode
from kohort.runtime.driver import Condition
from kohort.server.access import CLUSTER
from kohort.wire.messages.list_config_resources import ListConfigResourcesRequest

TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32


def listed(desk, *kinds, version=1, node=0):
    answer = desk.ask(ListConfigResourcesRequest(resource_types=list(kinds)), version, node=node)
    if answer.error_code:
        assert answer.config_resources == []
        return answer.error_code
    return {(one.resource_type, one.resource_name) for one in answer.config_resources}


@pytest.fixture
def desk():
    desk = Desk(node_id="1", nodes=2)
    desk.create()
    for name in ("g", "h", "i"):
        assert alter(desk, changed(name, (HEARTBEAT, "7000"))) == [0]
    return desk


def test_groups_with_settings_are_listed_by_any_node(desk):
    """K848-190."""
    assert alter(desk, changed("h", (HEARTBEAT, None))) == [0]
    for node in (0, 1):
        assert listed(desk, GROUP, node=node) == {(GROUP, "g"), (GROUP, "i")}


def test_each_type_is_listed_and_without_one_all_are(desk):
    brokers = {(BROKER, "1"), (BROKER, "2")}
    loggers = {(LOGGER, "1"), (LOGGER, "2")}
    topics = {(TOPIC, "orders"), (TOPIC, "__consumer_offsets")}
    groups = {(GROUP, "g"), (GROUP, "h"), (GROUP, "i")}
    assert listed(desk, TOPIC) == topics
    assert listed(desk, BROKER, LOGGER) == brokers | loggers
    assert listed(desk, METRICS) == set()
    assert listed(desk) == brokers | loggers | topics | groups


def test_the_first_version_lists_the_resources_of_client_metrics(desk):
    assert listed(desk, version=0) == set()


def test_an_unknown_type_is_refused(desk):
    assert listed(desk, TOPIC, 99) == ErrorCode.UNSUPPORTED_VERSION


def test_shards_that_cannot_answer(desk):
    first, *others = desk.cluster.drivers.values()
    first.condition = Condition.LOADING
    assert listed(desk, GROUP) == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    for driver in (first, *others):
        driver.condition = Condition.FAILED
    assert listed(desk, GROUP) == set()


def test_who_may_not_is_told():
    desk = Desk(node_id="1", may=lambda _client, _operation, kind, _name: kind != CLUSTER)
    assert listed(desk, TOPIC) == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
