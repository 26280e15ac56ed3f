# SPDX-License-Identifier: Apache-2.0
"""What is done beside the loop comes back in any case, and not after the life it was begun in."""

import asyncio
from types import SimpleNamespace

import pytest
from tests.client.scripted import asynchronous

from kohort.errors import Broken
from kohort.server.background.plugin_threads import AbandonedThreads
from kohort.server.background.threads import Background
from kohort.server.clock import Clock
from kohort.server.environment import BrokerEnvironment
from kohort.server.metrics.durations import Durations

SECONDS = 20


class Failing:
    """A log, or work, that fails in a way nobody has thought of."""

    def sync(self):
        raise ValueError("what is this")

    run = sync
    log = property(lambda self: self)


class Giving:
    """A cluster that gives out each of these once, and notes what comes back."""

    def __init__(self, syncs=(), works=()):
        self.syncs, self.works = list(syncs), list(works)
        self.ended = []
        self.meters = SimpleNamespace(syncs=Durations())
        self.tasks = ()

    @property
    def durability(self):
        return SimpleNamespace(dirty=self.syncs)

    @property
    def table(self):
        return SimpleNamespace(has_work=bool(self.works))

    def begin_sync(self):
        given, self.syncs = self.syncs, []
        return given

    def begin_work(self):
        return self.works.pop() if self.works else None

    def begin_task(self):
        return None

    def end_sync(self, listener, outcome):
        self.ended.append((listener, outcome))

    def end_work(self, work, now):
        self.ended.append((work, None))


def beside(cluster, turn, *, on_disk=True):
    return Background(
        cluster, BrokerEnvironment(), Clock(), AbandonedThreads(), turn, on_disk=on_disk
    )


@asynchronous
async def test_a_sync_that_fails_in_a_way_nobody_thought_of_is_a_failed_sync():
    """Else those who wait for it would wait for ever."""
    failing, turned = Failing(), asyncio.Event()
    cluster = Giving(syncs=[failing])
    background = beside(cluster, turned.set)

    assert not background.begin()
    await asyncio.wait_for(turned.wait(), SECONDS)
    await background.end()

    ((listener, outcome),) = cluster.ended
    assert listener is failing
    assert isinstance(outcome, Broken)
    assert str(outcome) == "ValueError: what is this"


@asynchronous
async def test_work_comes_back_from_its_thread_in_any_case():
    """Else there would be no other, as only one piece is out at a time."""
    failing, turned = Failing(), asyncio.Event()
    cluster = Giving(works=[failing])
    background = beside(cluster, turned.set)

    assert not background.begin()
    await asyncio.wait_for(turned.wait(), SECONDS)
    await background.end()

    assert cluster.ended == [(failing, None)]


@asynchronous
async def test_without_files_long_work_is_done_at_once():
    done = []
    quick = SimpleNamespace(run=lambda: done.append("run"))
    cluster = Giving(works=[quick])
    background = beside(cluster, pytest.fail, on_disk=False)

    assert background.begin()
    assert (done, cluster.ended) == (["run"], [(quick, None)])
    assert not background.begin()
    await background.end()


@asynchronous
async def test_nobody_is_told_after_the_life_it_was_begun_in():
    cluster = Giving(syncs=[Failing()], works=[Failing()])
    background = beside(cluster, lambda: pytest.fail("a turn of a life that is over"))

    background.begin()
    background.give_up()
    await background.end()
    await asyncio.sleep(0)

    assert cluster.ended == []
