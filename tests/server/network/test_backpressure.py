# SPDX-License-Identifier: Apache-2.0
"""Who reads on, and who gives way, when the room for requests is used up. Time is virtual."""

from random import Random

import pytest

from kohort.errors import WireError
from kohort.server.network.backpressure import (
    LOOK_SECONDS,
    READ_BYTES,
    SLOW_REQUEST_SECONDS,
    STALLED_SECONDS,
    TURN_SECONDS,
    Backpressure,
)
from kohort.server.network.request_buffer import RequestBuffer
from kohort.server.requests.memory_pool import RequestMemoryPool

KIB, MIB = 1 << 10, 1 << 20
LARGEST = 8 * MIB


class World:
    """A broker's connections."""

    def __init__(self, limit):
        self.memory = RequestMemoryPool(limit, LARGEST)
        self.now = 100.0
        self.connections = []
        self.pressure = Backpressure(self.memory, self.connections)
        self.looking = False
        self.most = 0

    def connect(self):
        self.connections.append(FakeConnection(self))
        return self.connections[-1]

    def step(self, seconds=0.02):
        """Whoever may read gets what its client has sent; then time passes."""
        while True:
            reads = [connection.receive() for connection in self.connections]
            if self.pressure.starved or self.looking:
                self.pressure.turn(self.now)
                self.looking = True
            self.most = max(self.most, self.memory.used)
            if not any(reads):
                break
        self.now += seconds
        if self.looking:
            self.looking = self.pressure.look(self.now)

    def pass_time(self, seconds):
        end = self.now + seconds
        while self.now < end:
            self.step()


class FakeConnection:
    """A connection whose client has sent `sent`; each read brings READ_BYTES of it at most."""

    def __init__(self, world):
        self.world = world
        self.request_buffer = RequestBuffer(LARGEST, world.memory)
        self.heard = world.now
        self.slow_since = None
        self.slow_at = 0
        self.paused = False
        self.parks = False
        self.sent = b""
        self.closed = None
        self.answers = 0

    @property
    def readable(self):
        return not self.request_buffer.crowded

    def send(self, data):
        self.sent += data

    def receive(self):
        """Whether something was read."""
        if self.closed is not None or self.paused or not self.sent:
            return False
        data, self.sent = self.sent[:READ_BYTES], self.sent[READ_BYTES:]
        self.heard = self.world.now
        try:
            self.request_buffer.feed(data)
        except WireError as error:
            self.give_way(str(error))
            return True
        while self.request_buffer.frames and not self.request_buffer.parked:
            self.request_buffer.pop(self.parks)
            self.answers += 1
        if self.request_buffer.crowded:
            self.paused = True
            if self.request_buffer.starved:
                self.world.pressure.starved[self] = None
        return True

    def read_on(self, now):
        self.heard = now
        self.request_buffer.read_on()
        self.paused = self.request_buffer.crowded

    def give_way(self, why):
        self.closed = why
        self.request_buffer.clear()


def begun(size, there):
    return size.to_bytes(4) + bytes(there - 4)


def whole(size):
    return begun(size, size + 4)


def test_who_only_announces_holds_nobody_up():
    world = World(MIB)
    announcers = [world.connect() for _ in range(100)]
    for connection in announcers:
        connection.send(begun(LARGEST, 12))
    other = world.connect()
    other.send(whole(MIB))
    world.step()
    while other.sent:
        world.step()
    assert other.answers == 1
    assert not any(connection.closed for connection in announcers)


def test_while_nobody_waits_who_stops_is_left_alone():
    world = World(MIB)
    connection = world.connect()
    connection.send(begun(LARGEST, 900 * KIB))
    world.pass_time(10 * SLOW_REQUEST_SECONDS)
    assert connection.closed is None


def test_who_waits_is_served_at_once_and_who_has_stopped_longest_gives_way_first():
    world = World(MIB)
    stopped = [world.connect() for _ in range(4)]
    for connection in stopped:
        connection.send(begun(LARGEST, READ_BYTES))
        world.pass_time(0.5)
    other = world.connect()
    closed = []
    for _ in range(100):
        other.send(whole(MIB))
        while other.sent:
            world.step()
        closed += [one for one in stopped if one.closed is not None and one not in closed]
    assert other.answers == 100
    assert closed
    assert closed == stopped[: len(closed)]
    assert "it has stopped in the middle of a request for " in closed[0].closed
    assert "others wait for its room (queued.max.request.bytes)" in closed[0].closed


def test_who_waits_longest_reads_on_first():
    world = World(MIB)
    holder = world.connect()
    holder.send(begun(LARGEST, MIB))
    world.pass_time(0.2)
    order = []
    waiting = [world.connect() for _ in range(5)]
    for connection in waiting:
        connection.send(whole(MIB))
    for _ in range(100):
        world.step()
        order += [one for one in waiting if one.answers and one not in order]
    assert order == waiting


@pytest.mark.parametrize("limit", [1, 100 * KIB, MIB, 4 * MIB])
def test_half_read_requests_that_hold_all_of_the_room_are_all_finished(limit):
    world = World(limit)
    clients = [world.connect() for _ in range(25)]
    for connection in clients:
        connection.send(whole(MIB))
    world.pass_time(SLOW_REQUEST_SECONDS / 2)
    assert [(connection.answers, connection.closed) for connection in clients] == [(1, None)] * 25
    assert world.memory.used == 0


def test_who_goes_on_slowly_is_closed_only_after_half_a_minute():
    world = World(MIB)
    begin = world.now
    slow = world.connect()
    slow.send(begun(LARGEST, 1_100_000))
    other = world.connect()
    world.pass_time(1)
    while slow.closed is None:
        slow.send(b"\0")
        other.send(whole(MIB))
        before = other.answers
        world.pass_time(0.4)
        assert other.answers > before
        assert world.now - begin < 2 * SLOW_REQUEST_SECONDS
    assert world.now - begin >= SLOW_REQUEST_SECONDS
    assert "a request is not finished after 30 s" in slow.closed


def test_who_sends_one_request_after_the_other_is_not_slow():
    world = World(MIB)
    holder = world.connect()
    holder.send(begun(LARGEST, 1_100_000))
    busy = [world.connect() for _ in range(4)]
    for _ in range(int(3 * SLOW_REQUEST_SECONDS)):
        holder.send(b"\0")
        for connection in busy:
            connection.send(whole(MIB))
        world.pass_time(1)
    assert [connection.closed for connection in busy] == [None] * 4
    assert holder.closed is not None


@pytest.mark.parametrize("there", [5000, 30 * KIB, 60 * KIB, 200 * KIB])
def test_parts_of_very_many_hold_no_more_than_the_limit_and_one_request(there):
    world = World(MIB)
    stopped = [world.connect() for _ in range(1000)]
    for connection in stopped:
        connection.send(begun(60 * KIB if there < 60 * KIB else LARGEST, there))
    other = world.connect()
    world.step()
    other.send(whole(MIB))
    for _ in range(int(2 * STALLED_SECONDS / TURN_SECONDS)):
        if other.answers:
            break
        world.step(1.1 * TURN_SECONDS)
    assert other.answers == 1
    assert world.most <= MIB + LARGEST + READ_BYTES


def test_requests_whose_answers_wait_for_others_give_way_after_half_a_minute():
    world = World(MIB)
    parked = [world.connect() for _ in range(20)]
    for connection in parked:
        connection.parks = True
        connection.send(whole(60 * KIB))
    other = world.connect()
    begin = world.now
    while not any(connection.closed for connection in parked):
        other.send(whole(MIB))
        world.pass_time(0.5)
        assert world.now - begin < 2 * SLOW_REQUEST_SECONDS
    assert world.now - begin >= SLOW_REQUEST_SECONDS
    assert other.answers > SLOW_REQUEST_SECONDS
    assert other.closed is None


def test_who_holds_little_is_left_alone_where_others_hold_much():
    """A JoinGroup with a small subscription waits for as long as its rebalance takes."""
    world = World(MIB)
    member = world.connect()
    member.parks = True
    member.send(whole(5 * KIB))
    hog = world.connect()
    hog.parks = True
    hog.send(whole(2 * MIB))
    other = world.connect()
    while hog.closed is None:
        other.send(whole(MIB))
        world.pass_time(1)
    assert member.closed is None


def test_once_nobody_has_waited_for_a_while_nothing_is_looked_at():
    world = World(MIB)
    connection, other = world.connect(), world.connect()
    for one in (connection, other):
        one.send(begun(2 * MIB, 600 * KIB))
    world.pass_time(0.1)
    assert world.looking
    connection.send(bytes(2 * MIB - 600 * KIB + 4))
    other.send(bytes(2 * MIB - 600 * KIB + 4))
    world.pass_time(3 * LOOK_SECONDS)
    assert (connection.answers, other.answers, world.looking) == (1, 1, False)


@pytest.mark.parametrize("seed", range(3))
def test_whatever_clients_do_who_sends_its_request_is_served_and_memory_is_bounded(seed):
    random = Random(seed)
    world = World(random.choice([1, 300 * KIB, 2 * MIB]))
    hostile = [world.connect() for _ in range(20)]
    honest = [world.connect() for _ in range(5)]
    for _ in range(25):
        for connection in hostile:
            chance = random.random()
            if connection.closed is not None:
                hostile.remove(connection)
                hostile.append(world.connect())
            elif chance < 0.1:
                connection.send(begun(random.randrange(5000, LARGEST), random.randrange(5, 5000)))
            elif chance < 0.3 and not connection.request_buffer.parked:
                connection.send(bytes(random.randrange(1, 2 * READ_BYTES)))
            elif chance < 0.32:
                connection.parks = True
        for connection in honest:
            if not connection.sent and not connection.request_buffer.unfinished:
                connection.send(whole(random.randrange(1, MIB)))
        world.pass_time(random.choice([0.02, 0.3, 1.1]))
        assert world.memory.used == sum(
            connection.request_buffer.counted_bytes for connection in world.connections
        )
    before = [connection.answers for connection in honest]
    for connection in honest:
        connection.send(whole(MIB))
    world.pass_time(10)
    assert [connection.closed for connection in honest] == [None] * 5
    assert all(connection.answers > n for connection, n in zip(honest, before, strict=True))
    assert world.most <= world.memory.ceiling + READ_BYTES
