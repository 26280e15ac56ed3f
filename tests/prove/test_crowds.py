# SPDX-License-Identifier: Apache-2.0
"""Thousands of clients that say nothing, little by little, or never listen: others are served on.

What it costs is printed: bytes of the broker, and how long a client at work has to wait.
"""

import os
import resource
import statistics
import struct
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
from tests.serve.talk import ServeProcess, frame, serving
from tests.waiting import eventually

from kohort.wire.messages.api_versions import ApiVersionsRequest
from kohort.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

IDLE = int(os.environ.get("KOHORT_IDLE_CONNECTIONS", "10000"))
ASK = ApiVersionsRequest(client_software_name="talk", client_software_version="1")
SPARE_FILES = 300
DEAF_MIB = 64 + 50
"""What clients that do not read may cost together (queued.max.response.bytes), and some room ..."""
DEAF_MIB_EACH = 2
"""... and each of them: an answer of a batch at least, as bytes and on its way to the socket."""


@contextmanager
def open_files(count: int) -> Iterator[None]:
    """Room for so many connections, here and in the processes that are started meanwhile."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = count + SPARE_FILES
    if hard != resource.RLIM_INFINITY and hard < needed:
        pytest.skip(f"only {hard} files may be open here, {needed} are needed")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, needed), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


class AtWork:
    """An honest client: a member that heartbeats, commits and produces; how long it waited."""

    def __init__(self, broker: ServeProcess) -> None:
        self._client = broker.talk()
        self._client.create_topic("work")
        self._epoch = 0
        self._number = 0
        self.waits: list[float] = []
        self.work()

    def work(self, times: int = 1) -> None:
        for _ in range(times):
            begin = time.monotonic()
            self._once()
            self.waits.append(time.monotonic() - begin)

    def _once(self) -> None:
        join = self._epoch == 0
        beat = ConsumerGroupHeartbeatRequest(
            group_id="at work",
            member_id="m",
            member_epoch=self._epoch,
            rebalance_timeout_ms=60_000 if join else -1,
            subscribed_topic_names=["work"] if join else None,
            topic_partitions=[] if join else None,
        )
        answer = self._client.ask(beat)
        assert answer.error_code == 0, answer
        self._epoch = answer.member_epoch
        self._number += 1
        assert self._client.commit("committed", "work", self._number) == 0
        assert self._client.produce("work", b"%d" % self._number).error_code == 0
        assert self._client.committed("committed") == {("work", 0): self._number}

    def told(self) -> str:
        """A heartbeat, a commit, a batch and a fetch of offsets, one after the other."""
        ms = sorted(1000 * wait for wait in self.waits)
        return f"four requests take {statistics.median(ms):.1f} ms, at most {ms[-1]:.1f} ms"


def idle_connections(count: int) -> None:
    with open_files(count), serving("--in-memory") as broker, ExitStack() as stack:
        honest = AtWork(broker)
        before = broker.resident_mib()
        begin = time.monotonic()
        clients = []
        for number in range(count):
            client = stack.enter_context(broker.talk())
            client.send(ASK)
            clients.append(client)
            if number % 100 == 99:
                honest.work()
                for one in clients[-100:]:
                    assert one.answer()
        seconds = time.monotonic() - begin
        honest.work(50)
        needed = broker.resident_mib() - before
        for client in clients[:: max(1, count // 100)]:  # they were idle, not forgotten
            assert client.ask(ASK).error_code == 0
        print(
            f"{count} idle connections in {seconds:.1f} s, {needed:.1f} MiB, "
            f"{needed * 1024 / count:.1f} KiB each; {honest.told()}"
        )


def slow_senders(count: int, seconds: int) -> None:
    """Each sends a request a byte a second, and is answered like anybody else."""
    with open_files(count), serving("--in-memory") as broker, ExitStack() as stack:
        honest = AtWork(broker)
        clients = [stack.enter_context(broker.talk()) for _ in range(count)]
        request = frame(ASK, 3)
        assert len(request) > seconds
        for client in clients:
            client.socket.sendall(request[:-seconds])
        for left in range(seconds, 0, -1):
            end = time.monotonic() + 1
            for client in clients:
                client.socket.sendall(request[-left : len(request) - left + 1])
            while time.monotonic() < end:
                honest.work()
        for client in clients:
            assert client.answer()
        print(f"{count} clients that send a byte a second, for {seconds} s; {honest.told()}")


def deaf_readers(count: int, *, until_closed: bool = False) -> None:
    """Each asks for megabytes again and again, and reads nothing."""
    with open_files(count), serving("--in-memory") as broker, ExitStack() as stack:
        honest = AtWork(broker)
        with broker.talk() as client:
            client.create_topic("large")
            for _ in range(8):
                assert client.produce("large", bytes(900_000)).error_code == 0
            fetch = frame(client.fetch_request("large"), 12)
        before = broker.resident_mib()
        clients = [stack.enter_context(broker.talk()) for _ in range(count)]
        for client in clients:
            client.socket.sendall(fetch * 20)
            honest.work()
        honest.work(20)
        most = broker.resident_mib()
        for client in clients[:3]:  # whoever begins to listen gets what was asked for
            assert len(client.answer()) > 0
        if until_closed:
            eventually(lambda: "has read nothing" in broker.errors, "the first of them is closed")
            honest.work(20)
        assert most < before + DEAF_MIB + DEAF_MIB_EACH * count, most
        print(
            f"{count} clients that never read, 20 answers of 7 MiB each: "
            f"{before:.0f} MiB before, {most:.0f} MiB then; {honest.told()}"
        )


def endless_requests(count: int) -> None:
    """Each has announced a large request, sends a part of it, and then nothing. A large request
    that is sent at once is answered, if need be after the first of those were closed.
    """
    with open_files(count), serving("--in-memory") as broker, ExitStack() as stack:
        honest = AtWork(broker)
        before = broker.resident_mib()
        clients = [stack.enter_context(broker.talk()) for _ in range(count)]
        for client in clients:
            client.socket.sendall(struct.pack(">ihhi", 1_000_000, 0, 9, 1) + bytes(60_000))
            honest.work()
        honest.work(20)
        needed = broker.resident_mib() - before
        with broker.talk() as client:
            client.create_topic("large")
            assert client.produce("large", bytes(900_000)).error_code == 0
        print(f"{count} requests without an end: {needed:.0f} MiB; {honest.told()}")


def test_a_small_crowd():
    idle_connections(200)
    slow_senders(20, 2)
    deaf_readers(10)
    endless_requests(20)


@pytest.mark.prove
@pytest.mark.timeout(900)
def test_idle_connections():
    idle_connections(IDLE)


@pytest.mark.prove
@pytest.mark.timeout(300)
def test_slow_senders():
    slow_senders(500, 15)


@pytest.mark.prove
@pytest.mark.timeout(300)
def test_readers_that_never_read():
    deaf_readers(200, until_closed=True)


@pytest.mark.prove
@pytest.mark.timeout(300)
def test_requests_without_an_end():
    endless_requests(200)
