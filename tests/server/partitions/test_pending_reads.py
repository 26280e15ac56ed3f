"""Who must wait for a log to be read before it may write goes on in the order of arrival."""

from types import SimpleNamespace

import pytest

from kohort.errors import ApiError, ErrorCode
from kohort.server.partitions.log_reads import LogReadQueue
from kohort.server.partitions.pending_reads import PendingReadError
from kohort.server.scheduler import Scheduler


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
        self.held = False


@pytest.fixture
def world():
    """The queue, what was done, and errors of tokens. `attempt` writes as a Partition does."""
    log_reads, done, errors = LogReadQueue(Scheduler()), [], []

    def attempt(name, *parts):
        partition = parts[0].partition

        def act():
            if partition.held:
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
    assert not orders.held


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
