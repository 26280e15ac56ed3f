# SPDX-License-Identifier: Apache-2.0
"""Every code that a heartbeat may be answered with."""

import pytest
from tests.coordinator.assigning import offer
from tests.coordinator.consumers import beat, request, settled
from tests.coordinator.desk import Desk
from tests.server.desk import Desk as Brokers

from kohort.assignors import AssignorError
from kohort.errors import ErrorCode
from kohort.security.acls import ResourceType


def failing(desk):
    def fails(_members, _partitions):
        raise AssignorError("no")

    desk.shard.assignors["uniform"] = fails
    return beat(desk, "z", 0)


def unreleased(desk):
    beat(desk, "s", 0, instance_id="i")
    return beat(desk, "t", 0, instance_id="i")


def fenced_instance(desk):
    beat(desk, "s", 0, instance_id="i")
    return beat(desk, "t", 1, instance_id="i")


def unreadable(desk):
    beat(desk, "x", 0, group_id="h", client_assignors=[offer("x", 1, 1)])
    return beat(desk, "y", 0, group_id="h", client_assignors=[offer("x", 2, 3)])


def many(desk):
    return beat(desk, "b", 0, names=[f"{'t' * 200}{number}" for number in range(6000)])


CODES = {
    ErrorCode.NONE: lambda desk: beat(desk, "a", 2),
    ErrorCode.INVALID_REQUEST: lambda desk: beat(desk, "a", -3),
    ErrorCode.UNKNOWN_MEMBER_ID: lambda desk: beat(desk, "nobody", 1),
    ErrorCode.GROUP_ID_NOT_FOUND: lambda desk: beat(desk, "a", 1, group_id="none"),
    ErrorCode.FENCED_MEMBER_EPOCH: lambda desk: beat(desk, "a", 9),
    ErrorCode.UNRELEASED_INSTANCE_ID: unreleased,
    ErrorCode.FENCED_INSTANCE_ID: fenced_instance,
    ErrorCode.UNSUPPORTED_ASSIGNOR: unreadable,
    ErrorCode.GROUP_MAX_SIZE_REACHED: lambda desk: [beat(desk, one, 0) for one in "bcdefgh"][-1],
    ErrorCode.INVALID_REGULAR_EXPRESSION: lambda desk: beat(
        desk, "a", 2, subscribed_topic_regex="("
    ),
    ErrorCode.UNKNOWN_SERVER_ERROR: failing,
    ErrorCode.MESSAGE_TOO_LARGE: many,
    ErrorCode.COMPUTE_ASSIGNMENT: lambda desk: beat(
        desk, "a", 0, group_id="h", client_assignors=[offer()]
    ),
}


@pytest.mark.parametrize("code", CODES, ids=lambda one: one.name)
def test_each_code_of_the_coordinator(code):
    """K848-157."""
    desk = Desk(group_consumer_max_size=5)
    settled(desk, "a")
    assert ErrorCode(CODES[code](desk).error_code) is code


def told(desk, **fields):
    return ErrorCode(desk.ask(request("a", 0, **fields), 1).error_code)


def test_each_code_of_the_broker():
    """K848-157."""

    def no(kind):
        return lambda _client, _operation, asked, _name: asked is not kind

    assert told(Brokers(may=no(ResourceType.GROUP))) is ErrorCode.GROUP_AUTHORIZATION_FAILED
    assert told(Brokers(may=no(ResourceType.TOPIC))) is ErrorCode.TOPIC_AUTHORIZATION_FAILED
    off = Brokers(group_coordinator_rebalance_protocols="classic")
    assert told(off) is ErrorCode.UNSUPPORTED_VERSION
    desk = Brokers(nodes=2)
    answers = {desk.ask(request("a", 0), 1, node=node).error_code for node in (0, 1)}
    assert answers == {ErrorCode.NONE, ErrorCode.NOT_COORDINATOR}
