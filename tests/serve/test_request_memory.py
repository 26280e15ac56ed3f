# SPDX-License-Identifier: Apache-2.0
"""Clients that hold the room of all requests and do not go on: the others are served."""

import struct
from contextlib import ExitStack

import pytest
from tests.serve.talk import serving
from tests.waiting import eventually

PRODUCE = 0
KIB, MIB = 1 << 10, 1 << 20


def begun(size: int, there: int) -> bytes:
    """The first bytes of a Produce, which has `size` bytes."""
    head = struct.pack(">ihhi", size, PRODUCE, 9, 1)
    return head + bytes(there - len(head))


def limit(size: int) -> list[str]:
    return ["-X", f"queued.max.request.bytes={size}"]


def test_who_only_announces_large_requests_takes_no_room():
    with serving("--in-memory") as broker, broker.talk() as other, ExitStack() as stack:
        other.create_topic("t")
        announcers = [stack.enter_context(broker.talk()) for _ in range(3)]
        for client in announcers:
            client.socket.sendall(begun(100 * MIB, 16))
        assert other.produce("t", bytes(MIB - 1000)).error_code == 0
        for client in announcers:
            assert not client.closed_by_peer(0.1)


@pytest.mark.parametrize(
    ("count", "size", "there"),
    [
        (3, 90 * MIB, 2 * MIB),
        (300, 60 * KIB, 30 * KIB),
        (100, 90 * MIB, 200 * KIB),
        (100, 150 * KIB, 149 * KIB),
    ],
    ids=["three large", "small ones of many", "large ones of many", "nearly whole"],
)
def test_who_has_stopped_in_the_middle_of_a_request_gives_way(count, size, there):
    """The first ones that stopped are closed, and nobody else is, once others wait."""
    with serving("--in-memory", *limit(4 * MIB)) as broker, ExitStack() as stack:
        other = stack.enter_context(broker.talk())
        other.create_topic("t")
        stopped = [stack.enter_context(broker.talk()) for _ in range(count)]
        for client in stopped:
            client.socket.settimeout(20)
            client.socket.sendall(begun(size, there))

        def gave_way() -> bool:
            assert other.produce("t", bytes(MIB - 1000)).error_code == 0
            return "others wait for its room" in broker.errors

        eventually(gave_way, "a connection that has stopped is closed")
        assert broker.end() == 0
        assert "not finished after" not in broker.errors


def test_half_read_requests_that_fill_the_room_are_all_answered_in_the_end():
    with serving("--in-memory", *limit(MIB)) as broker, ExitStack() as stack:
        clients = [stack.enter_context(broker.talk()) for _ in range(24)]
        clients[0].create_topic("t")
        frames = [produce_frame(700 * KIB) for _ in clients]
        for cut in (slice(0, 300 * KIB), slice(300 * KIB, None)):
            for client, frame in zip(clients, frames, strict=True):
                client.socket.settimeout(60)
                client.socket.sendall(frame[cut])
        for client in clients:
            assert client.answer()


def produce_frame(size: int) -> bytes:
    from tests.serve.talk import frame

    from kohort.wire.batch import build
    from kohort.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

    data = [PartitionProduceData(index=0, records=build([(None, bytes(size))], 1))]
    topic = TopicProduceData(name="t", partition_data=data)
    return frame(ProduceRequest(acks=-1, timeout_ms=5000, topic_data=[topic]), 9)
