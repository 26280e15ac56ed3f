# SPDX-License-Identifier: Apache-2.0
"""The command line as a whole: what it knows, what it imports, how it refuses."""

import gc
import io
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from kohort.cli.arguments import moment
from kohort.cli.command import Command, result_of
from kohort.cli.main import ELSEWHERE, WORDS, command_of, commands_of, parser
from kohort.cli.positions import begin, time_ms, until
from kohort.native.choice import CODEC
from kohort.testing import Broker

DOCS = Path(__file__).parents[2] / "docs"


def paths(words, commands):
    """The words of each command, of those behind a noun of a noun too."""
    for verb, command in commands.items():
        if isinstance(command, Command):
            yield (*words, verb)
        else:
            yield from paths((*words, verb), command)


COMMANDS = [
    *[(word,) for word, (_, is_noun) in WORDS.items() if not is_noun],
    *[
        path
        for word, (_, is_noun) in WORDS.items()
        if is_noun
        for path in paths((word,), commands_of(word))
    ],
]
WITHOUT_JSON = {  # they make something, and say in a line what
    ("serve",),
    ("completion",),
    ("produce",),
    ("consume",),  # a document in each line
    ("groups", "watch"),  # a line for each event
    ("offsets", "export"),  # lines for `offsets import`
    ("pipeline", "run"),
    ("pipeline", "report"),
    ("pipeline", "rebuild"),
    ("pipeline", "export"),
    ("pipeline", "snapshot"),
    ("pipeline", "warm"),
}
_ASKING = (
    *("acls", "brokers", "groups", "offsets", "topics", "users", "produce", "consume", "doctor"),
)
CLIENTS = {one for one in COMMANDS if one[0] in _ASKING}
HEAVY = (
    *("argcomplete", "asyncio", "msgspec", "pyarrow", "pyspark", "rich"),
    *("kohort.wire", "kohort.client", "kohort.server"),
)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_is_documented_and_speaks_json(kohort, command):
    text = (DOCS / "cli.md").read_text(encoding="utf-8")
    section = re.search(
        rf"^## `kohort {' '.join(command)}[^\n]*\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL
    )
    assert section, f"docs/cli.md has no section for kohort {' '.join(command)}"

    shown = kohort(*command, "--help")
    assert shown.code == 0
    options = set(re.findall(r"--[a-z-]+", shown.out)) - {"--help"}
    if command not in WITHOUT_JSON:
        assert re.search(r"\{table,json[,}]", shown.out)
        options.discard("--format")
    if command in CLIENTS:  # their common options stand once, at the top of the page
        options -= {"--bootstrap-server", "--command-config", "--profile", "--timeout"}
    for option in options:
        assert option in section[1], f"docs/cli.md does not say what {option} does"


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_no_command_knows_zookeeper(kohort, command):
    """K40-25, K229-22."""
    assert "zookeeper" not in kohort(*command, "--help").out.lower()


def test_what_is_deleted_and_who_may_is_documented():
    """K229-23."""
    text = (DOCS / "cli.md").read_text(encoding="utf-8")
    section = text.partition("## `kohort groups delete")[2].partition("\n## ")[0]
    assert "A group must be Empty" in section
    assert "you need Delete on the group" in section


def test_the_list_of_commands_says_of_each_what_it_says_itself():
    for word, (text, is_noun) in WORDS.items():
        assert is_noun or command_of(word).help == text


@pytest.mark.parametrize("argv", [["--help"], ["--version"], ["groups", "list", "--help"]])
def test_help_imports_nothing_heavy(argv):
    program = (
        "import sys; from kohort.cli.main import main\n"
        f"try: main({argv!r})\n"
        f"finally: print([one for one in {HEAVY!r} if one in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.stdout.splitlines()[-1] == "[]"


def test_importing_the_package_imports_nothing_heavy():
    program = f"import sys, kohort; print([one for one in {HEAVY!r} if one in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("program", [["-m", "kohort"], ["-m", "kohort.cli.main"]])
def test_it_runs_as_a_module(program):
    done = subprocess.run(
        [sys.executable, *program, "--version"], capture_output=True, text=True, check=True
    )
    assert re.fullmatch(rf"kohort \d+\.\d+\.\d+\S*, codec: {CODEC}\n", done.stdout)


@pytest.mark.parametrize(
    ("before", "word"), [(before, word) for before, words in ELSEWHERE.items() for word in words]
)
def test_a_word_of_another_tool_says_what_to_call_here(kohort, before, word):
    ran = kohort(*before.split()[1:], word, "billing")
    assert (ran.code, ran.out) == (2, "")
    (line,) = ran.complaints
    assert f"there is no {word!r}: {ELSEWHERE[before][word]}" in line
    named = re.search(r"kohort [a-z]+( [a-z]+)?", ELSEWHERE[before][word])
    if named:  # such a command exists
        assert kohort(*named[0].split()[1:], "--help").code == 0


@pytest.mark.parametrize(
    ("call", "meant"),
    [
        ("groups describe --group billing", "kohort groups describe GROUP, without --group?"),
        ("groups delete --group billing", "kohort groups delete GROUP, without --group?"),
        ("offsets reset --group=a --to-latest b", "kohort offsets reset GROUP, without --group?"),
        ("topics describe --topic orders", "kohort topics describe NAME, without --topic?"),
        ("consume --topic orders", "kohort consume TOPIC[:PARTITIONS], without --topic?"),
        ("produce --topic=orders x", "kohort produce TOPIC, without --topic?"),
        ("users create --user alice x", "kohort users create USER, without --user?"),
        ("groups describe --totls billing", "--totals?"),
    ],
)
def test_an_option_of_other_tools_for_what_is_named_without_one_says_so(kohort, call, meant):
    ran = kohort(*call.split())
    assert (ran.code, ran.out) == (2, "")
    (line,) = ran.complaints
    assert f"; did you mean {meant}" in line


def options_of_times():
    types = (moment, begin, until, time_ms)
    for path in COMMANDS:
        found = parser(path)
        for word in path:
            (inner,) = (one for one in found._actions if word in (one.choices or ()))
            found = inner.choices[word]
        for action in found._actions:
            if action.type in types:
                yield " ".join(path), action.option_strings[0], action.help


def test_every_option_that_takes_a_time_names_its_zone():
    """Two operators in two zones mean the same moment, or know that they do not."""
    found = list(options_of_times())
    assert len(found) >= 7
    assert [one for one in found if "in UTC where it names no zone" not in one[2]] == []


@pytest.mark.parametrize(
    ("command", "zone"),
    [
        ("pipeline show", "Times are in UTC"),
        ("pipeline sql", "Times are in UTC"),
        ("groups watch", "of this machine's time zone"),
    ],
)
def test_what_prints_times_of_day_names_their_zone(kohort, command, zone):
    assert zone in " ".join(kohort(*command.split(), "--help").out.split())


@pytest.mark.parametrize("argv", [[], ["groups"], ["inspect"]])
def test_without_a_command_there_is_help_and_code_2(kohort, argv):
    """It is for eyes, so it is no output: a script that pipes it on gets nothing."""
    ran = kohort(*argv)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == kohort(*argv, "--help").out
    assert " ".join(["usage: kohort", *argv]) in ran.err


@pytest.mark.parametrize("command", [(), *COMMANDS], ids=" ".join)
def test_the_examples_of_a_command_can_be_called(kohort, command):
    shown = kohort(*command, "--help").out
    _, found, examples = shown.partition("examples:\n")
    assert found
    for line in examples.splitlines():
        (call,) = [one for one in line.split("|") if one.strip().startswith("kohort ")]
        argv = shlex.split(re.split(" [<>] ", call)[0])[1:]
        args = parser().parse_args(argv)
        assert args.command is not None
        assert not command or tuple(argv[: len(command)]) == command


def test_a_reader_that_has_seen_enough_is_no_error():
    """`kohort … | head` closes the pipe."""
    program = (
        "import sys; from argparse import Namespace\n"
        "from kohort.cli.cluster_commands import AdminCommand\n"
        "class Shouting(AdminCommand):\n"
        "    async def ask(self, admin, args, output): pass\n"
        "    def show(self, answer, args, output):\n"
        "        [output.line('x' * 1000) for _ in range(1000)]; return 0\n"
        "args = Namespace(bootstrap_server='h:1', timeout=1.0, format='table')\n"
        "sys.exit(Shouting().main(args))"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_full_disk_is_told_in_a_line():
    """Of the file that stdout is."""
    with Path("/dev/full").open("w") as full:
        ran = subprocess.run(
            [sys.executable, "-m", "kohort", "inspect", "codec", "OffsetCommitRequest", "8"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    expected = "kohort: cannot write to stdout: No space left on device\n"
    assert (ran.returncode, ran.stderr) == (1, expected)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize(
    ("argv", "code", "lines"),
    [
        (
            ("offsets", "reset", "--yes", "billing", "--to-earliest"),
            1,
            ["setting offsets of group billing is done all the same"],
        ),
        (
            ("groups", "delete", "--yes", "billing", "away"),
            1,
            ["Group away", "deleting 2 groups is done all the same, but for what is named"],
        ),
        (("topics", "create", "new"), 1, ["creating 1 topic is done all the same"]),
        (("topics", "list"), 1, ["No space left on device"]),
    ],
)
@pytest.mark.parametrize("unbuffered", ["", "1"])  # found by the first row, or at the end
def test_a_full_disk_does_not_hide_what_was_done(argv, code, lines, unbuffered):
    """The offsets were set, and the line sounded as if nothing had been."""
    with Broker(in_memory=True) as broker, Path("/dev/full").open("w") as full:
        broker.create_topic("orders")
        broker.groups["billing"].commit("orders", 0)
        ran = subprocess.run(
            [sys.executable, "-m", "kohort", *argv, "--bootstrap-server", broker.bootstrap],
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    *others, last = ran.stderr.splitlines()
    assert (ran.returncode, len(others) + 1) == (code, len(lines))
    assert last.startswith("kohort: cannot write to stdout: No space left on device")
    assert all(part in line for part, line in zip(lines, (*others, last), strict=True))
    assert last.endswith(lines[-1])


@pytest.mark.parametrize("closed", ["<&-", ">&-", "<&- >&- 2>&-"])
def test_a_stream_that_is_closed_is_one_that_nobody_reads(closed):
    """As some supervisors start programs. It is asked whether it is a terminal, and is None."""
    command = f"{shlex.quote(sys.executable)} -m kohort groups delete g --yes {closed}"
    ran = subprocess.run(
        ["sh", "-c", f"{command} --bootstrap-server 127.0.0.1:1"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    told = "kohort: cannot connect to 127.0.0.1:1: refused\n" if "2>" not in closed else ""
    assert (ran.returncode, ran.stdout, ran.stderr) == (1, "", told)


def test_a_name_that_is_no_text_is_refused(kohort):
    """The shell hands bytes on; a name on the wire is text."""
    for command in (("groups", "describe"), ("groups", "delete"), ("topics", "create")):
        ran = kohort(*command, b"a\xff".decode("utf-8", "surrogateescape"))
        assert (ran.code, ran.out) == (2, "")
        (line,) = ran.complaints
        assert "is not text in UTF-8" in line
        (line,) = kohort(*command, "a" * 32_768).complaints
        assert "a name of 32,768 bytes is too long, expected 32,767 at most" in line
    (line,) = kohort("groups", "config", "g", "--set", "a=\udcff").complaints
    assert "is not text in UTF-8" in line


def text_options(command):
    """The options of a command that take a text."""
    whole = parser(command)
    for word in command:
        (choices,) = (one for one in whole._actions if one.choices and one.metavar == "COMMAND")
        whole = choices.choices[word]
    return [
        action.option_strings[0]
        for action in whole._actions
        if action.option_strings and action.nargs is None and not action.choices
    ]


@pytest.mark.parametrize("command", sorted(CLIENTS), ids=" ".join)
def test_no_text_that_is_none_ends_in_a_traceback(kohort, command, monkeypatch):
    """A byte that is not UTF-8, in every option and as the thing that is meant."""
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    where = ("--bootstrap-server", "127.0.0.1:1", "--timeout", "0.1")
    for option in text_options(command):
        for words in (["g"], ["g", "h"], []):
            ran = kohort(*command, *words, option, "\udcff", *where)
            assert ran.code in (1, 2), (option, ran)
            assert "Traceback" not in ran.err
    assert kohort(*command, "\udcff", *where).code in (1, 2)


def test_no_result_is_made_to_text_when_the_loop_ends():
    """As `asyncio.run` does by its handler of Ctrl-C, which is no constant of `signal`."""

    class Result:
        shown = 0

        def __repr__(self):
            self.shown += 1
            return "a result"

    result = Result()

    async def work():
        return result

    assert result_of(work()) is result
    assert not result.shown


def test_a_program_looks_for_cycles_seldom_and_not_at_its_end():
    program = (
        "import gc, sys\n"
        "from kohort.cli.command import run_program\n"
        "sys.argv[1:] = ['a', 'b']\n"
        "code = run_program(lambda argv: gc.get_threshold()[0] * len(argv))\n"
        "print(code, gc.get_freeze_count() > 1000)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["400000", "True"]


def test_a_command_in_a_process_that_goes_on_leaves_the_collector_as_it_was(kohort):
    usual = gc.get_threshold(), gc.get_freeze_count()
    assert kohort("inspect", "--help").code == 0
    assert (gc.get_threshold(), gc.get_freeze_count()) == usual


@pytest.mark.parametrize(
    ("program", "code"), [("kohort.cli.main", 2), ("kohort.drop_in.groups", 1)], ids=str
)
def test_a_codec_that_is_not_there_is_refused_in_one_line(program, code):
    done = subprocess.run(
        [sys.executable, "-m", program, "--version"],
        env={**os.environ, "KOHORT_CODEC": "rust"},
        capture_output=True,
        text=True,
        check=False,
    )
    (line,) = done.stderr.splitlines()
    assert line.endswith("KOHORT_CODEC is 'rust', expected python or native")
    assert (done.returncode, done.stdout) == (code, "")
