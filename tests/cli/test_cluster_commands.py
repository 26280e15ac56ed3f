# SPDX-License-Identifier: Apache-2.0
"""Where a cluster is: behind the command, in front of it, in the environment; and who is asked."""

import io
import os
import pty
import select
import signal
import sys

import pytest
from tests.interruptible import started
from tests.waiting import SOON_S

from kohort.cli.cluster_commands import confirm, is_person
from kohort.client.admin import AdminClient
from kohort.testing import Broker


def refused(ran):
    (line,) = ran.complaints
    return line


@pytest.mark.parametrize(
    "argv",
    [
        ("groups", "list", "--bootstrap-server", "127.0.0.1:1"),
        ("groups", "--bootstrap-server", "127.0.0.1:1", "list"),
        ("--bootstrap-server", "127.0.0.1:1", "groups", "list"),
        ("--bootstrap-server=127.0.0.1:1", "topics", "describe", "t"),
    ],
    ids=" ".join,
)
def test_it_may_stand_anywhere(kohort, argv):
    assert refused(kohort(*argv)) == "kohort: cannot connect to 127.0.0.1:1: refused"


@pytest.mark.parametrize(
    ("argv", "port"),
    [
        (("--bootstrap-server", "{0}:2", "groups", "--bootstrap-server", "{0}:3", "list"), 3),
        (("groups", "--bootstrap-server", "{0}:3", "list", "--bootstrap-server", "{0}:4"), 4),
        (("--bootstrap-server", "{0}:2", "groups", "list"), 2),
        (("groups", "list"), 1),
    ],
)
def test_the_nearest_wins(kohort, monkeypatch, argv, port):
    monkeypatch.setenv("KOHORT_BOOTSTRAP_SERVER", "127.0.0.1:1")
    ran = kohort(*(one.format("127.0.0.1") for one in argv))
    origin = " (KOHORT_BOOTSTRAP_SERVER is 127.0.0.1:1)" if port == 1 else ""
    assert refused(ran) == f"kohort: cannot connect to 127.0.0.1:{port}: refused{origin}"


@pytest.mark.parametrize("empty", ["", "  "])
def test_an_empty_variable_is_none(kohort, monkeypatch, empty):
    """The usual address is taken: what is there does not matter."""
    asked = []

    def seen(self, servers, **_):
        asked.append(servers)
        raise ValueError("seen")

    monkeypatch.setenv("KOHORT_BOOTSTRAP_SERVER", empty)
    monkeypatch.setattr(AdminClient, "__init__", seen)
    assert kohort("groups", "list").code == 2
    assert asked == ["127.0.0.1:9092"]


def test_a_mistake_is_told_of_where_it_stands(kohort, monkeypatch):
    monkeypatch.setenv("KOHORT_BOOTSTRAP_SERVER", "a:b")
    ran = kohort("groups", "list")
    assert (ran.code, ran.out) == (2, "")
    expected = "kohort: KOHORT_BOOTSTRAP_SERVER: 'a:b' is not an address, expected host:port"
    assert refused(ran) == expected
    assert "--bootstrap-server: 'c:d'" in refused(
        kohort("--bootstrap-server", "c:d", "groups", "list")
    )


@pytest.mark.parametrize("command", [("groups", "list"), ("consume", "t"), ("produce", "t")])
def test_an_address_that_nobody_listens_at_is_told_with_its_origin(kohort, monkeypatch, command):
    monkeypatch.setenv("KOHORT_BOOTSTRAP_SERVER", "127.0.0.1:1")
    ran = kohort(*command)
    assert ran.code == 1
    assert ran.complaints == [
        "kohort: cannot connect to 127.0.0.1:1: refused (KOHORT_BOOTSTRAP_SERVER is 127.0.0.1:1)"
    ]
    ran = kohort(*command, "--bootstrap-server", "127.0.0.1:2")
    assert ran.complaints == ["kohort: cannot connect to 127.0.0.1:2: refused"]


@pytest.mark.parametrize(
    "command", [("serve", "--in-memory"), ("inspect", "codec", "HeartbeatRequest", "4")]
)
def test_what_asks_no_cluster_takes_no_address(kohort, command):
    ran = kohort("--bootstrap-server", "127.0.0.1:1", *command)
    assert (ran.code, ran.out) == (2, "")
    assert "--bootstrap-server comes before a command that does not take it" in refused(ran)


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("answer", "goes_on"),
    [("y\n", True), ("YES \n", True), ("n\n", False), ("\n", False), ("", False), ("yep\n", False)],
)
def test_a_person_is_asked(monkeypatch, answer, goes_on):
    asked = Terminal()
    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    monkeypatch.setattr(sys, "stdout", io.StringIO())  # also where what is done goes into a pipe
    monkeypatch.setattr(sys, "stderr", asked)
    assert is_person()
    assert confirm("Delete a\tb?", ["group a\tb: Empty"]) is goes_on
    assert asked.getvalue().endswith("group a\\tb: Empty\nDelete a\\tb? [y/N] ")


@pytest.mark.parametrize("ends", [(io.StringIO, Terminal), (Terminal, io.StringIO)])
def test_a_script_is_not(monkeypatch, ends):
    monkeypatch.setattr(sys, "stdin", ends[0]("n\n"))
    monkeypatch.setattr(sys, "stderr", ends[1]())
    assert not is_person()


def at_a_terminal(answer, *argv, ahead=b""):
    """What a command says to a person who types this, and its exit code; `ahead`: before anything
    is asked.
    """
    ours, theirs = pty.openpty()
    os.write(ours, ahead)
    with started(
        [sys.executable, "-m", "kohort", *argv],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    ) as process:
        os.close(theirs)
        said = b""
        try:
            while select.select([ours], [], [], SOON_S)[0]:
                try:
                    said += os.read(ours, 4096)
                except OSError:  # how a terminal ends
                    break
                if said.endswith(b"[y/N] "):
                    if isinstance(answer, signal.Signals):
                        process.send_signal(answer)
                    else:
                        os.write(ours, answer)
            return process.wait(SOON_S), said.decode()
        finally:
            process.kill()
            os.close(ours)


def test_at_a_terminal_nothing_is_deleted_unasked(kohort):
    with Broker(in_memory=True) as broker:
        server = ("--bootstrap-server", broker.bootstrap)
        for topic in ("one", "two", "three"):
            assert kohort("topics", "create", topic, *server).code == 0
        code, said = at_a_terminal(b"n\n", "topics", "delete", "one", *server)
        assert code == 1
        assert f"Delete topic one and its records at {broker.bootstrap}? [y/N] n" in said
        assert "nothing is changed" in said

        code, said = at_a_terminal(b"n\n", "topics", "delete", "one", *server, ahead=b"y\ny\n")
        assert (code, "nothing is changed" in said) == (1, True)

        code, said = at_a_terminal(b"y\n", "topics", "delete", "none", *server)
        assert (code, "[y/N]" in said) == (1, False)

        code, said = at_a_terminal(signal.SIGINT, "topics", "delete", "one", *server)
        assert code == 130

        code, said = at_a_terminal(b"y\n", "topics", "delete", "one", "two", *server)
        assert code == 0
        assert "topic one: 1 partition, 0 offsets of records" in said
        assert "Delete 2 topics and their records at" in said
        code, said = at_a_terminal(b"n\n", "topics", "delete", "three", "--dry-run", *server)
        assert (code, "[y/N]" in said, "would be deleted" in said) == (0, False, True)
        code, said = at_a_terminal(b"n\n", "topics", "delete", "three", "--yes", *server)
        assert (code, "[y/N]" in said) == (0, False)
        code, said = at_a_terminal(b"y\n", "groups", "delete", "nobody", *server)
        assert code == 1
        assert "[y/N]" not in said
        assert "Group nobody not found" in said
