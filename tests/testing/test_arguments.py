# SPDX-License-Identifier: Apache-2.0
"""Wrong arguments are told of in one line, by everything of the kit that takes some."""

import re
from inspect import signature
from math import inf, nan

import pytest

from kohort.errors import KohortError
from kohort.testing import Broker, WaitTimeoutError, arguments
from kohort.testing.faults import FaultHandle, Faults
from kohort.testing.groups import GroupHandle, Groups
from kohort.testing.handles import ClockHandle, NodeHandle


@pytest.mark.parametrize(
    ("call", "line"),
    [
        (lambda: arguments.check_bool("a", 1), "a is 1, expected True or False"),
        (lambda: arguments.check_whole("a", True), "a is True, expected a whole number, 0 or more"),
        (lambda: arguments.check_whole("a", 1, least=2), "a is 1, expected a whole number, 2 or m"),
        (lambda: arguments.check_text("a", b"b"), "a is b'b', expected a text"),
        (lambda: arguments.check_choice("a", "b", ("c", "d")), "a is 'b', expected 'c' or 'd'"),
        (lambda: arguments.check_mapping("a", [1]), r"a is \[1\], expected a dict"),
        (lambda: arguments.check_mapping("a", {1: 2}), "a has the key 1, expected a text"),
        (lambda: arguments.absolute_path("a", 3), "a is 3, expected a path"),
        (lambda: arguments.absolute_path("a", ""), "a is '', expected a path"),
        (
            lambda: arguments.check_names("x", ["nodez"], ["nodes"]),
            "no argument nodez; did you",
        ),
        (
            lambda: arguments.check_names("x", ["q"], ["nodes", "b"]),
            "argument q; there are nodes",
        ),
        (lambda: Broker("num.partitions"), "settings is 'num.partitions', expected a dict"),
        (lambda: Broker([("num.partitions", 1)]), r"settings is \[.*\], expected a dict"),
        (lambda: Broker({1: "a"}), "settings has the key 1, expected a text"),
        (lambda: Broker(data_dir=3), "data_dir is 3, expected a path"),
        (lambda: Broker(in_memory="yes"), "in_memory is 'yes', expected True or False"),
        (lambda: Broker(process=1), "process is 1, expected True or False"),
        (lambda: Broker(nodes="3"), "nodes is '3', expected a whole number, 1 or more"),
        (lambda: Broker(nodes=True), "nodes is True, expected a whole number, 1 or more"),
        (lambda: Broker(versions=["Fetch"]), "versions is .*, expected a dict"),
        (lambda: Broker(versions={"Fetch": "7"}), "the version of Fetch is '7', expected a whole"),
        (lambda: Broker(clock=None), "clock is None, expected 'real' or 'manual'"),
    ],
)
def test_it_is_one_line(call, line):
    with pytest.raises(KohortError, match=line) as raised:
        call()
    assert "\n" not in str(raised.value)


@pytest.fixture(scope="module")
def broker():
    with Broker(in_memory=True) as broker:
        broker.create_topic("t")
        yield broker


@pytest.mark.parametrize(
    ("call", "line"),
    [
        (lambda b: b.create_topic(3), "name is 3, expected a text"),
        (lambda b: b.create_topic("u", "3"), "partitions is '3', expected a whole number, 1 or"),
        (lambda b: b.create_topic("u", configs=[1]), r"configs is \[1\], expected a dict"),
        (lambda b: b.create_topic("u", replication_factor=0), "replication_factor is 0, expected"),
        (lambda b: b.delete_topic(None), "name is None, expected a text"),
        (lambda b: b.produce(None, "x"), "topic is None, expected a text"),
        (lambda b: b.produce("t", "x", partition="0"), "partition is '0', expected a whole"),
        (lambda b: b.produce("t", "x", timestamp_ms=1.5), "timestamp_ms is 1.5, expected a whole"),
        (lambda b: b.read(b"t"), "topic is b't', expected a text"),
        (lambda b: b.read("t", "1"), "count is '1', expected a whole number"),
        (lambda b: b.read("t", partition=-1), "partition is -1, expected a whole number, 0 or"),
        (lambda b: b.read("t", isolation_level="commited"), "isolation_level is 'commited', exp"),
        (lambda b: b.node("1"), "index is '1', expected a whole number"),
        (lambda b: b.node(1), "there is no node 1, expected 0 to 0"),
        (lambda b: b.groups[3], "a group's id is 3, expected a text"),
        (lambda b: b.groups["g"].wait(members="2"), "members is '2', expected a whole number"),
        (lambda b: b.groups["g"].commit("t", "1"), "offset is '1', expected a whole number"),
        (lambda b: b.groups["g"].commit(None), "topic is None, expected a text"),
        (lambda b: b.groups["g"].wait_committed(None), "topic is None, expected a text"),
        (lambda b: b.groups["g"].wait_committed("t", "1"), "offset is '1', expected a whole"),
        (lambda b: b.move_leader("t", "0"), "partition is '0', expected a whole number"),
        (lambda b: b.groups["g"].move("0"), "node is '0', expected a whole number, 0 or more"),
        (lambda b: b.groups["g"].move(0.0), "node is 0.0, expected a whole number"),
        (lambda b: b.groups["g"].move(True), "node is True, expected a whole number"),
        (lambda b: b.groups["g"].remove_members(3), "client_id is 3, expected a text"),
        (lambda b: b.groups["g"].is_now(members=True), "members is True, expected a whole numb"),
        (lambda b: b.groups["g"].is_now(members=-1), "members is -1, expected a whole number, 0"),
        (lambda b: b.node(0).stop(takeover="no"), "takeover is 'no', expected True or False"),
        (lambda b: b.node(0).kill(takeover=0), "takeover is 0, expected True or False"),
        (lambda b: b.faults.close("Fetch", handled="no"), "handled is 'no', expected True or F"),
        (lambda b: b.faults.drop("Fetch").wait("1"), "hits is '1', expected a whole number, 0"),
    ],
)
def test_it_is_one_line_of_a_broker_that_runs(call, line, broker):
    with pytest.raises(KohortError, match=line) as raised:
        call(broker)
    assert "\n" not in str(raised.value)


NO_TIMES = (nan, inf, -inf, -1, -0.001, 10**400, "1", None, True, [1])
WAITS = {
    "Broker.read": lambda b, s: b.read("t", 1, timeout=s),
    "GroupHandle.wait": lambda b, s: b.groups["g"].wait("Stable", timeout=s),
    "GroupHandle.wait_committed": lambda b, s: b.groups["g"].wait_committed("t", 5, timeout=s),
    "FaultHandle.wait": lambda b, s: b.faults.drop("Fetch").wait(timeout=s),
    "Faults.delay": lambda b, s: b.faults.delay("Fetch", s),
    "ClockHandle.advance": lambda b, s: b.clock.advance(s),
}


@pytest.mark.parametrize("seconds", NO_TIMES, ids=repr)
@pytest.mark.parametrize("wait", WAITS.values(), ids=WAITS)
def test_a_time_that_is_none_is_one_line_and_nobody_waits(wait, seconds, broker):
    with pytest.raises(KohortError) as raised:
        wait(broker, seconds)
    assert re.match(
        rf"(timeout|delay|advance) is {re.escape(repr(seconds))}, expected seconds, 0 to \d+$",
        str(raised.value),
    )
    assert "\n" not in str(raised.value)
    broker.faults.clear()


@pytest.mark.parametrize("wait", [WAITS["Broker.read"], WAITS["GroupHandle.wait"]])
def test_to_wait_no_time_at_all_is_fine(wait, broker):
    with pytest.raises(WaitTimeoutError):
        wait(broker, 0)


def test_the_table_has_whatever_waits():
    """Every public method with a number of seconds among its arguments."""
    kinds = (Broker, GroupHandle, Groups, Faults, FaultHandle, ClockHandle, NodeHandle)
    found = {
        f"{kind.__name__}.{name}"
        for kind in kinds
        for name, method in vars(kind).items()
        if not name.startswith("_") and callable(method)
        if {"timeout", "seconds"} & set(signature(method).parameters)
    }
    assert found == set(WAITS)


def test_what_a_report_shows_of_them_never_fails():
    """Pytest shows the repr of what a failed line was about, in whatever state it is."""
    for make in (lambda: Broker(nodes=0), lambda: Broker(data_dir="d", in_memory=True)):
        with pytest.raises(KohortError) as raised:
            make()
        frame = raised.traceback[-1].frame
        while "self" not in frame.f_locals:
            raised.traceback.pop()
            frame = raised.traceback[-1].frame
        assert repr(frame.f_locals["self"]) == "<broker that does not run>"
    with Broker(in_memory=True, nodes=2) as broker:
        fault = broker.faults.drop("Fetch")
        shown = (broker, broker.groups, broker.groups["g"], broker.clock, broker.faults)
        shown += (broker.node(1), fault)
        assert all(repr(one).startswith("<") and str(one) for one in shown)
    assert all(repr(one).startswith("<") and str(one) for one in shown), "nor when it has ended"
