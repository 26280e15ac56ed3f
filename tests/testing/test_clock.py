# SPDX-License-Identifier: Apache-2.0
"""The clock of a broker under test, and what happens when it is moved."""

import select
import time
from datetime import timedelta

import pytest
from tests.serve.talk import Talk
from tests.testing.members import beat, join

from kohort.errors import KohortError
from kohort.runtime import clocks
from kohort.testing import Broker
from kohort.testing.clock import MovableClock
from kohort.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol

HOUR = 3600


def test_a_manual_clock_stands():
    clock = MovableClock("manual", begin_ms=1_000, moved_ms=50)
    assert (clock(), clock.look(), clock.stands) == (1_050, 0, True)
    clock.forward(5)
    assert (clock(), clock.moved_ms) == (1_055, 55)


def test_a_real_clock_goes_on_from_where_it_was_moved(monkeypatch):
    clock = MovableClock("real", begin_ms=0, moved_ms=1_000)
    before = clock()
    assert before >= int(time.time() * 1000) + 900
    clock.forward(10_000)
    assert clock() >= before + 10_000
    assert clock.look() == 0, "it was moved, it did not jump"
    wall = clocks.wall
    monkeypatch.setattr(clocks, "wall", lambda: wall() + 60)
    assert 59_000 < clock.look() < 61_000


@pytest.mark.parametrize("kind", ["real", "manual"])
@pytest.mark.parametrize("process", [False, True], ids=["thread", "process"])
def test_sessions_end_at_once(kind, process):
    with (
        Broker(in_memory=True, clock=kind, process=process) as broker,
        Talk(broker.bootstrap) as client,
    ):
        broker.create_topic("t")
        epoch = join(client, "g")
        assert beat(client, "g", epoch) == 0
        broker.clock.advance(20)
        assert beat(client, "g", epoch) == 0, "20 of 45 seconds"
        broker.clock.advance(40)
        assert beat(client, "g", epoch) == 0
        broker.clock.advance(46)
        assert broker.groups["g"].state == "Empty"
        assert beat(client, "g", epoch) == 25  # UNKNOWN_MEMBER_ID
        assert broker.groups["g"].history()[-1].owners == {}


def test_what_falls_due_on_the_way_happens_in_its_order():
    with Broker(in_memory=True, clock="manual") as broker, Talk(broker.bootstrap) as client:
        broker.create_topic("t")
        join(client, "a")
        broker.clock.advance(10)
        join(client, "b")
        broker.clock.advance(60)
        ended = [line for line in broker.log().splitlines() if "is over" in line]
        assert ["group a" in line for line in ended] == [True, False]
        for name in "ab":
            record = broker.groups[name].records()[-1]
            begun = broker.groups[name].records()[0]
            assert record.timestamp_ms - begun.timestamp_ms == 45_000


def test_a_manual_clock_leaves_members_alone():
    with Broker(in_memory=True, clock="manual") as broker:
        before = broker.clock.now_ms
        broker.create_topic("t")
        (record,) = broker.produce("t", "x")
        assert record.timestamp_ms == before == broker.clock.now_ms


def test_a_fetch_waits_in_real_time_while_the_clock_stands():
    with Broker(in_memory=True, clock="manual") as broker, Talk(broker.bootstrap) as client:
        broker.create_topic("t")
        for _ in range(2):
            request = client.fetch_request("t", max_wait_ms=50)
            assert not client.ask(request, 12).responses[0].partitions[0].records


def test_retention_goes_at_once():
    with Broker() as broker:
        broker.create_topic("t", configs={"retention.ms": 60_000})
        broker.produce("t", "old")
        broker.clock.advance(301)  # a broker looks every five minutes
        assert broker.read("t") == []
        broker.produce("t", "new")
        assert [(one.offset, one.text) for one in broker.read("t")] == [(1, "new")]


def test_offsets_expire_at_once():
    """K229-21. A retention is over where the clock has gone past it, whenever a broker looks."""
    with Broker(in_memory=True) as broker:
        broker.create_topic("t", partitions=2)
        broker.groups["g"].commit("t", 5)
        broker.clock.advance(7 * 24 * HOUR - 60)
        broker.groups["g"].commit("t", 6, partition=1)
        broker.clock.advance(61)
        assert broker.groups["g"].committed() == {("t", 1): 6}
        broker.clock.advance(7 * 24 * HOUR)
        assert "g" not in broker.groups


def test_an_advance_leaves_a_group_that_is_empty_until_a_broker_looks():
    with Broker(in_memory=True, clock="manual") as broker, Talk(broker.bootstrap) as client:
        broker.create_topic("t")
        join(client, "g")
        broker.clock.advance(46)
        assert broker.groups["g"].state == "Empty"
        broker.clock.advance(600)
        assert "g" not in broker.groups


def test_a_join_that_waits_for_others_is_answered():
    settings = {"group.initial.rebalance.delay.ms": 3000}
    with Broker(settings, in_memory=True, clock="manual") as broker, Talk(broker.bootstrap) as one:
        request = JoinGroupRequest(
            group_id="g",
            session_timeout_ms=30_000,
            rebalance_timeout_ms=60_000,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
        )
        member = one.ask(request, 5).member_id
        request.member_id = member
        one.send(request, 5)
        broker.groups["g"].wait("PreparingRebalance")
        broker.clock.advance(3)
        assert one.answer()


@pytest.mark.parametrize("process", [False, True], ids=["thread", "process"])
def test_time_does_not_go_back_with_a_restart(process):
    with Broker(clock="manual", process=process) as broker:
        before = broker.clock.now_ms
        broker.clock.advance(HOUR)
        broker.restart()
        assert broker.clock.now_ms == before + HOUR * 1000


def test_time_does_not_go_back():
    with (
        Broker(in_memory=True) as broker,
        pytest.raises(KohortError, match="advance is -1, expected seconds, 0 to"),
    ):
        broker.clock.advance(-1)


@pytest.mark.parametrize("seconds", ["a", None, True])
def test_time_is_seconds(seconds):
    with Broker(in_memory=True) as broker, pytest.raises(KohortError, match="expected seconds, 0"):
        broker.clock.advance(seconds)


def test_all_clients_are_served_while_time_passes():
    """Advancing does its work between the requests of others."""
    with Broker() as broker, Talk(broker.bootstrap) as client:
        broker.create_topic("t")
        for number in range(20):
            client.send(client.fetch_request("t"), 12)
            broker.clock.advance(number)
            assert client.answer()


@pytest.mark.parametrize("seconds", [1e18, float("nan"), float("inf"), timedelta.max])
def test_time_does_not_go_where_no_record_can_follow(seconds):
    with Broker(in_memory=True) as broker:
        with pytest.raises(KohortError, match="expected seconds, 0 to"):
            broker.clock.advance(seconds)
        broker.create_topic("t")
        assert broker.produce("t", "x")


def test_time_may_be_a_timedelta():
    with Broker(in_memory=True, clock="manual") as broker:
        before = broker.clock.now_ms
        broker.clock.advance(timedelta(minutes=1))
        assert broker.clock.now_ms == before + 60_000


def test_while_the_clock_stands_each_fetch_waits_for_its_own_time():
    """A short one that comes behind a long one is not held by it."""
    with (
        Broker(in_memory=True, clock="manual") as broker,
        Talk(broker.bootstrap) as patient,
        Talk(broker.bootstrap) as hasty,
    ):
        broker.create_topic("t")
        patient.send(patient.fetch_request("t", max_wait_ms=15_000), 12)
        time.sleep(0.1)  # until the broker waits for the end of it
        for _ in range(2):
            assert hasty.ask(hasty.fetch_request("t", max_wait_ms=50), 12).error_code == 0
        readable, _, _ = select.select([patient.socket], [], [], 0)
        assert not readable
