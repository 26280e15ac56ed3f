# SPDX-License-Identifier: Apache-2.0
"""`kohort.Broker`: the life of a broker inside an event loop, which may be lived more than once."""

import asyncio
import contextlib
import time

import pytest
from tests.client.joining import commit, coordinator, soon
from tests.client.scripted import asynchronous

from kohort import AdminClient, Broker, BrokerConfig, NewTopic
from kohort.errors import KohortError
from kohort.server.broker import HOLD_MS, SWEEP_SECONDS
from kohort.server.clock import Clock
from kohort.server.environment import BrokerEnvironment
from kohort.server.scheduler import BACKGROUND, CLIENTS, NEW
from kohort.wire.messages.heartbeat import HeartbeatRequest
from kohort.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kohort.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

CONFIG = BrokerConfig(group_initial_rebalance_delay_ms=0)


async def committed(bootstrap):
    async with AdminClient(bootstrap, timeout=120) as admin:
        found = (await admin.list_group_offsets("g")).all()["g"]
    return {tuple(place): one.offset for place, one in found.items()}


async def commit_once(bootstrap, offset):
    async with AdminClient(bootstrap, timeout=120) as admin:
        await admin.create_topics([NewTopic("t", 1, 1)])
    async with coordinator(bootstrap, "g") as connection:
        assert await commit(connection, "g", {("t", 0): offset}) == [0]


@pytest.mark.parametrize("nodes", [1, 3])
@asynchronous
async def test_a_second_life_has_the_address_and_the_log_of_the_first(tmp_path, nodes):
    broker = Broker(CONFIG, data_dir=tmp_path / "data", nodes=nodes)
    await broker.start()
    before = broker.bootstrap
    await commit_once(before, 7)
    await broker.stop()

    await broker.start()
    assert broker.bootstrap == before
    assert len(broker.addresses) == nodes
    assert await committed(before) == {("t", 0): 7}
    await commit_once(before, 8)
    await broker.stop()
    await broker.stop()  # twice is fine

    async with Broker(CONFIG, data_dir=tmp_path / "data", nodes=nodes) as other:
        assert await committed(other.bootstrap) == {("t", 0): 8}


@asynchronous
async def test_in_memory_a_second_life_begins_empty():
    broker = Broker(CONFIG)
    for _ in range(3):
        async with broker:
            assert not broker.stopped.is_set()
            assert await committed(broker.bootstrap) == {}
            await commit_once(broker.bootstrap, 1)
        assert broker.stopped.is_set()


@asynchronous
async def test_one_that_runs_is_not_started_again():
    async with Broker(CONFIG) as broker:
        before = broker.bootstrap
        with pytest.raises(KohortError, match="already"):
            await broker.start()
        assert broker.bootstrap == before
        await commit_once(before, 1)


@asynchronous
async def test_one_that_could_not_start_may_be_started_later(tmp_path):
    (tmp_path / "data").write_text("a file in the way")
    broker = Broker(CONFIG, data_dir=tmp_path / "data")
    with pytest.raises(KohortError):
        await broker.start()
    (tmp_path / "data").unlink()
    async with broker:
        await commit_once(broker.bootstrap, 1)
        assert await committed(broker.bootstrap) == {("t", 0): 1}


def test_each_life_may_have_an_event_loop_of_its_own():
    broker = Broker(CONFIG)

    async def live():
        async with broker:
            await commit_once(broker.bootstrap, 3)
            return broker.bootstrap, await committed(broker.bootstrap)

    first = asyncio.run(live())
    assert asyncio.run(live()) == first


@asynchronous
async def test_a_timer_of_the_first_life_does_not_stand_for_those_of_the_second():
    """A join waits for others: only a timer answers it."""
    broker = Broker(BrokerConfig(group_initial_rebalance_delay_ms=300))

    async def join():
        async with coordinator(broker.bootstrap, "g") as connection:
            request = JoinGroupRequest(
                group_id="g",
                session_timeout_ms=30_000,
                rebalance_timeout_ms=30_000,
                member_id="",
                protocol_type="consumer",
                protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
            )
            deadline = asyncio.get_running_loop().time() + 20
            return await connection.ask(request, deadline=deadline, at_most=3)

    async with broker:
        waiting = asyncio.create_task(join())
        while not broker._timer:  # noqa: ASYNC110  (nobody tells)
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.05)
    with contextlib.suppress(KohortError):
        await waiting
    async with broker:
        waiting = asyncio.create_task(join())
        for _ in range(500):
            if broker._timer is not None and not broker._timer.cancelled():
                break
            await asyncio.sleep(0.01)
        else:
            pytest.fail("no timer is set: only housekeeping would wake the broker, seconds later")
        assert (await waiting).error_code == 0


def test_settings_may_come_by_their_names():
    assert Broker({"num.partitions": "3"}).config.num_partitions == 3


@asynchronous
async def test_a_clock_that_is_set_back_after_a_stall_makes_nobody_late():
    """Found by the simulator: the time of the stall lay ahead of the clock then, and every member
    was thrown out at once.
    """
    ahead = [0.0]
    steady = time.monotonic
    around = BrokerEnvironment(clock=lambda: Clock(lambda: steady() + ahead[0], steady))
    async with Broker(CONFIG, environment=around) as broker:
        turn, asked = broker.cluster.turn, []
        broker.cluster.turn = lambda now, due: asked.append((now, due)) or turn(now, due)

        now = broker.schedule_turn()
        broker._stalled(now)
        ahead[0] = -200.0
        broker._sweep()
        broker._turn()
        ahead[0] = 0.0
        broker._sweep()
        broker._turn()

    assert asked
    assert all(now - 60_000 < due <= now for now, due in asked)


@asynchronous
async def test_a_deadline_that_came_during_a_stall_waits_for_the_sockets():
    """Found by the simulator: the timer of a session was the first to run after the stall, and the
    session ended, though a heartbeat had arrived in time.
    """
    ahead = [0.0]
    steady = time.monotonic
    around = BrokerEnvironment(
        clock=lambda: Clock(lambda: steady() + ahead[0], lambda: steady() + ahead[0])
    )
    async with Broker(CONFIG, environment=around) as broker:
        turn, asked = broker.cluster.turn, []
        broker.cluster.turn = lambda now, due: asked.append((now, due)) or turn(now, due)
        broker._turn()
        before, _ = asked[-1]

        ahead[0] = 12.0
        broker._timer_at = before + 3000
        broker._turn_by_timer()
        broker._turn()

    now, due = asked[-1]
    assert now >= before + 12_000
    assert due <= before


@asynchronous
async def test_nodes_are_not_told_to_be_where_no_port_is():
    """Clients were told port 65536, and could not connect to the second node."""
    config = {"advertised.listeners": "PLAINTEXT://example.test:65535"}
    broker = Broker(config, nodes=2)
    with pytest.raises(KohortError, match="2 nodes from port 65535 on end beyond port 65535"):
        await broker.start()
    async with Broker(config) as alone:
        assert alone.addresses


@asynchronous
async def test_a_fault_of_ours_in_a_turn_takes_nobody_elses():
    class Fails:
        line, had_ns = CLIENTS, NEW

        def run(self, _over):
            raise ZeroDivisionError("a bug")

    class Works:
        line, had_ns = CLIENTS, NEW

        def run(self, _over):
            worked.set()
            return False

    worked, faults = asyncio.Event(), []
    asyncio.get_running_loop().set_exception_handler(lambda _, told: faults.append(told))
    async with Broker(CONFIG) as broker:
        for runnable in (Fails(), Works()):
            broker.cluster.scheduler.enter(runnable)
        broker.schedule_turn()
        async with asyncio.timeout(10):
            await worked.wait()
    assert [str(told["exception"]) for told in faults] == ["a bug"]


@asynchronous
async def test_the_sockets_are_read_between_two_turns_however_many_have_come_back_from_a_thread():
    """Each sync that came back took a turn at once and had another one queued. While there was more
    to do each of these queued the next, so that turns became more and the sockets were read less.
    """

    class Busy:
        line, had_ns = CLIENTS, NEW

        def run(self, _over):
            return True

    async with Broker(CONFIG) as broker:
        broker.cluster.scheduler.enter(Busy())
        turn, turns = broker.cluster.turn, []
        broker.cluster.turn = lambda now, due: turns.append(now) or turn(now, due)
        for _ in range(5):
            broker._turn()
        turns.clear()
        for _ in range(10):
            await asyncio.sleep(0)
        assert len(turns) <= 11, "one in each iteration of the loop"
        broker.cluster.turn = turn


class Stall:
    """Time that passes at once, as for a process that was frozen."""

    def __init__(self, monkeypatch):
        self.ahead = 0.0
        steady = time.monotonic
        self.now = lambda: steady() + self.ahead
        monkeypatch.setattr(asyncio.get_running_loop(), "time", self.now, raising=False)
        self.around = BrokerEnvironment(clock=lambda: Clock(self.now, self.now))


def test_who_has_sent_a_heartbeat_before_a_stall_is_no_late_member(monkeypatch):
    """The process was frozen between the request and its turn: the session was renewed from before
    the stall on, and was over behind it.
    """

    async def play():
        stall = Stall(monkeypatch)
        async with (
            Broker(CONFIG, environment=stall.around) as broker,
            coordinator(broker.bootstrap, "g") as connection,
        ):
            member_id, generation = await joined(connection)
            heartbeat = HeartbeatRequest(
                group_id="g", generation_id=generation, member_id=member_id
            )
            submit = broker.cluster.submit

            def freeze(driver, call):
                submit(driver, call)
                stall.ahead += 60.0

            monkeypatch.setattr(broker.cluster, "submit", freeze)
            first = await connection.ask(heartbeat, deadline=stall.now() + 1000)
            monkeypatch.setattr(broker.cluster, "submit", submit)
            await asyncio.sleep(2 * HOLD_MS / 1000)
            second = await connection.ask(heartbeat, deadline=stall.now() + 1000)
            return first.error_code, second.error_code

    assert asyncio.run(play()) == (0, 0)


async def joined(connection):
    """The id and the generation of a classic member at rest."""
    join = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=45_000,
        rebalance_timeout_ms=45_000,
        member_id="",
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )
    first = await connection.ask(join, deadline=soon())
    join.member_id = first.member_id
    answer = await connection.ask(join, deadline=soon())
    assert answer.error_code == 0
    sync = SyncGroupRequest(
        group_id="g",
        generation_id=answer.generation_id,
        member_id=answer.member_id,
        protocol_type="consumer",
        protocol_name="range",
        assignments=[SyncGroupRequestAssignment(member_id=answer.member_id, assignment=b"x")],
    )
    assert (await connection.ask(sync, deadline=soon())).error_code == 0
    return answer.member_id, answer.generation_id


@asynchronous
async def test_what_was_written_is_synced_though_the_turn_fails(tmp_path):
    """Its answer came with the next sweep, five seconds later."""

    class Fails:
        line, had_ns = BACKGROUND, NEW

        def run(self, _over):
            raise ZeroDivisionError("a bug")

    asyncio.get_running_loop().set_exception_handler(lambda *_: None)
    async with Broker(CONFIG, data_dir=tmp_path / "data") as broker:
        await commit_once(broker.bootstrap, 1)
        submit = broker.cluster.submit

        def fail_as_well(driver, call):
            submit(driver, call)
            broker.cluster.scheduler.enter(Fails())

        async with coordinator(broker.bootstrap, "g") as connection:
            broker.cluster.submit = fail_as_well
            begun = time.monotonic()
            assert await commit(connection, "g", {("t", 0): 2}) == [0]
            assert time.monotonic() - begun < SWEEP_SECONDS / 2


@asynchronous
async def test_answers_that_cannot_be_sent_hold_back_nobody_elses():
    class Fails:
        broken = None

        def flush(self):
            raise ZeroDivisionError("a bug")

        def break_off(self, error):
            self.broken = error

    fails = Fails()
    async with Broker(CONFIG) as broker:
        await commit_once(broker.bootstrap, 1)
        broker.ready.append(fails)
        assert await committed(broker.bootstrap) == {("t", 0): 1}
    assert isinstance(fails.broken, ZeroDivisionError)
