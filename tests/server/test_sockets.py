"""Clients that hold what others need: room for requests, or room for answers."""

import asyncio
import struct

import pytest
from tests.observer import Told
from tests.world import World

from kohort.config import BrokerConfig
from kohort.errors import WireError
from kohort.runtime.driver import INTERNAL
from kohort.server.sockets import DEAF_SECONDS, SLOW_FRAME_SECONDS, ClientProtocol, Sockets

KIB = 1024


class Pipe:
    """A transport of which a test decides how much the other end takes."""

    def __init__(self):
        self.unsent = 0
        self.aborted = False

    def get_extra_info(self, _name):
        return ("127.0.0.1", 1)

    def get_write_buffer_size(self):
        return self.unsent

    def abort(self):
        self.aborted = True

    def is_closing(self):
        return self.aborted

    def pause_reading(self):
        pass

    resume_reading = pause_reading


class Host:
    """What sockets need of a broker."""

    def __init__(self, **settings):
        self.world = World()
        self.cluster = self.world.cluster
        self.sockets = Sockets(BrokerConfig(**settings), Told())

    def now(self):
        return self.world.now

    def door(self, node):
        return self.world.doors[node]

    def ready(self, protocol):
        pass

    def schedule_turn(self):
        pass

    def connect(self):
        protocol, pipe = ClientProtocol(self, 0), Pipe()
        protocol.connection_made(pipe)
        return protocol, pipe


@pytest.fixture(autouse=True)
def loop(monkeypatch):
    """Protocols ask for the loop of their time."""
    loop = asyncio.new_event_loop()
    monkeypatch.setattr(asyncio, "get_running_loop", lambda: loop)
    yield
    loop.close()


def leave_unread(host, protocol, pipe, size):
    """An answer that its client does not take."""
    pipe.unsent = size
    protocol.pause_writing()
    protocol._count_unsent(size)
    assert host.sockets.memory.answers.used >= size


def test_a_large_request_without_an_end_is_closed_while_another_waits_for_its_room():
    host = Host(queued_max_request_bytes=500 * KIB)
    (slow, slow_pipe), (other, other_pipe), (_idle, idle_pipe) = (host.connect() for _ in range(3))
    begin = struct.pack(">ihhi", 600 * KIB, 0, 9, 1)
    slow.data_received(begin + bytes(100))
    for now in (0, SLOW_FRAME_SECONDS + 1):
        host.sockets.close_slow(now)
    assert not slow_pipe.aborted  # nobody waits for its room

    other.data_received(begin + bytes(100))
    assert other in host.sockets.starved
    for now in (100, 100 + SLOW_FRAME_SECONDS):
        host.sockets.close_slow(now)
    assert not slow_pipe.aborted
    host.sockets.close_slow(101 + SLOW_FRAME_SECONDS)
    assert (slow_pipe.aborted, other_pipe.aborted, idle_pipe.aborted) == (True, False, False)
    slow.connection_lost(None)
    host.sockets.feed_starved()
    assert not host.sockets.starved


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
