# SPDX-License-Identifier: Apache-2.0
"""Limits of connections and requests, and clients that are slow, silent, or do not read."""

import resource
import select
import socket
import struct
import time

import pytest
from tests.serve.talk import Talk, frame, serving
from tests.waiting import SOON_S

from kohort.server.descriptors import WAITING_MAX
from kohort.wire.messages.api_versions import ApiVersionsRequest
from kohort.wire.messages.metadata import MetadataRequest

ASK = ApiVersionsRequest(client_software_name="talk", client_software_version="1")


def settings(**given):
    texts = (f"{name.replace('_', '.')}={value}" for name, value in given.items())
    return [part for one in texts for part in ("-X", one)]


def test_a_silent_connection_is_closed_and_a_busy_one_is_not():
    with serving("--in-memory", *settings(connections_max_idle_ms=2500)) as broker:
        silent, half, busy = broker.talk(), broker.talk(), broker.talk()
        half.socket.sendall(b"\0\0")
        waiting = broker.talk()
        waiting.create_topic("t")
        waiting.send(waiting.fetch_request("t", max_wait_ms=6000), 12)
        while not silent.closed_by_peer(0.1):
            assert busy.ask(ASK).error_code == 0
        assert half.closed_by_peer()
        assert busy.ask(ASK).error_code == 0
        assert waiting.answer()  # a request under way is not silence


def test_too_many_connections_from_an_address():
    with serving("--in-memory", *settings(max_connections_per_ip=3)) as broker:
        first = [broker.talk() for _ in range(3)]
        assert [one.ask(ASK).error_code for one in first] == [0, 0, 0]
        with broker.talk() as fourth:
            assert fourth.closed_by_peer()
        first.pop().socket.close()
        deadline = time.monotonic() + SOON_S
        while True:
            with broker.talk() as again:
                try:
                    assert again.ask(ASK).error_code == 0
                    break
                except (EOFError, ConnectionError):
                    assert time.monotonic() < deadline
        assert broker.end() == 0
        assert "max.connections.per.ip=3" in broker.errors


def test_a_connection_beyond_the_limit_waits_for_the_end_of_another():
    """As measured on Apache Kafka 4.3.1. One that gives up meanwhile takes nobody's place."""
    with serving("--in-memory", *settings(max_connections=2)) as broker:
        served = [broker.talk() for _ in range(2)]
        assert [one.ask(ASK).error_code for one in served] == [0, 0]
        waiting = [broker.talk() for _ in range(4)]
        for one in waiting:
            one.send(ASK, 3)
        assert not select.select([one.socket for one in waiting], [], [], 0.3)[0]
        waiting[0].socket.close()
        served[0].socket.close()
        assert waiting[1].answer()
        assert not select.select([one.socket for one in waiting[2:]], [], [], 0.3)[0]
        served[1].socket.close()
        assert waiting[2].answer()
        assert waiting[1].ask(ASK).error_code == 0
        assert broker.end() == 0
        assert waiting[3].closed_by_peer()
        assert broker.errors.count("waits until another one ends: max.connections=2") == 4


def test_no_more_wait_than_the_system_would_keep():
    with serving("--in-memory", *settings(max_connections=1)) as broker, broker.talk() as served:
        assert served.ask(ASK).error_code == 0
        waiting = [broker.talk() for _ in range(WAITING_MAX)]
        with broker.talk() as refused:
            assert refused.closed_by_peer()
        served.socket.close()
        assert waiting[0].ask(ASK).error_code == 0
        assert broker.end() == 0
        assert f"is refused: {WAITING_MAX} others wait to be served" in broker.errors, broker.errors


def test_those_who_gave_up_while_they_waited_leave_their_places():
    with serving("--in-memory", *settings(max_connections=1)) as broker, broker.talk() as served:
        assert served.ask(ASK).error_code == 0
        for _ in range(WAITING_MAX):
            with broker.talk() as gone:
                gone.send(ASK, 3)
        deadline = time.monotonic() + SOON_S
        while True:  # until the broker has seen that the first of them are gone
            alive = broker.talk()
            alive.send(ASK, 3)
            if not select.select([alive.socket], [], [], 0.2)[0]:
                break
            alive.socket.close()
            assert time.monotonic() < deadline
        served.socket.close()
        assert alive.answer()
        assert broker.end() == 0
        alive.socket.close()


@pytest.mark.parametrize("size", [-1, -(2**31), 1001, 2**31 - 1])
def test_a_size_out_of_bounds_closes_only_that_connection(size):
    with (
        serving("--in-memory", *settings(socket_request_max_bytes=1000)) as broker,
        broker.talk() as other,
    ):
        with broker.talk() as client:
            client.socket.sendall(frame(ASK, 3) + struct.pack(">i", size))
            assert client.answer()  # what came before is answered
            assert client.closed_by_peer()
        with broker.talk() as client:
            client.socket.sendall(struct.pack(">i", size))
            assert client.closed_by_peer()
        assert other.ask(ASK).error_code == 0


def test_a_slow_sender_holds_nobody():
    with serving("--in-memory") as broker, broker.talk() as slow, broker.talk() as quick:
        for number, byte in enumerate(frame(ASK, 3)):
            slow.socket.sendall(bytes([byte]))
            if number % 4 == 0:
                assert quick.ask(ASK).error_code == 0
        assert slow.answer()


def test_a_long_request_in_small_pieces_costs_no_more_than_its_bytes():
    """Each piece used to be joined to all before it: megabytes moved for a byte that came."""
    with serving("--in-memory") as broker, broker.talk() as slow, broker.talk() as quick:
        before = broker.resident_mib()
        slow.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        slow.socket.sendall(struct.pack(">i", 90_000_000) + bytes(80_000_000))
        for _ in range(2000):
            slow.socket.sendall(b"\0")
        for _ in range(20):
            assert quick.ask(ASK).error_code == 0
        assert broker.resident_mib() - before < 200
        slow.socket.sendall(bytes(10_000_000 - 2000))
        assert slow.closed_by_peer()  # zeros are no request of today


@pytest.mark.parametrize("wait", ["fetch", "metadata"])
def test_a_client_that_does_not_read_gets_no_more(wait):
    """Answers that nobody reads must not fill the memory: requests behind them wait."""
    with serving("--in-memory") as broker, broker.talk() as client, broker.talk() as other:
        for number in range(20):
            client.create_topic(f"topic-{number}-{'x' * 200}", 50)
        for _ in range(20):
            assert client.produce(f"topic-0-{'x' * 200}", bytes(1_000_000)).error_code == 0
        before = broker.resident_mib()
        request, version = (
            (client.fetch_request(f"topic-0-{'x' * 200}"), 12)
            if wait == "fetch"
            else (MetadataRequest(topics=None), 12)
        )
        count = 25 if wait == "fetch" else 5000
        client.socket.setblocking(False)
        for _ in range(count):
            try:
                client.socket.sendall(frame(request, version))
            except BlockingIOError:
                break  # the broker has stopped reading: as it should
        for _ in range(20):
            assert other.ask(ASK).error_code == 0
            time.sleep(0.02)
        assert broker.resident_mib() - before < 150
        if wait == "fetch":
            client.socket.settimeout(SOON_S)
            for _ in range(count):
                assert len(client.answer()) > 20_000_000
        client.socket.close()
        assert other.ask(ASK).error_code == 0


def test_many_requests_at_once_are_all_answered_in_order():
    """More than a connection may have under way, each waiting for the disk."""
    with serving("--in-memory") as broker, broker.talk() as client:
        client.create_topic("t")
        data = b"".join(frame(ASK, 3, correlation_id=number) for number in range(3000))
        client.socket.sendall(data)
        for number in range(3000):
            assert struct.unpack_from(">i", client.answer())[0] == number


def test_many_commits_at_once_are_all_answered_in_order(tmp_path):
    from kohort.wire.messages.offset_commit import (
        OffsetCommitRequest,
        OffsetCommitRequestPartition,
        OffsetCommitRequestTopic,
    )

    with serving("--data-dir", str(tmp_path)) as broker, broker.talk() as client:
        client.create_topic("t")
        assert client.commit("g", "t", 0) == 0
        data = b""
        for number in range(2000):
            place = OffsetCommitRequestPartition(partition_index=0, committed_offset=number)
            topic = OffsetCommitRequestTopic(name="t", partitions=[place])
            data += frame(OffsetCommitRequest(group_id="g", topics=[topic]), 8, number)
        client.socket.sendall(data)
        for number in range(2000):
            assert struct.unpack_from(">i", client.answer())[0] == number
        assert client.committed("g") == {("t", 0): 1999}


def test_a_half_closed_socket_is_let_go():
    with serving("--in-memory") as broker:
        client = broker.talk()
        client.create_topic("t")
        client.send(client.fetch_request("t", max_wait_ms=60_000), 12)
        client.socket.shutdown(socket.SHUT_WR)
        assert client.closed_by_peer()
        with broker.talk() as other:
            assert other.ask(ASK).error_code == 0


def test_hundreds_of_connections_come_and_go():
    with serving("--in-memory") as broker:
        for _ in range(5):
            clients = [Talk(broker.address) for _ in range(100)]
            for client in clients:
                client.send(ASK)
            for client in clients:
                assert client.answer()
                client.socket.close()
        with broker.talk() as last:
            assert last.ask(ASK).error_code == 0


def test_no_more_files_may_be_open():
    """Those who are connected are served on, and others again once some have left."""

    def few_files():
        resource.setrlimit(resource.RLIMIT_NOFILE, (60, 60))

    with serving("--in-memory", prepare=few_files) as broker, broker.talk() as first:
        assert first.ask(ASK).error_code == 0
        clients = [broker.talk() for _ in range(80)]
        assert first.ask(ASK).error_code == 0
        for client in clients:
            client.socket.close()
        deadline = time.monotonic() + SOON_S
        while True:
            with broker.talk() as again:
                try:
                    assert again.ask(ASK).error_code == 0
                    break
                except (EOFError, ConnectionError):
                    assert time.monotonic() < deadline
        assert broker.end() == 0
