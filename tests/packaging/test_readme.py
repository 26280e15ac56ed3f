# SPDX-License-Identifier: Apache-2.0
"""What README and the guide of tests show is what happens: commands, their output, programs."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.testing.test_plugin import PLUGIN
from tests.waiting import SOON_S

from kohort.testing import Broker

ROOT = Path(__file__).parents[2]
USUAL = "127.0.0.1:9092"


def blocks(page, language):
    """The code of a page in one language, each with the heading that it stands under."""
    found, heading = [], ""
    parts = re.split(r"^```(\w*)\n(.*?)^```\n", page, flags=re.MULTILINE | re.DOTALL)
    for text, name, code in zip(parts[::3], parts[1::3], parts[2::3], strict=False):
        heading = re.findall(r"^#+ (.*)$", text, re.MULTILINE)[-1:] or [heading]
        heading = heading[0]
        if name == language:
            found.append((heading, code))
    return found


README = (ROOT / "README.md").read_text(encoding="utf-8")
GUIDES = {
    name: (ROOT / "docs" / name).read_text(encoding="utf-8")
    for name in ("testing.md", "groups.md", "transactions.md")
}


def run(broker, program, *argv, given=""):
    """In the environment of a user whose cluster is the broker's."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        [program, *argv],
        input=given,
        capture_output=True,
        text=True,
        timeout=SOON_S,
        check=False,
        env={**os.environ, "PATH": path, "KOHORT_BOOTSTRAP_SERVER": broker.bootstrap},
    )


def said_by(broker, command, expected):
    done = run(broker, "bash", "-c", command)
    assert (done.returncode, done.stderr) == (0, ""), command
    assert done.stdout.splitlines() == expected, command


def calls(code):
    """Each command of a console with the lines that it prints."""
    for part in re.split(r"^\$ ", code, flags=re.MULTILINE)[1:]:
        command, *lines = part.splitlines()
        yield command, lines


@pytest.mark.clients
def test_the_first_minute_is_as_it_is_told():
    minute = [code for heading, code in blocks(README, "console") if heading == "The first minute"]
    (consumer,) = [code for head, code in blocks(README, "python") if head == "The first minute"]
    (serve, ready), *first = calls(minute[0])
    assert serve == "kohort serve --in-memory &"
    assert ready == [f"kohort ready on {USUAL} (in memory)"]
    with Broker(in_memory=True) as broker:
        for command, lines in first:
            said_by(broker, command, lines)
        done = run(broker, sys.executable, "-c", consumer.replace(USUAL, broker.bootstrap))
        assert (done.returncode, done.stderr) == (0, "")
        rows = [line.split() for line in done.stdout.splitlines()]
        assert [(offset, value) for _, offset, value in rows] == [
            (str(one), str(one + 1)) for one in range(5)
        ]
        for command, lines in calls(minute[1]):
            said_by(broker, command, lines)


PROGRAMS = [
    *[(f"README: {head}", code) for head, code in blocks(README, "python") if head[:3] != "The"],
    *[
        (f"{name}: {head}", code)
        for name in GUIDES
        for head, code in blocks(GUIDES[name], "python")
    ],
]


@pytest.mark.parametrize(("where", "code"), PROGRAMS, ids=[where for where, _ in PROGRAMS])
def test_programs_run_as_they_stand(where, code, tmp_path):
    assert len(PROGRAMS) == 17
    with Broker(in_memory=True) as broker:
        program = tmp_path / "test_program.py"
        program.write_text(code.replace(USUAL, broker.bootstrap), encoding="utf-8")
        pytest_ = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:asyncio", *PLUGIN]
        pytest_ += ["-c", os.devnull]
        runner = pytest_ if "def test_orders" in code else []
        done = run(broker, sys.executable, *runner, str(program))
    by_unittest = re.fullmatch(r"-+\nRan 1 test in [\d.]+s\n\nOK\n", done.stderr)
    assert done.returncode == 0, where + done.stdout
    assert done.stderr == "" or by_unittest, where
