"""How a tool runs: its streams, its cluster, the settings of its connection."""

import shlex
import subprocess
import sys

import pytest

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
