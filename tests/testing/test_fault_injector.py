# SPDX-License-Identifier: Apache-2.0
"""Which requests a fault is about. What clients see of each fault is in test_faults.py."""

from functools import partial
from types import SimpleNamespace

import pytest
from tests.server.desk import Desk

from kohort.machines.effects import Call, Client
from kohort.server.network.connection import Connection
from kohort.server.network.routes import ROUTES
from kohort.testing.fault_injector import OWN_CLIENT_ID, Fault, FaultInjector
from kohort.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kohort.wire.messages.delete_groups import DeleteGroupsRequest
from kohort.wire.messages.delete_topics import DeleteTopicsRequest
from kohort.wire.messages.describe_groups import DescribeGroupsRequest
from kohort.wire.messages.fetch import FetchRequest, FetchTopic
from kohort.wire.messages.find_coordinator import FindCoordinatorRequest
from kohort.wire.messages.heartbeat import HeartbeatRequest
from kohort.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from kohort.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup


@pytest.fixture(scope="module")
def desk():
    desk = Desk()
    desk.topic_id = desk.create("orders")
    return desk


def matches(desk, request, client="c", **whose):
    fault = Fault("drop", request.api_key, None, **whose)
    return fault.matches(desk.dispatchers[0].node, Call(None, request, 0, Client(client, "/h")))


@pytest.mark.parametrize(
    "request_",
    [
        HeartbeatRequest(group_id="g", generation_id=1, member_id="m"),
        ConsumerGroupHeartbeatRequest(group_id="g", member_epoch=0),
        FindCoordinatorRequest(key="g"),
        FindCoordinatorRequest(coordinator_keys=["a", "g"]),
        DescribeGroupsRequest(groups=["a", "g"]),
        DeleteGroupsRequest(groups_names=["g"]),
        OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=None)]),
    ],
    ids=lambda one: type(one).__name__,
)
def test_a_group_is_found_wherever_it_is_named(desk, request_):
    assert matches(desk, request_)
    assert matches(desk, request_, group="g")
    assert not matches(desk, request_, group="h")
    assert not matches(desk, request_, topic="orders")


def test_a_topic_is_found_wherever_it_is_named(desk):
    for request in (
        MetadataRequest(topics=[MetadataRequestTopic(name="orders")]),
        MetadataRequest(topics=[MetadataRequestTopic(topic_id=desk.topic_id, name=None)]),
        FetchRequest(
            max_wait_ms=0, min_bytes=0, topics=[FetchTopic(topic="orders", partitions=[])]
        ),
        FetchRequest(
            max_wait_ms=0, min_bytes=0, topics=[FetchTopic(topic_id=desk.topic_id, partitions=[])]
        ),
        DeleteTopicsRequest(topic_names=["orders"], timeout_ms=1),
    ):
        assert matches(desk, request, topic="orders")
        assert not matches(desk, request, topic="other")
    assert not matches(desk, MetadataRequest(topics=None), topic="orders")


def test_the_tests_own_requests_always_pass(desk):
    request = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
    assert not matches(desk, request, client=OWN_CLIENT_ID)
    assert matches(desk, request, client_id="c", node=0)
    assert not matches(desk, request, client_id="d")
    assert not matches(desk, request, node=1)


@pytest.mark.parametrize(
    "request_",
    [
        MetadataRequest(topics=None),
        DescribeGroupsRequest(groups=["g"]),
        HeartbeatRequest(group_id="g"),
    ],
)
def test_an_answer_is_lost_however_its_request_is_answered(desk, request_):
    told = []
    token = SimpleNamespace(answer=told.append, fail=told.append)
    gate = FaultInjector(lambda: desk.now, lambda: None)
    gate.add(1, Fault("lose", request_.api_key, 1))
    node = desk.dispatchers[0].node
    call = Call(token, request_, 4, Client("c", "/h"))
    connection = Connection(desk.dispatchers[0], "h", 1000, lambda: None)
    gate.take(node, connection, call, partial(ROUTES[type(request_)].handle, node))
    desk.settle()
    (error,) = told
    assert str(error) == "a fault loses the answer"


def test_a_fault_has_its_times(desk):
    taken = []
    gate = FaultInjector(lambda: 7, lambda: None)
    request = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
    call = Call(None, request, 0, Client("c", "/h"))
    gate.add(1, Fault("drop", request.api_key, 2))
    for _ in range(3):
        connection = Connection(desk.dispatchers[0], "h", 1000, lambda: None)
        gate.take(desk.dispatchers[0].node, connection, call, lambda *given: taken.append(given))
    assert gate.hits == {1: 2}
    assert taken == [(call, 7)]
