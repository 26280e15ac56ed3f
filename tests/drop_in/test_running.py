"""How a tool runs: its streams, its cluster, the settings of its connection."""

import shlex
import subprocess
import sys
import threading

import pytest
from tests.drop_in.recorded_runs import run

from kohort.drop_in import consumer_groups, groups
from kohort.testing import Broker


@pytest.fixture(scope="module")
def broker():
    with Broker(in_memory=True) as broker:
        broker.create_topic("t")
        broker.produce("t", *map(str, range(10)))
        yield broker


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_stream_that_is_closed_keeps_nothing_from_being_done(broker, closed):
    """As cron jobs and supervisors start scripts: Python has None in its place."""
    broker.groups["closed"].commit("t", 3)
    reset = "--reset-offsets --group closed --topic t --to-earliest --execute"
    command = f"{shlex.quote(sys.executable)} -m kohort.drop_in.consumer_groups {reset}"
    ran = subprocess.run(
        ["sh", "-c", f"{command} --bootstrap-server {broker.bootstrap} {closed}"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert bool(ran.stdout) == (">&-" not in closed.split())
    assert list(broker.groups["closed"].committed().values()) == [0]


def asked(broker, *argv):
    return run(consumer_groups.main, ["--bootstrap-server", broker.bootstrap, *argv])


@pytest.mark.parametrize("rest", [(), ("--members",), ("--state",)])
def test_an_empty_group_is_refused_by_the_broker_as_it_is(broker, rest):
    ran = asked(broker, "--describe", "--group=", *rest)
    why = "org.apache.kafka.common.errors.InvalidGroupIdException: The group id is invalid."
    told = f"\nError: Executing consumer group command failed due to {why}\n"
    assert (ran.exit, ran.stdout) == (1, told)


@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SASL_SSL"])
@pytest.mark.parametrize("tool", [consumer_groups, groups])
def test_an_address_may_have_the_form_of_a_listener(broker, tool, protocol):
    """As it stands in a broker's file; the protocol is that of the settings, as in Java."""
    ran = run(tool.main, ["--list", "--bootstrap-server", f"{protocol}://{broker.bootstrap}"])
    assert (ran.exit, ran.stderr) == (0, "")


@pytest.mark.parametrize("server", ["PLAINTEXT://", "PLAINTEXT://localhost", "localhost"])
def test_an_address_without_a_port_is_refused_as_it_was_given(server):
    ran = run(groups.main, ["--list", "--bootstrap-server", server])
    assert ran.exit == 1
    assert f"Invalid url in bootstrap.servers: {server}\n" in ran.stderr


def test_a_broker_that_is_still_starting_is_waited_for():
    """Until --timeout, as the Java tools do: scripts start both at once."""
    with Broker(in_memory=True) as broker:
        broker.stop()
        started = threading.Timer(0.3, broker.start)
        started.start()
        ran = asked(broker, "--list")
        started.join()
    assert (ran.exit, ran.stdout) == (0, "")


def test_a_host_without_an_address_is_not_waited_for():
    ran = run(groups.main, ["--list", "--bootstrap-server", "no.such.host.invalid:9092"])
    assert ran.exit == 1
    assert "No resolvable bootstrap urls given in bootstrap.servers\n" in ran.stderr
