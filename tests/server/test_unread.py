"""Who finds that something must be read first tries again, in the order of arrival."""

from typing import NamedTuple

import pytest

from kohort.errors import ApiError, ErrorCode
from kohort.server.reading import Readings
from kohort.server.scheduler import Scheduler
from kohort.server.unread import UnreadError


class Part(NamedTuple):
    """A part of a log, of which so many slices are left."""

    partition: str
    left: list[int]

    def __hash__(self):
        return hash(self.partition)

    def read_on(self, _most):
        self.left[0] -= 1
        if self.left[0] == 0 and self.partition == "broken":
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, "it cannot be read")
        return self.left[0] > 0


class Token:
    def __init__(self):
        self.error = None

    def fail(self, error):
        self.error = error


@pytest.fixture
def readings():
    return Readings(Scheduler())


def attempt(readings, unread, done, name, token=None):
    def act():
        if unread.left[0] > 0:
            raise UnreadError(unread)
        done.append(name)

    readings.attempt(act, token or Token())


def test_those_who_wait_for_the_same_go_on_in_their_order(readings):
    done = []
    long, short = Part("long", [3]), Part("short", [1])
    for name, unread in (("a", long), ("b", short), ("c", long), ("d", long)):
        attempt(readings, unread, done, name)
    assert done == []
    while readings.step():
        pass
    assert done == ["b", "a", "c", "d"]
    attempt(readings, long, done, "e")
    assert done[-1] == "e"


def test_who_needs_something_else_then_waits_again(readings):
    done = []
    first, second = Part("first", [1]), Part("second", [2])

    def act():
        for unread in (first, second):
            if unread.left[0] > 0:
                raise UnreadError(unread)
        done.append("all")

    readings.attempt(act, Token())
    while readings.step():
        pass
    assert done == ["all"]


def test_what_an_attempt_raises_is_its_tokens_alone(readings):
    done, token = [], Token()

    def bad():
        raise ValueError("nobody has thought of it")

    unread = Part("one", [1])

    def late():
        if unread.left[0] > 0:
            raise UnreadError(unread)
        bad()

    readings.attempt(late, token)
    attempt(readings, unread, done, "other")
    while readings.step():
        pass
    assert str(token.error) == "nobody has thought of it"
    assert done == ["other"]


def test_what_cannot_be_read_is_tried_once_and_the_attempt_is_told(readings):
    """It looks again by itself, and says why."""
    done = []
    attempt(readings, Part("broken", [1]), done, "a")
    assert not readings.step()
    assert done == ["a"]
