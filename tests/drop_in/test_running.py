# SPDX-License-Identifier: Apache-2.0
"""How a tool runs: its streams, its cluster, the settings of its connection."""

import shlex
import subprocess
import sys
import threading

import pytest
from tests.drop_in.recorded_runs import run
from tests.ports import free_port

from kohort.drop_in import configs, consumer_groups, groups
from kohort.drop_in.options import parse
from kohort.drop_in.running import api_timeout_ms
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


@pytest.fixture
def config(tmp_path):
    def write(*lines):
        path = tmp_path / "client.properties"
        path.write_text("\n".join(lines))
        return ("--command-config", str(path))

    return write


def waited_ms(tool, *argv):
    """For how long the tool would wait for a broker."""
    return api_timeout_ms(parse(argv, tool.OPTIONS), tool._TIMEOUT_MS)


@pytest.mark.parametrize("tool", [consumer_groups, groups, configs])
def test_the_times_of_the_file_are_followed(config, tool):
    """As Java reads them: a call has no less time than a request."""
    server = ("--bootstrap-server", "h:1")
    usual = tool._TIMEOUT_MS
    assert waited_ms(tool, *server) == usual
    assert waited_ms(tool, *server, *config("default.api.timeout.ms=1500")) == 1500
    assert waited_ms(tool, *server, *config("request.timeout.ms=2000")) == usual
    assert waited_ms(tool, *server, *config("request.timeout.ms=90000")) == 90_000
    both = config("default.api.timeout.ms=3000", "request.timeout.ms=2000")
    assert waited_ms(tool, *server, *both) == 3000


@pytest.mark.parametrize("argv", [(groups, "--list"), (configs, "--describe", "--group", "g")])
def test_a_short_time_of_the_file_ends_the_wait(config, argv):
    """Nothing is said of settings that are not used: these are."""
    tool, *rest = argv
    server = f"127.0.0.1:{free_port()}"
    file = config("default.api.timeout.ms=200", "request.timeout.ms=100")
    ran = run(tool.main, ["--bootstrap-server", server, *rest, *file])
    assert ran.exit == 1
    assert "Failed to find brokers to send ListGroups" in ran.stdout + ran.stderr
    assert "not used here" not in ran.stderr


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        (["request.timeout.ms=abc"], "value abc for configuration request.timeout.ms: Not a numbe"),
        (["default.api.timeout.ms="], "value  for configuration default.api.timeout.ms: Not a n"),
        (["default.api.timeout.ms=2147483648"], "value 2147483648 for configuration default.api."),
        (["default.api.timeout.ms=-1"], "default.api.timeout.ms: Value must be at least 0"),
        (
            ["default.api.timeout.ms=1000", "request.timeout.ms=2000"],
            "The specified value of default.api.timeout.ms must be no smaller than the value ",
        ),
    ],
)
def test_a_time_that_makes_no_sense_is_refused_with_its_name(broker, config, lines, why):
    """Also where --timeout counts before it."""
    ran = asked(broker, "--list", "--timeout", "5000", *config(*lines))
    assert ran.exit == 1
    assert why in ran.stderr
    assert ran.stdout.startswith("\nError: Executing consumer group command failed due to ")
