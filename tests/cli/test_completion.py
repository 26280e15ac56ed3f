# SPDX-License-Identifier: Apache-2.0
"""`kohort completion`: what a shell gets at a TAB, and that no name does more than stand there."""

import json
import os
import pty
import select
import shutil
import socket
import subprocess
import sys
import time
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest
from tests.client.scripted import asynchronous

import kohort as package
from kohort.cli.completion import is_offered
from kohort.client.admin import AdminClient
from kohort.testing.broker import Broker

PLAIN = "billing"
ODD = (
    *("a b", "it's", 'q"x', "x;y", "$(touch pwned)", "`touch pwned`", "back\\slash", "*", "?"),
    *("~root", "#c", "bang!", "c:d:e", "f=g", "=ls", "{h,i}", "^x", "é", "%s", "<in", "[j]"),
)
NEVER = ("new\nline", "tab\there", "escape\x1b[2J", "-x", "bell\x07")


@pytest.fixture(scope="module")
def server():
    @asynchronous
    async def populate():
        async with AdminClient(broker.bootstrap) as admin:
            for group in (PLAIN, *ODD, *NEVER):
                (await admin.alter_group_offsets(group, {("orders", 0): 0})).all()

    with Broker(in_memory=True) as broker:
        broker.create_topic("orders")
        populate()
        yield broker.bootstrap


@pytest.fixture
def shell(tmp_path, server):
    """The environment of a shell whose `kohort` completes, and writes down what it is called with
    otherwise; and a folder with a file that a wrong pattern would find.
    """
    called = (
        f"import json, sys; open({str(tmp_path / 'argv')!r}, 'w').write(json.dumps(sys.argv[1:]))"
    )
    command = tmp_path / "bin" / "kohort"
    command.parent.mkdir()
    (tmp_path / "called.py").write_text(called)
    command.write_text(
        f'#!/bin/sh\nif [ -n "$_ARGCOMPLETE" ] || [ "$1" = completion ]; then\n'
        f'exec {sys.executable} -m kohort "$@"\nfi\n'
        f'exec {sys.executable} {tmp_path / "called.py"} "$@"\n'
    )
    command.chmod(0o755)
    (tmp_path / "home").mkdir()
    source = str(Path(package.__file__).parents[1])
    path = os.environ.get("PYTHONPATH")
    return {
        "PATH": f"{command.parent}:{os.environ['PATH']}",
        "HOME": str(tmp_path / "home"),
        "PYTHONPATH": f"{source}{os.pathsep}{path}" if path else source,
        "KOHORT_BOOTSTRAP_SERVER": server,
        "TERM": "dumb",
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
    }


class Terminal:
    """A shell at a terminal of its own."""

    def __init__(self, argv, env, folder):
        self._number, other = pty.openpty()
        self._folder = folder
        self._process = subprocess.Popen(
            argv,
            env=env,
            cwd=folder,
            stdin=other,
            stdout=other,
            stderr=other,
            start_new_session=True,
        )
        os.close(other)
        self.seen = ""

    def type(self, text):
        os.write(self._number, text.encode())

    def wait(self, is_done, seconds=20):
        """Read what the shell shows until that is enough; fails where it is not in time."""
        end = time.monotonic() + seconds
        while not is_done():
            assert time.monotonic() < end, self.seen
            if select.select([self._number], [], [], 0.05)[0]:
                with suppress(OSError):
                    self.seen += os.read(self._number, 65536).decode(errors="replace")

    def close(self):
        self._process.kill()
        self._process.wait()
        os.close(self._number)


@contextmanager
def terminal(argv, env, folder):
    one = Terminal(argv, env, folder)
    try:
        yield one
    finally:
        one.close()


def completed(term, folder, typed):
    """What the command is called with when a TAB behind `typed` is followed by a return."""
    found = folder / "argv"
    found.unlink(missing_ok=True)
    term.type(f"kohort groups describe {typed}\t")
    time.sleep(0.2)  # return comes behind what TAB has put into the line: the shell waits for it
    term.type("\r")
    term.wait(lambda: found.exists() and found.read_text())
    return json.loads(found.read_text())[2:]


TYPED = {  # the beginning of a name as somebody quotes it
    PLAIN: "bil", "a b": "a", "it's": "it", 'q"x': "q", "x;y": "x", "$(touch pwned)": r"\$",
    "`touch pwned`": r"\`", "back\\slash": "bac", "bang!": "ban", "c:d:e": "c:d", "f=g": "f=",
    "{h,i}": r"\{", "é": "é", "%s": "%", "<in": r"\<", "[j]": r"\[",
}  # fmt: skip


@pytest.mark.timeout(180)
def test_bash_completes_every_name_as_one_word(shell, tmp_path):
    with terminal(["bash", "--norc", "--noprofile", "-i"], shell, tmp_path) as term:
        term.type("set +o history; eval \"$(kohort completion bash)\"; echo rea''dy\r")
        term.wait(lambda: "ready" in term.seen)
        for name, typed in TYPED.items():
            assert completed(term, tmp_path, typed) == [name]
        for name, typed in (("a b", '"a'), ("it's", '"it'), ("$(touch pwned)", "'$")):
            assert completed(term, tmp_path, typed) == [name]
    assert not (tmp_path / "pwned").exists()


def bash_offers(shell, folder, line):
    """What bash has in hand behind a TAB, without a terminal."""
    script = (
        'eval "$(kohort completion bash)"; compopt() { :; }; COMP_LINE=$1 COMP_POINT=${#1}; '
        '_python_argcomplete kohort; printf \'%s\\n\' "${COMPREPLY[@]}"; echo "$-"'
    )
    ran = subprocess.run(
        ["bash", "--norc", "-c", script, "bash", line],
        env=shell,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    *words, options = ran.stdout.splitlines()
    assert "f" not in options  # the shell's own settings are as they were
    return words


@pytest.mark.parametrize("quote", ["", "'"])
def test_bash_takes_no_name_for_a_pattern_of_files(shell, tmp_path, quote):
    """A group called `/proc/*/task/*/*/*` held the shell up for many seconds at a TAB."""
    (tmp_path / "files").mkdir()
    for name in ("one", "two"):
        (tmp_path / "files" / name).touch()
    patterns = [f"{tmp_path}/files/*", f"{tmp_path}/files/???"]
    with Broker(in_memory=True) as broker:
        broker.create_topic("orders")

        @asynchronous
        async def populate():
            async with AdminClient(broker.bootstrap) as admin:
                for group in (*patterns, "billing"):
                    (await admin.alter_group_offsets(group, {("orders", 0): 0})).all()

        populate()
        shell["KOHORT_BOOTSTRAP_SERVER"] = broker.bootstrap
        words = bash_offers(shell, tmp_path, f"kohort groups describe {quote}/")
        assert bash_offers(shell, tmp_path, "kohort groups describe bil") == ["billing"]
    assert len(words) == len(patterns)
    assert not any("one" in word or "two" in word for word in words)


@pytest.mark.timeout(180)
@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
def test_zsh_completes_every_name_as_one_word(shell, tmp_path):
    with terminal(["zsh", "-f", "-i"], shell, tmp_path) as term:
        term.type(
            'autoload -U compinit; compinit -u -D; eval "$(kohort completion zsh)"; '
            "echo rea''dy\r"
        )
        term.wait(lambda: "ready" in term.seen)
        for name, typed in TYPED.items():
            assert completed(term, tmp_path, typed) == [name]
    assert not (tmp_path / "pwned").exists()


@pytest.mark.timeout(180)
@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
def test_fish_is_offered_every_name(shell, tmp_path):
    ran = subprocess.run(
        ["fish", "-c", "kohort completion fish | source; complete -C 'kohort groups describe '"],
        env=shell,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert sorted(line.rstrip("\t") for line in ran.stdout.splitlines()) == sorted([PLAIN, *ODD])
    assert not (tmp_path / "pwned").exists()


def offered(shell, line, *, server=None):
    """What a TAB behind a line offers, and how long that takes."""
    home, begin = Path(shell["HOME"]), time.monotonic()
    environment = {
        **shell,
        "COMP_LINE": line,
        "COMP_POINT": str(len(line)),
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_IFS": "\n",
        "_ARGCOMPLETE_SHELL": "bash",
        "_ARGCOMPLETE_SUPPRESS_SPACE": "1",
        "_ARGCOMPLETE_STDOUT_FILENAME": str(home.parent / "answer"),
        **({"KOHORT_BOOTSTRAP_SERVER": server} if server else {}),
    }
    ran = subprocess.run(
        [sys.executable, "-m", "kohort"],
        env=environment,
        cwd=home,
        timeout=60,
        capture_output=True,
        check=False,
    )
    assert ran.stdout == b""
    words = (home.parent / "answer").read_text().split("\n")
    return words, time.monotonic() - begin


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("kohort gr", ["groups"]),
        ("kohort groups li", ["list"]),
        ("kohort groups list --only", ["--only-lagging"]),
        ("kohort groups list --sort m", ["members"]),
        ("kohort groups list --state stable,em", ["stable,empty"]),
        ("kohort groups list --state Em", ["Empty"]),
        ("kohort groups describe bil", [PLAIN]),
        ("kohort offsets clone bil", [PLAIN]),
        ("kohort consume ", ["orders"]),
        ("kohort offsets reset billing --topic o", ["orders"]),
        ("kohort topics create ", [""]),
        ("kohort brokers config ", ["0"]),
        ("kohort groups list --profile p", ["prod"]),
        ("kohort groups delete --from f", ["file.txt"]),
        ("kohort completion f", ["fish"]),
    ],
)
def test_offers_what_may_stand_there(shell, line, expected):
    home = Path(shell["HOME"])
    (home / "file.txt").touch()
    (home / "config.toml").write_text('[prod]\n"bootstrap.servers" = "elsewhere:9092"\n')
    shell["KOHORT_CONFIG"] = str(home / "config.toml")
    assert offered(shell, line)[0] == expected


def test_a_cluster_that_is_away_is_silent_and_not_waited_for(shell):
    with closing(
        socket.create_server(("127.0.0.1", 0))
    ) as mute:  # takes a connection, says nothing
        address = f"127.0.0.1:{mute.getsockname()[1]}"
        words, seconds = offered(shell, "kohort groups describe ", server=address)
    assert words == [""]
    assert seconds < 15  # of a whole process on a loaded machine; a client alone waits ten
    assert offered(shell, "kohort groups describe ", server="no address")[0] == [""]


def test_an_answer_is_kept_for_the_same_cluster_alone(shell, server):
    assert offered(shell, "kohort groups describe bil")[0] == [PLAIN]
    (file,) = (Path(shell["HOME"]) / ".cache/kohort/completion").iterdir()
    assert file.stat().st_mode & 0o777 == 0o600
    assert set(json.loads(file.read_text())) == {PLAIN, *ODD, *NEVER}
    file.write_text('["billing-of-the-cache"]')
    assert offered(shell, "kohort groups describe bil")[0] == ["billing-of-the-cache"]
    (Path(shell["HOME"]) / "empty").touch()
    again = "kohort groups describe --command-config empty bil"
    assert offered(shell, again)[0] == [PLAIN]


def test_names_that_are_no_word_for_a_shell_are_not_offered():
    assert all(map(is_offered, (PLAIN, *ODD)))
    assert not any(map(is_offered, NEVER))


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_prints_the_script_of_each_shell(kohort, name):
    ran = kohort("completion", name)
    assert (ran.code, ran.err) == (0, "")
    assert "_ARGCOMPLETE" in ran.out
    assert kohort("completion", "csh").code == 2
