# SPDX-License-Identifier: Apache-2.0
"""What goes wrong for one client stays with that client."""

import pytest
from msgspec.structs import replace
from tests.world import World

from kohort.wire import codec
from kohort.wire.frames import RequestHeader, encode_request
from kohort.wire.messages.api_versions import ApiVersionsRequest
from kohort.wire.messages.describe_groups import DescribeGroupsRequest
from kohort.wire.messages.list_groups import ListGroupsRequest


def framed(request, version, correlation=1):
    header = RequestHeader(
        request_api_key=request.api_key,
        request_api_version=version,
        correlation_id=correlation,
        client_id="c",
    )
    flexible = version in request.flexible
    return encode_request(header, codec.encode(request, version), flexible=flexible)


@pytest.fixture
def broken_handler(monkeypatch):
    """ApiVersions raises what no handler should raise."""
    world = World({})
    key, version = ApiVersionsRequest.api_key, 0
    dispatcher = world.dispatchers[0]
    client = world.connect()
    client.send(framed(ApiVersionsRequest(), version))

    def handle(*_):
        raise KeyError("a bug")

    entry = dispatcher._entries[key, version]
    dispatcher._entries[key, version] = replace(entry, route=replace(entry.route, handle=handle))
    return world


def test_a_handler_that_fails_ends_its_own_connection(broken_handler):
    world = broken_handler
    unlucky, other = world.connect(), world.connect()

    unlucky.send(framed(ApiVersionsRequest(), 0) * 3)
    other.send(framed(ListGroupsRequest(), 4))

    assert unlucky.closed
    assert unlucky.answers == []
    assert len(other.answers) == 1


DESCRIBE = DescribeGroupsRequest(groups=["g"])


def test_an_answer_that_cannot_be_encoded_ends_its_own_connection(monkeypatch):
    world = World({})
    unlucky, other = world.connect(), world.connect()
    other.send(framed(DESCRIBE, 3))
    dispatcher = world.dispatchers[0]
    entry = dispatcher._entries[DESCRIBE.api_key, 3]

    def encode(_):
        raise OverflowError("a bug")

    dispatcher._entries[DESCRIBE.api_key, 3] = replace(entry, encode=encode)
    unlucky.send(framed(DESCRIBE, 3) * 2)
    other.send(framed(DESCRIBE, 4))

    assert unlucky.closed
    assert len(other.answers) == 2
