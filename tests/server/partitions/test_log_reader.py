# SPDX-License-Identifier: Apache-2.0
"""What reads a log in slices sees each batch once, also those that are written meanwhile."""

from types import SimpleNamespace

import pytest

from kohort.errors import ApiError, ErrorCode
from kohort.server.partitions.log_reader import LogReader, PendingReadError
from kohort.server.partitions.log_reads import LogReadQueue
from kohort.server.scheduler import Scheduler
from kohort.storage.log import EVERY_BATCH
from kohort.storage.memory import MemoryLog
from kohort.wire import batch


class Offsets(LogReader):
    """Keeps where each batch begins."""

    def __init__(self, seen):
        super().__init__(seen)
        self.found = []

    def _take(self, header, log):
        del log
        self.found.append(header.base_offset)


def log_of(count):
    log = MemoryLog()
    write(log, count)
    return log


def write(log, count):
    for _ in range(count):
        log.append(batch.build([(b"k", b"v")] * 2, 1000), 2)


@pytest.mark.parametrize("most", [1, 2, 3, 7, EVERY_BATCH])
def test_each_batch_is_seen_once_however_it_is_read(most):
    log = log_of(7)
    reader = Offsets(log.start)
    slices = 1
    while reader.catch_up(log, most):
        slices += 1
    assert reader.found == [0, 2, 4, 6, 8, 10, 12]
    assert reader.seen == log.end
    assert slices == -(-7 // min(most, 7))


def test_it_goes_on_where_it_has_ended():
    log = log_of(2)
    reader = Offsets(log.start)
    assert reader.catch_up(log, 1)
    write(log, 1)
    while reader.catch_up(log, 1):
        pass
    write(log, 1)
    assert not reader.catch_up(log)
    assert not reader.catch_up(log)
    assert reader.found == [0, 2, 4, 6]


def test_a_reader_that_keeps_nothing_is_a_mistake():
    log = log_of(1)
    with pytest.raises(NotImplementedError):
        LogReader(log.start).catch_up(log)


class Part:
    """A part of a log, of which so many slices are left."""

    def __init__(self, partition, left, *, broken=False):
        self.partition = partition
        self.left = left
        self.broken = broken

    def read_on(self, _most):
        if self.broken:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, "it cannot be read")
        self.left -= 1
        return self.left > 0


class Partition:
    def __init__(self, name):
        self.name = name
        self.writers_wait = False


@pytest.fixture
def world():
    """The queue, what was done, and errors of tokens. `attempt` writes as a Partition does."""
    log_reads, done, errors = LogReadQueue(Scheduler()), [], []

    def attempt(name, *parts):
        partition = parts[0].partition

        def act():
            if partition.writers_wait:
                raise PendingReadError(partition)
            for part in parts:
                if part.broken:
                    part.read_on(1)
                if part.left > 0:
                    part.left -= 1  # what is read at once
                    if part.left > 0:
                        raise PendingReadError(partition, part)
            if name == "bad":
                raise ValueError("nobody has thought of it")
            done.append(name)

        token = SimpleNamespace(fail=lambda error: errors.append((name, str(error))))
        log_reads.attempt(act, token)

    return SimpleNamespace(log_reads=log_reads, done=done, errors=errors, attempt=attempt)


def run(world):
    while world.log_reads.step():
        pass
    assert not world.log_reads


def test_nobody_overtakes_those_who_wait_for_the_same_partition(world):
    """Not even who comes when so little is left that it would be read at once."""
    orders, others = Partition("orders"), Partition("others")
    log = Part(orders, 4)
    world.attempt("first", log)
    world.attempt("elsewhere", Part(others, 1))
    log.left = 1
    world.attempt("second", log)
    assert world.done == ["elsewhere"]
    log.left = 0  # somebody else has read it
    world.attempt("third", log)
    assert world.done == ["elsewhere"]
    run(world)
    assert world.done == ["elsewhere", "first", "second", "third"]
    world.attempt("fourth", log)
    assert world.done[-1] == "fourth"


def test_who_needs_something_else_then_stays_the_first(world):
    orders = Partition("orders")
    world.attempt("first", Part(orders, 3), Part(orders, 5))
    world.attempt("second", Part(orders, 0))
    run(world)
    assert world.done == ["first", "second"]
    assert not orders.writers_wait


def test_what_an_attempt_raises_is_its_tokens_alone(world):
    orders = Partition("orders")
    log = Part(orders, 3)
    for name in ("good", "bad", "better"):
        world.attempt(name, log)
    run(world)
    assert world.errors == [("bad", "nobody has thought of it")]
    assert world.done == ["good", "better"]


def test_what_cannot_be_read_is_told_to_each_who_waits(world):
    orders = Partition("orders")
    log = Part(orders, 3)
    world.attempt("first", log)
    world.attempt("second", log)
    log.broken = True
    run(world)
    assert [name for name, _ in world.errors] == ["first", "second"]
    assert world.done == []


def test_those_who_wait_for_a_partition_that_goes_try_once_more(world):
    orders = Partition("orders")
    log = Part(orders, 9)
    world.attempt("first", log)
    world.attempt("second", log)
    log.left = 0
    world.log_reads.forget(orders)
    assert not world.log_reads
    assert world.done == ["first", "second"]
