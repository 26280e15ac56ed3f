# SPDX-License-Identifier: Apache-2.0
"""A listing in which every shard has its part says when it is not whole."""

import pytest
from tests.server.desk import Desk
from tests.server.full_disk import commit, groups

from kohort.errors import ErrorCode
from kohort.runtime.driver import RETRY_MS
from kohort.server.apis.resources import Resource
from kohort.server.catalog import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from kohort.sim.disk import SimulatedFiles
from kohort.wire.batch import build
from kohort.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kohort.wire.messages.init_producer_id import InitProducerIdRequest
from kohort.wire.messages.list_config_resources import ListConfigResourcesRequest
from kohort.wire.messages.list_transactions import ListTransactionsRequest
from kohort.wire.messages.metadata import MetadataRequest, MetadataRequestTopic

NAMES = [f"name-{number}" for number in range(12)]


def begin(desk, name):
    request = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=1000)
    return desk.ask(request, 4).error_code


def configure(desk, name, node=0):
    config = AlterableConfig(name="consumer.session.timeout.ms", config_operation=0, value="50000")
    resource = AlterConfigsResource(
        resource_type=Resource.GROUP, resource_name=name, configs=[config]
    )
    request = IncrementalAlterConfigsRequest(resources=[resource])
    return desk.ask(request, 1, node=node).responses[0].error_code


def transactions(desk):
    answer = desk.ask(ListTransactionsRequest(), 1)
    return answer.error_code, {one.transactional_id for one in answer.transaction_states}


def configured(desk):
    answer = desk.ask(ListConfigResourcesRequest(resource_types=[Resource.GROUP]), 1)
    return answer.error_code, {one.resource_name for one in answer.config_resources}


LISTINGS = pytest.mark.parametrize(
    ("write", "listed"),
    [(commit, groups), (begin, transactions), (configure, configured)],
    ids=["ListGroups", "ListTransactions", "ListConfigResources"],
)


def four_shards(files, **more):
    return Desk(
        files=files,
        offsets_topic_num_partitions="4",
        transaction_state_log_num_partitions="4",
        **more,
    )


@pytest.fixture
def desk():
    return four_shards(SimulatedFiles())


def written(desk, write):
    """Something in each shard."""
    desk.create("t")
    write(desk, NAMES[0])  # the log of transactions is made when somebody asks for it
    desk.wait(1000)
    assert {write(desk, name) for name in NAMES} == {0}


@LISTINGS
def test_while_a_disk_refuses_writes_no_listing_leaves_anything_out(desk, write, listed):
    written(desk, write)
    assert listed(desk) == (0, {*NAMES})
    desk.files.room_bytes = 0
    for name in NAMES:
        for pause in (0, RETRY_MS // 3, RETRY_MS):
            assert write(desk, f"another-{name}") != 0
            assert listed(desk) == (0, {*NAMES})
            desk.wait(pause)
    desk.files.room_bytes = None
    desk.wait(2 * RETRY_MS)
    assert listed(desk) == (0, {*NAMES})


@LISTINGS
def test_while_a_log_is_read_no_listing_leaves_anything_out(desk, write, listed):
    written(desk, write)
    drivers = [*desk.cluster.drivers.values(), *desk.cluster.transaction_coordinators.values()]
    for driver in drivers:
        driver.start_loading()
    assert listed(desk) == (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, set())
    for driver in drivers:
        driver.load_some(desk.now)
    assert listed(desk) == (0, {*NAMES})


def with_unreadable(desk, topic, indexes):
    """The broker after a restart on logs with a record that nobody knows."""
    for index in indexes:
        kind = b"\x00\x02" if topic == OFFSETS_TOPIC else b"\x00\x00"
        record = (kind + b"\x00\x01x", b"\x00\x63")
        log = desk.cluster.partition(topic, index).log
        log.append(build([record], desk.now), 1)
        log.sync()
    return four_shards(desk.files.after_crash(), now=desk.now)


def offline(desk, topic):
    """The partitions whose leader is offline: nobody coordinates what is in them."""
    answer = desk.ask(MetadataRequest(topics=[MetadataRequestTopic(name=topic)]), 9)
    return {
        one.partition_index
        for one in answer.topics[0].partitions
        if one.leader_id in one.offline_replicas
    }


@LISTINGS
def test_a_coordinator_that_cannot_be_read_is_left_out_and_metadata_says_so(desk, write, listed):
    written(desk, write)
    topic = TRANSACTIONS_TOPIC if write is begin else OFFSETS_TOPIC
    assert offline(desk, topic) == set()
    some = with_unreadable(desk, topic, [1, 2])
    some.wait(0)
    code, found = listed(some)
    assert code == 0
    assert set() < found < {*NAMES}
    assert offline(some, topic) == {1, 2}
    none = with_unreadable(some, topic, range(4))
    none.wait(0)
    assert listed(none) == (0, set())
    assert offline(none, topic) == {0, 1, 2, 3}


@pytest.mark.parametrize(
    ("write", "listed"), [(commit, groups), (configure, configured)], ids=["groups", "settings"]
)
def test_what_nobody_leads_is_left_out(write, listed):
    desk = four_shards(SimulatedFiles(), nodes=2)
    desk.create("t")
    desk.wait(1000)
    for name in NAMES:
        assert 0 in [write(desk, name, node=node) for node in range(2)]
    leave = desk.config.node_id + 1
    desk.cluster.rearrange(lambda placement: placement.leave(leave, replaced=False))
    desk.wait(60_000)
    code, found = listed(desk)
    assert code == 0
    assert set() < found < {*NAMES}
