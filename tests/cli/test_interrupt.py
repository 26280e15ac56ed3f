# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C ends a command at once, whatever it is busy with, with the exit code of SIGINT."""

import asyncio
import signal
import socket
import subprocess
import sys
from contextlib import suppress

import pytest
from tests.client.scripted import ScriptedCluster
from tests.interruptible import interruptible, started
from tests.serve.talk import Talk
from tests.waiting import SOON_S

from kohort.testing import Broker
from kohort.wire.messages.delete_groups import DeleteGroupsRequest

ENDLESS = """
import sys
from kohort.cli import main, render

def endless(self, *_, **__):
    while True:
        self._stream.write("a row that is followed by others\\n")

render.Output.table = render.Output.rows = endless
sys.exit(main.main(sys.argv[1:]))
"""


@pytest.fixture(scope="module")
def broker():
    with Broker(in_memory=True) as broker:
        with Talk(broker.bootstrap) as client:
            client.create_topic("t")
            assert client.commit("g", "t", 0) == 0
        yield broker


@pytest.mark.parametrize("fmt", ["table", "json"])
@pytest.mark.parametrize(
    "command",
    [("groups", "list"), ("groups", "describe", "--all"), ("topics", "list")],
    ids=" ".join,
)
def test_a_long_answer_is_interrupted(broker, command, fmt):
    """Nobody reads on, as when a pager is left: then not even the rest may be written."""
    argv = [*command, "--format", fmt, "--bootstrap-server", broker.bootstrap]
    with started(
        [sys.executable, "-c", ENDLESS, *argv],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout.readline()
            process.send_signal(signal.SIGINT)
            assert process.wait(SOON_S) == 130
            assert process.stderr.read() == ""
        finally:
            process.kill()


def test_a_broker_that_is_silent_is_not_waited_for():
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        started(
            [
                *(sys.executable, "-m", "kohort", "groups", "list", "--timeout", "600"),
                *("--bootstrap-server", f"127.0.0.1:{server.getsockname()[1]}"),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process,
    ):
        try:
            connection, _ = server.accept()  # it stays open: a closed one would be an answer
            with connection:
                connection.recv(1)
                process.send_signal(signal.SIGINT)
                assert process.wait(SOON_S) == 130
            assert (process.stdout.read(), process.stderr.read()) == ("", "")
        finally:
            process.kill()


def test_one_that_was_changing_something_says_that_it_may_be_done():
    """The broker has the request, and has not answered."""

    async def interrupted():
        async with ScriptedCluster(answers={DeleteGroupsRequest: lambda _: None}) as scripted:
            process = await asyncio.create_subprocess_exec(
                *(
                    sys.executable,
                    "-m",
                    "kohort",
                    "groups",
                    "delete",
                    "--yes",
                    "g",
                    "--timeout",
                    "600",
                ),
                *("--bootstrap-server", scripted.bootstrap),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                preexec_fn=interruptible,
            )
            try:
                async with asyncio.timeout(SOON_S):
                    while not scripted.sent("DeleteGroups"):  # noqa: ASYNC110  (a table)
                        await asyncio.sleep(0.01)
                    process.send_signal(signal.SIGINT)
                    out, err = await process.communicate()
            finally:
                with suppress(ProcessLookupError):
                    process.kill()
            assert (process.returncode, out) == (130, b"")
            expected = b"kohort: interrupted while deleting 1 group: it may be done all the same\n"
            assert err == expected

    asyncio.run(interrupted())
