# SPDX-License-Identifier: Apache-2.0
"""Foreign code on threads: it ends, or it is given up, and the loop goes on either way."""

import asyncio
import re
import sys
import threading
import time
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.client.joining import coordinator, soon
from tests.client.scripted import asynchronous
from tests.observer import RecordingObserver
from tests.server.installed import installed
from tests.waiting import SOON_S, eventually

from kohort import AdminClient, Broker, NewTopic
from kohort.coordinator.consumer import planning
from kohort.errors import ErrorCode
from kohort.server.background import plugin_threads
from kohort.server.environment import BrokerEnvironment
from kohort.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

PAGE = (Path(__file__).parents[3] / "docs" / "assignors.md").read_text()
PROGRAMS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
LOOPS = """
import time

def loops(members, partitions):
    while True:
        try:
            time.sleep(0.001)
        except Exception:
            pass

def fails(members, partitions):
    raise ZeroDivisionError("a bug of theirs")
"""


@asynccontextmanager
async def serving(assignors):
    """A broker with a topic of four partitions, and what it has told."""
    told = RecordingObserver()
    config = {"group.consumer.assignors": assignors, "group.consumer.assignment.interval.ms": "0"}
    async with Broker(config, environment=BrokerEnvironment(observe=told)) as broker:
        async with AdminClient(broker.bootstrap, timeout=120) as admin:
            await admin.create_topics([NewTopic("orders", 4, 1)])
        yield broker, told


class Member:
    """A member of a group that says what it must."""

    def __init__(self, bootstrap, group, member_id, assignor=None):
        self.bootstrap, self.group, self.id, self.assignor = bootstrap, group, member_id, assignor
        self.epoch = 0
        self.owned = []

    async def beat(self):
        joins = self.epoch == 0
        asked = ConsumerGroupHeartbeatRequest(
            group_id=self.group,
            member_id=self.id,
            member_epoch=self.epoch,
            rebalance_timeout_ms=60_000 if joins else -1,
            subscribed_topic_names=["orders"] if joins else None,
            server_assignor=self.assignor if joins else None,
            topic_partitions=[] if joins else None,
        )
        async with coordinator(self.bootstrap, self.group) as connection:
            answer = await connection.ask(asked, deadline=soon())
        if not answer.error_code:
            self.epoch = answer.member_epoch
            if answer.assignment is not None:
                parts = answer.assignment.topic_partitions
                self.owned = [index for one in parts for index in one.partitions]
        return answer

    async def until(self, done):
        """Beat until something holds of the answer."""
        end = soon()
        while not done(answer := await self.beat()):
            assert asyncio.get_running_loop().time() < end, answer
            await asyncio.to_thread(time.sleep, 0.02)
        return answer


def no_foreign_thread_is_left():
    return all(one.name != "kohort-plugin" for one in threading.enumerate())


@asynchronous
async def test_the_assignor_of_the_page_runs_as_it_stands(tmp_path, monkeypatch):
    """K848-048."""
    source = PROGRAMS[0]
    (name, place), *_ = re.findall(r'^(\w+) = "spread:(\w+)"$', PAGE, re.MULTILINE)
    with installed(tmp_path, monkeypatch, "spread", source, **{name: place}):
        async with serving("uniform,range,spread") as (broker, told):
            first = Member(broker.bootstrap, "g", "a", "spread")
            await first.until(lambda _: first.owned == [0, 1, 2, 3])
            second = Member(broker.bootstrap, "g", "b", "spread")
            async with asyncio.timeout(SOON_S):
                while sorted(first.owned + second.owned) != [0, 1, 2, 3] or not second.owned:
                    await second.beat()
                    first.epoch = 0  # comes anew, with nothing
                    await first.beat()
            assert len(first.owned) == len(second.owned) == 2
            answer = await Member(broker.bootstrap, "h", "c", "exotic").beat()
            assert answer.error_code == ErrorCode.UNSUPPORTED_ASSIGNOR
            assert "Supported assignors: uniform, range, spread." in answer.error_message
    assert told.errors == []


def test_the_programs_of_the_page_that_try_it_run_as_they_stand(tmp_path, monkeypatch, capsys):
    with installed(tmp_path, monkeypatch, "spread", PROGRAMS[0], spread="assign"):
        for program in PROGRAMS[1:]:
            exec(program, {})
    assert capsys.readouterr().out.startswith("{}\n")


@pytest.mark.parametrize(("assignor", "why"), [("loops", "longer than 0.3 s"), ("fails", "a bug")])
@asynchronous
async def test_one_that_loops_or_fails_harms_its_group_alone(tmp_path, monkeypatch, assignor, why):
    """K848-048, K848-056."""
    monkeypatch.setattr(plugin_threads, "LIMIT_SECONDS", 0.3)
    with installed(tmp_path, monkeypatch, "theirs", LOOPS, loops="loops", fails="fails"):
        async with serving("uniform,loops,fails") as (broker, told):
            harmed = Member(broker.bootstrap, "harmed", "a", assignor)
            assert not (await harmed.beat()).error_code
            other = Member(broker.bootstrap, "other", "b")
            await other.beat()
            assert other.owned == [0, 1, 2, 3]

            answer = await harmed.until(lambda answer: answer.error_code)
            assert answer.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
            assert why in answer.error_message
            assert not (await other.beat()).error_code

    assert [("a bug of theirs" in one) for one in told.errors] == [True] * (assignor == "fails")
    await asyncio.to_thread(eventually, no_foreign_thread_is_left, "its thread has ended")


STUCK = """
import threading

gate = threading.Event()

def stuck(members, partitions):
    gate.wait()  # in C, where no exception reaches it
    return {}
"""


def foreign_threads():
    return sum(one.name == "kohort-plugin" for one in threading.enumerate())


@asynchronous
async def test_threads_that_do_not_end_are_few_and_when_they_do_their_groups_go_on(
    tmp_path, monkeypatch
):
    """K848-048."""
    monkeypatch.setattr(plugin_threads, "LIMIT_SECONDS", 0.1)
    monkeypatch.setattr(plugin_threads, "END_SECONDS", 0.1)
    monkeypatch.setattr(plugin_threads, "ABANDONED_MAX", 2)
    monkeypatch.setattr(planning, "AGAIN_MS", 50)

    def waits(answer):
        return "have not ended" in (answer.error_message or "")

    def warned():
        text = "assignor stuck was given up and has not ended"
        return sum(line.startswith(text) for line in told.warnings) == 2

    with installed(tmp_path, monkeypatch, "theirs", STUCK, stuck="stuck"):
        async with serving("uniform,stuck") as (broker, told):
            gate = sys.modules["theirs"].gate
            try:
                first = Member(broker.bootstrap, "g1", "a", "stuck")
                for _ in range(3):  # tried again, and no other thread begins
                    answer = await first.until(waits)
                    assert "threads of stuck that were given up" in answer.error_message
                    await asyncio.to_thread(time.sleep, 0.1)
                assert foreign_threads() == 1
                others = [Member(broker.bootstrap, group, "a", "stuck") for group in ("g2", "g3")]
                for other in others:
                    await other.until(waits)
                assert foreign_threads() == 2
                await asyncio.to_thread(eventually, warned, "both are told of")
                last = Member(broker.bootstrap, "last", "b")
                await last.beat()
                assert last.owned == [0, 1, 2, 3]
            finally:
                gate.set()
            for one in (first, *others):
                await one.until(lambda answer: answer.member_epoch == 2)
    assert warned()
    await asyncio.to_thread(eventually, no_foreign_thread_is_left, "its thread has ended")


MANY = """
import threading
import time

lock = threading.Lock()
running = most = 0

def slow(members, partitions):
    global running, most
    with lock:
        running += 1
        most = max(most, running)
    time.sleep(0.02)
    with lock:
        running -= 1
    return {}
"""


@asynchronous
async def test_many_groups_that_rebalance_at_once_take_turns(tmp_path, monkeypatch):
    """K848-048: if each had a thread, none would end in time, and the loop would hardly go on."""
    with installed(tmp_path, monkeypatch, "theirs", MANY, slow="slow"):
        async with serving("uniform,slow") as (broker, told):
            groups = [Member(broker.bootstrap, f"g{number}", "a", "slow") for number in range(20)]
            await asyncio.gather(*(group.beat() for group in groups))
            for group in groups:
                await group.until(lambda answer: answer.member_epoch == 2)
            assert 1 < sys.modules["theirs"].most <= plugin_threads.AT_ONCE
    assert (told.warnings, told.errors) == ([], [])


@asynchronous
async def test_a_broker_stops_while_one_runs(tmp_path, monkeypatch):
    with installed(tmp_path, monkeypatch, "theirs", LOOPS, loops="loops"):
        async with serving("loops") as (broker, _):
            await Member(broker.bootstrap, "g", "a").beat()
    await asyncio.to_thread(eventually, no_foreign_thread_is_left, "its thread has ended")
