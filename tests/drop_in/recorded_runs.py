# SPDX-License-Identifier: Apache-2.0
"""Runs of the tools of Apache Kafka 4.3.1, as they were recorded, and ours with the same arguments.

What no two runs share is masked here, and nowhere else.
"""

import contextlib
import io
import json
import lzma
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from kohort.drop_in import consumer_groups, groups
from kohort.drop_in.running import JAVA_EXIT_CODES

DATA = Path(__file__).parents[1] / "data" / "cli" / "runs.jsonl.xz"
SERVER = "127.0.0.1:19592"
TOOLS = {"kafka-consumer-groups": consumer_groups.main, "kafka-groups": groups.main}
# A case of a later kind sees what those of an earlier kind have changed. Before the third kind time
# had passed: `recorded_cluster.let_time_pass`.
KINDS = (
    "list",
    "describe",
    "describe-x",
    "args",
    "validate-regex",
    "delete-offsets",
    "reset",
    "kafka-groups",
    "delete",
)
AT_THE_END = ("reset-all-groups", "delete-all-groups", "list-after-delete-all")

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
FRAMES = re.compile(r"\t(\.\.\. \d+ (frames|more)|at .*)\n")
_LOGGED = re.compile(r"^(WARN New offset |[-\dT:.]+Z .* (WARN|ERROR) ).*\n", re.MULTILINE)
_MEMBERS = re.compile(r"(?<=#PARTITIONS)[^\n]*\n(?:.+\n)+")
_RESET = re.compile(r"(?<=NEW-OFFSET\n)(?:.+\n)+")
USAGE = re.compile(
    r"(<usage>|This tool helps |Option {2,}Description|Option \(\* = required\)"
    r"|kohort-[a-z-]+: ).*\Z",
    re.DOTALL,
)
_SETS = re.compile(r"(?<=: \[)\[.*\](?=\]\n)|(?<=following options: )\[.*\]|(?<= are: ).*")
_REFUSED = re.compile(r"(?:\* Group .*\n)+")


class Run(NamedTuple):
    """What a run of a tool left behind."""

    exit: int
    stdout: str
    stderr: str


class Case(NamedTuple):
    """A recorded run."""

    name: str
    tool: str
    argv: tuple[str, ...]
    files: Mapping[str, str]
    recorded: Run


def cases() -> list[Case]:
    """All of them, in an order in which each finds what it found when it was recorded."""
    with lzma.open(DATA, "rt", encoding="utf-8") as lines:
        found = [_case(json.loads(line)) for line in lines]
    return sorted(found, key=lambda case: (_place(case.name), case.name))


def kind_of(name: str) -> str:
    return max((kind for kind in KINDS if name.startswith(kind)), key=len)


def _place(name: str) -> tuple[int, int]:
    if name == AT_THE_END[-1]:
        return len(KINDS), 0
    return KINDS.index(kind_of(name)), AT_THE_END.index(name) + 1 if name in AT_THE_END else 0


def _case(line: dict[str, Any]) -> Case:
    return Case(
        line["name"],
        line["tool"],
        tuple(line["argv"]),
        line.get("files", {}),
        Run(line["exit"], line["stdout"], line["stderr"]),
    )


def play(case: Case, server: str, *, java_exit_codes: bool = True) -> Run:
    """Run our tool in this process, in the folder that is current, as the recorded one was."""
    argv = prepare(case, server)
    argv += [JAVA_EXIT_CODES] if java_exit_codes else []
    return run(TOOLS[case.tool], argv)


def prepare(case: Case, server: str) -> list[str]:
    """Write the files of a case into the current folder; its arguments for this server."""
    for name, text in case.files.items():
        Path(name).write_text(text, encoding="utf-8")
    return [server if word == SERVER else word for word in case.argv]


def run(tool: Callable[[Sequence[str]], int], argv: Sequence[str]) -> Run:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = tool(argv)
    return Run(code, out.getvalue(), err.getvalue())


def masked(ran: Run, server: str = SERVER) -> Run:
    """The run without what no two runs share.

    The random part of member ids, the port of the broker, the number of frames of a trace, the text
    of the usage, the order of sets and groups that is another one in each run, and that of members,
    which is the broker's. What the tools log, too: they were recorded without a logger.
    """
    return Run(ran.exit, _masked(ran.stdout, server), _masked(ran.stderr, server))


def _masked(text: str, server: str) -> str:
    text = _LOGGED.sub("", _UUID.sub("UUID", text.replace(server, SERVER)))
    text = _SETS.sub(lambda found: ", ".join(sorted(found[0].split(", "))), text)
    text = _REFUSED.sub(lambda found: "".join(sorted(found[0].splitlines(keepends=True))), text)
    text = _MEMBERS.sub(_sorted_rows, text)
    text = _RESET.sub(_sorted_groups, text)
    return USAGE.sub("<usage>\n", FRAMES.sub("", text))


def _sorted_rows(found: re.Match[str]) -> str:
    head, *rows = found[0].splitlines(keepends=True)
    return "".join([head, *sorted(rows)])


def _sorted_groups(found: re.Match[str]) -> str:
    rows = found[0].splitlines(keepends=True)
    return "".join(sorted(rows, key=lambda row: row.split()[0]))


def differences(case: Case, ours: Run, server: str, theirs: Run | None = None) -> Iterator[str]:
    """Lines that show where a run is not as it was recorded, or not as the Java tool's on the same
    server.
    """
    there = masked(case.recorded) if theirs is None else masked(theirs, server)
    here = masked(ours, server)
    for what, expected, found in zip(Run._fields, there, here, strict=True):
        if expected != found:
            yield f"{case.name} {what}:\n--- Kafka\n{expected}\n--- ours\n{found}"
