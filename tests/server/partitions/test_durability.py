# SPDX-License-Identifier: Apache-2.0
"""Answers leave when what they tell of is durable, whoever else writes meanwhile."""

import pytest

from kohort.errors import Broken
from kohort.server.partitions.durability import Durability
from kohort.storage.memory import MemoryLog
from kohort.wire import batch


class One:
    """A log that is written to, and what it was told."""

    def __init__(self):
        self.log = MemoryLog()
        self.told = []

    def durable(self, end):
        self.told.append(end)

    def lost(self, error):
        self.told.append(str(error))

    def after_sync(self):
        self.told.append("synced")

    def write(self, durability):
        self.log.append(batch.build([(b"k", b"v")], 1000), 1)
        durability.wrote(self)


class Answered:
    def __init__(self):
        self.response = None

    def answer(self, response):
        self.response = response

    def fail(self, error):
        self.response = f"failed: {error}"


def asked(durability, behind):
    token = Answered()
    durability.answer(token, "done", behind)
    return token


def sync(durability):
    for one in durability.begin():
        durability.end(one, one.log.sync())


def test_an_answer_waits_for_everything_it_tells_of():
    """K848-027."""
    durability, one, two = Durability(synced=True), One(), One()
    one.write(durability)
    two.write(durability)

    token = asked(durability, [one, two])
    before = token.response
    sync(durability)

    assert (before, token.response) == (None, "done")
    assert (one.told, two.told) == ([1, "synced"], [1, "synced"])


def test_what_is_written_during_a_sync_waits_for_the_next():
    durability, one = Durability(synced=True), One()
    one.write(durability)
    first = asked(durability, [one])
    (begun,) = durability.begin()
    end = begun.log.sync()
    one.write(durability)
    second = asked(durability, [one])

    assert durability.begin() == [], "it is in hand already"
    durability.end(one, end)
    between = (first.response, second.response)
    sync(durability)

    assert between == ("done", None)
    assert second.response == "done"


def test_a_second_answer_waits_for_what_another_wrote():
    """A producer that tries again is not told of a batch that is still on its way to the disk."""
    durability, one = Durability(synced=True), One()
    one.write(durability)
    durability.begin()

    again = asked(durability, [one])

    assert again.response is None


def test_nothing_waits_without_syncs():
    durability, one = Durability(synced=False), One()
    one.write(durability)

    assert asked(durability, [one]).response == "done"
    assert one.told == [1]
    assert durability.begin() == []


@pytest.mark.parametrize("in_hand", [False, True])
def test_what_is_gone_holds_nobody_back(in_hand):
    durability, one = Durability(synced=True), One()
    left = []
    one.write(durability)
    token = asked(durability, [one])
    begun = durability.begin() if in_hand else []

    durability.forget(one, lambda: left.append("closed"))
    assert token.response == "done"
    assert left == ([] if in_hand else ["closed"])
    for each in begun:
        durability.end(each, each.log.sync())

    assert left == ["closed"]


def test_a_slow_log_holds_up_its_own_answers_only():
    durability, slow, quick = Durability(synced=True), One(), One()
    slow.write(durability)
    waits = asked(durability, [slow])
    durability.begin()

    quick.write(durability)
    passes = asked(durability, [quick])
    sync(durability)

    assert (waits.response, passes.response) == (None, "done")
    durability.end(slow, slow.log.sync())
    assert waits.response == "done"


def test_a_log_that_refuses_concerns_those_alone_who_wait_for_it():
    durability, bad, good = Durability(synced=True), One(), One()
    bad.write(durability)
    good.write(durability)
    both, one = asked(durability, [bad, good]), asked(durability, [good])

    for each in durability.begin():
        durability.end(each, Broken("EIO") if each is bad else each.log.sync())

    assert (both.response, one.response) == ("failed: EIO", "done")
    assert (bad.told, good.told) == (["EIO", "synced"], [1, "synced"])
    assert durability.begin() == []
