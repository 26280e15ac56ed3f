# SPDX-License-Identifier: Apache-2.0
"""What had arrived of connections that are lost."""

from types import SimpleNamespace
from typing import Any

import pytest
from tests.server.desk import Desk
from tests.world import World

from kohort.server.network.lost_connections import LOST_MAX, LostConnections
from kohort.server.scheduler import never
from kohort.wire.messages.metadata import MetadataRequest


class Lost:
    """A connection that has so many requests left, and may have parked some."""

    def __init__(self, requests: int) -> None:
        self.requests = requests
        self.slots: list[Any] = []
        self.request_buffer = SimpleNamespace(frames=(), handled=0)
        self.closed = False

    def go_on(self, _now: int, over: Any) -> bool:
        while self.requests:
            self.requests -= 1
            if self.requests and over():
                return True
        return False

    def output(self) -> list[bytes]:
        return []

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def cluster():
    return World().cluster


def test_all_of_them_share_one_slice_and_each_is_closed_when_it_is_done(cluster):
    lost, connections = LostConnections(), [Lost(2), Lost(1), Lost(1)]
    for connection in connections:
        lost.add(connection, cluster)
    assert list(cluster.scheduler.waiting) == [lost]

    for left in ([1, 1, 1], [0, 1, 1], [0, 0, 1]):
        assert lost.run(lambda: True)
        assert [one.requests for one in connections] == left
        assert [one.closed for one in connections] == [number == 0 for number in left]
    assert not lost.run(lambda: True)
    assert all(one.closed for one in connections)


def test_there_is_a_bound_and_a_stop_ends_them_all(cluster):
    lost, connections = LostConnections(), [Lost(1) for _ in range(LOST_MAX + 1)]
    for connection in connections:
        lost.add(connection, cluster)
    assert [one.closed for one in connections] == [False] * LOST_MAX + [True]
    lost.clear()
    assert all(one.closed for one in connections)
    assert not lost.run(never)
    assert connections[0].requests == 1


def test_what_waits_for_an_answer_that_is_there_is_handled():
    """Records without acks around a Metadata, whose answer must leave before the next request."""
    desk = Desk()
    desk.create("orders")
    client = desk.clients[0]
    frames, put = [], client.put
    client.put = frames.append
    for count in (2, 3):
        for _ in range(count):
            desk.send_batch("orders", acks=0)
        desk.send(MetadataRequest(topics=[]), 9)
    client.put = put
    client.connection.receive(b"".join(frames))
    lost = LostConnections()
    lost.add(client.connection, desk.cluster)
    desk.settle()
    assert desk.cluster.partition("orders", 0).log.end == 5
    assert client.connection.closed
