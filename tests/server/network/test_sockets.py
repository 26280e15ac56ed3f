# SPDX-License-Identifier: Apache-2.0
"""Clients that hold what others need: room for requests, or room for answers."""

import asyncio
import struct
from collections import deque

import pytest
from tests.observer import RecordingObserver
from tests.world import World

from kohort.config import BrokerConfig
from kohort.config.listeners import client_listeners
from kohort.errors import WireError
from kohort.runtime.driver import INTERNAL
from kohort.server.descriptors import WAITING_MAX
from kohort.server.network.sockets import DEAF_SECONDS, HELD_BYTES, ClientProtocol, Sockets

KIB = 1024


class Pipe:
    """A transport of which a test decides how much the other end takes."""

    def __init__(self):
        self.unsent = 0
        self.aborted = False
        self.paused = False

    def get_extra_info(self, _name):
        return ("127.0.0.1", 1)

    def get_write_buffer_size(self):
        return self.unsent

    def write(self, data):
        self.unsent = 0

    def abort(self):
        self.aborted = True

    def is_closing(self):
        return self.aborted

    def pause_reading(self):
        self.paused = True

    def resume_reading(self):
        self.paused = False


class Host:
    """What sockets need of a broker."""

    def __init__(self, **settings):
        self.world = World()
        self.cluster = self.world.cluster
        config = BrokerConfig(**settings)
        self.sockets = Sockets(config, RecordingObserver(), client_listeners(config))
        self.ready = []

    def now(self):
        return self.world.now

    def dispatcher(self, node, _listener=0):
        return self.world.dispatchers[node]

    def authenticate(self, _listener):
        return None

    def schedule_turn(self):
        pass

    def connect(self, listener=0):
        protocol, pipe = ClientProtocol(self, 0, listener), Pipe()
        protocol.connection_made(pipe)
        return protocol, pipe


class Loop:
    """What sockets need of the loop, in a time that a test lets pass."""

    def __init__(self):
        self.now = 1000.0
        self.timers = []
        self.soon = deque()

    def time(self):
        return self.now

    def call_later(self, delay, action):
        timer = [self.now + delay, action]
        self.timers.append(timer)
        return self

    def call_soon(self, action):
        self.soon.append(action)

    def turn(self):
        """What was to be called soon."""
        while self.soon:
            self.soon.popleft()()

    def pass_time(self, seconds):
        end = self.now + seconds
        while self.timers and min(self.timers)[0] <= end:
            timer = min(self.timers)
            self.timers.remove(timer)
            self.now = timer[0]
            timer[1]()
        self.now = end


@pytest.fixture(autouse=True)
def loop(monkeypatch):
    """Protocols ask for the loop of their time."""
    loop = Loop()
    monkeypatch.setattr(asyncio, "get_running_loop", lambda: loop)
    return loop


def leave_unread(host, protocol, pipe, size):
    """An answer that its client does not take."""
    pipe.unsent = size
    protocol.pause_writing()
    protocol._count_unsent(size)
    assert host.sockets.memory.answers.used >= size


def test_who_has_stopped_is_closed_with_one_line_while_another_waits_for_its_room(loop):
    host = Host(queued_max_request_bytes=500 * KIB)
    (slow, slow_pipe), (other, other_pipe), (idle, idle_pipe) = (host.connect() for _ in range(3))
    begin = struct.pack(">ihhi", 900 * KIB, 0, 9, 1)
    slow.data_received(begin + bytes(490 * KIB))
    loop.pass_time(100)
    assert not slow_pipe.aborted  # nobody waits for its room

    for turn in range(30):
        waiter, pipe = [(other, other_pipe), (idle, idle_pipe)][turn % 2]
        waiter.data_received(bytes(KIB) if turn > 1 else begin + bytes(100 * KIB))
        assert (waiter in host.sockets.starved, pipe.paused) == (True, True)
        host.sockets.feed_starved()
        loop.pass_time(0.05)
        assert not pipe.paused  # one may pass the limit
        if slow_pipe.aborted:
            break
    assert (slow_pipe.aborted, other_pipe.aborted, idle_pipe.aborted) == (True, False, False)
    (line,) = host.sockets.observe.warnings
    assert "/127.0.0.1 closed: it has stopped in the middle of a request for 10" in line
    assert host.sockets.memory.requests.used < 500 * KIB
    slow.connection_lost(None)
    loop.pass_time(5)
    assert not host.sockets.starved
    assert not other_pipe.aborted


def test_who_reads_nothing_is_closed_while_others_get_less_because_of_it():
    host = Host(queued_max_response_bytes=100 * KIB)
    (deaf, deaf_pipe), (slow, slow_pipe), (_idle, idle_pipe) = (host.connect() for _ in range(3))
    leave_unread(host, deaf, deaf_pipe, 90 * KIB)
    for now in (0, DEAF_SECONDS + 1):
        host.sockets.close_slow(now)
    assert not deaf_pipe.aborted  # there is room for all

    leave_unread(host, slow, slow_pipe, 90 * KIB)
    host.sockets.close_slow(100)
    slow_pipe.unsent -= 1  # it reads
    host.sockets.close_slow(100 + DEAF_SECONDS)
    assert not deaf_pipe.aborted
    host.sockets.close_slow(101 + DEAF_SECONDS)
    assert (deaf_pipe.aborted, slow_pipe.aborted, idle_pipe.aborted) == (True, False, False)
    deaf.connection_lost(None)
    assert host.sockets.memory.answers.left > 0


def test_who_reads_everything_now_and_then_is_not_deaf():
    host = Host(queued_max_response_bytes=100 * KIB)
    reader, pipe = host.connect()
    for now in range(0, 10 * DEAF_SECONDS, DEAF_SECONDS // 2):
        leave_unread(host, reader, pipe, 200 * KIB)
        host.sockets.close_slow(now)
        pipe.unsent = 0
        reader.resume_writing()
    assert not pipe.aborted


@pytest.mark.parametrize("dropped", [False, True])
def test_what_had_arrived_counts_though_its_client_is_gone_before_its_slice(dropped):
    """A member whose connection breaks behind its heartbeat was not silent. Of a connection that
    the broker itself has dropped nothing counts.
    """
    host = Host()
    protocol, _ = host.connect()
    meter, scheduler = wait_for_a_slice(host, protocol)
    if dropped:
        protocol.drop()
    protocol.connection_lost(None)
    assert meter.count == 0

    scheduler.run_round()
    assert meter.count == (0 if dropped else 1)
    assert not scheduler.waiting


def test_a_request_that_fails_inside_ends_its_connection_and_no_other(monkeypatch):
    host = Host()
    (one, pipe), (other, _) = host.connect(), host.connect()
    pipe.close = pipe.abort
    meter, scheduler = wait_for_a_slice(host, one, other)
    take, fails = one._connection.node.take, iter([ZeroDivisionError("a bug")])

    def take_or_fail(connection, frame, now):
        for error in fails:
            raise error
        return take(connection, frame, now)

    monkeypatch.setattr(one._connection.node, "take", take_or_fail)
    scheduler.run_round()
    assert meter.count == 1
    assert (one._connection.closed, other._connection.closed) == (True, False)
    assert "a bug" in host.sockets.observe.errors[0]


def wait_for_a_slice(host, *protocols):
    """Each has sent a request, as where the share of arrivals is used up."""
    for protocol in protocols:
        host.cluster.scheduler.enter(protocol)
        protocol.data_received(frame())
    return host.cluster.meters.of(18, 0), host.cluster.scheduler


@pytest.mark.parametrize(
    ("error", "severe"),
    [(WireError("bytes that are no request"), False), (ZeroDivisionError("of a handler"), True)],
)
def test_what_ends_a_connection_is_an_error_only_where_it_is_ours(error, severe):
    host = Host()
    protocol, pipe = host.connect()
    pipe.close = pipe.abort
    protocol._connection.fail(error)
    protocol.end()

    told = host.sockets.observe
    assert pipe.aborted
    assert [line.startswith(INTERNAL) for line in told.errors] == [True] * severe
    assert severe == any("ZeroDivisionError: of a handler" in line for line in told.errors)


def test_an_answer_that_cannot_be_written_ends_its_connection_alone():
    """In a slice too: the turn is everybody's."""
    host = Host()
    protocol, pipe = host.connect()

    def write(_data):
        raise OSError("no way out")

    pipe.write = write
    request = bytes.fromhex("00120004000000010003746c730007676f6c64656e023100")
    protocol.data_received(struct.pack(">i", len(request)) + request)
    assert not protocol.run(lambda: False)
    assert pipe.aborted
    assert host.sockets.observe.lines == ["connection from /127.0.0.1 closed: no way out"]


def test_one_that_waits_is_read_so_that_its_end_is_seen(loop):
    host = Host(max_connections=1)
    served, _ = host.connect()
    gone = [host.connect() for _ in range(WAITING_MAX)]
    for protocol, pipe in gone:
        protocol.data_received(bytes(100))
        assert not pipe.paused
        protocol.connection_lost(None)
    alive, pipe = host.connect()
    alive.data_received(frame())
    served.connection_lost(None)
    loop.turn()
    assert not pipe.aborted
    assert is_served(alive)


def test_where_no_more_may_wait_the_oldest_gives_its_place_whose_end_would_not_be_seen():
    host = Host(max_connections=1)
    host.connect()
    waiting = [host.connect() for _ in range(WAITING_MAX)]
    for number in (7, 3):
        waiting[number][0].data_received(bytes(HELD_BYTES - 1))
        assert not waiting[number][1].paused
        waiting[number][0].data_received(b"x")
        assert waiting[number][1].paused
    new = [host.connect() for _ in range(3)]
    assert [number for number, (_, pipe) in enumerate(waiting) if pipe.aborted] == [3, 7]
    assert [pipe.aborted for _, pipe in new] == [False, False, True]
    told = host.sockets.observe.warnings
    assert f"closed: it has sent {HELD_BYTES} bytes while it waits to be served" in told[-5]
    assert told[-1].endswith(f"is refused: {WAITING_MAX} others wait to be served")
    assert host.sockets.traffic.refused == 3


TWO_LISTENERS = {
    "listeners": ("PLAINTEXT://127.0.0.1:0", "OUT://127.0.0.1:0"),
    "listener_security_protocol_map": ("PLAINTEXT:PLAINTEXT", "OUT:PLAINTEXT"),
}


def test_those_who_wait_on_one_listener_leave_the_places_of_another(loop):
    host = Host(max_connections=2, **TWO_LISTENERS)
    served = [host.connect(listener)[0] for listener in (0, 1)]
    crowd = [host.connect(0) for _ in range(WAITING_MAX + 1)]
    assert [pipe.aborted for _, pipe in crowd] == [False] * WAITING_MAX + [True]
    other, pipe = host.connect(1)
    assert not pipe.aborted
    for protocol in [*served, *(one for one, _ in crowd)]:
        protocol.connection_lost(None)
    loop.turn()
    assert is_served(other)


def test_who_waits_is_served_once_the_limit_is_higher(loop):
    """KIP-226."""
    host = Host(max_connections=1)
    served, pipe = host.connect()
    waiting = [host.connect()[0] for _ in range(2)]
    host.sockets.reconfigure(BrokerConfig(max_connections=2))
    loop.turn()
    assert [is_served(each) for each in waiting] == [True, False]
    host.sockets.reconfigure(BrokerConfig(max_connections=0))
    loop.turn()
    assert is_served(served)
    assert not pipe.aborted
    assert not is_served(waiting[1])


def test_a_new_connection_is_served_behind_those_that_wait(loop):
    host = Host(max_connections=1)
    first, _ = host.connect()
    second, _ = host.connect()
    first.connection_lost(None)  # the second has its place, and is served soon
    third, pipe = host.connect()
    assert not is_served(third)
    loop.turn()
    assert (is_served(second), is_served(third), pipe.aborted) == (True, False, False)
    second.connection_lost(None)
    loop.turn()
    assert is_served(third)


def is_served(protocol):
    return protocol._connection is not None


def frame():
    request = struct.pack(">hhih", 18, 0, 1, -1)  # ApiVersions
    return struct.pack(">i", len(request)) + request
