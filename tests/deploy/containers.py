# SPDX-License-Identifier: Apache-2.0
"""What the tests of images need: instructions of a Containerfile, an engine, a broker's process."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.deploy.command_lines import DEPLOY
from tests.waiting import SOON_S, eventually


class Instruction(NamedTuple):
    """A line of a Containerfile: `RUN`, and what stands behind it."""

    word: str
    rest: str


def stages() -> list[list[Instruction]]:
    """The instructions of each stage of the Containerfile; a stage begins with its FROM. What
    stands before the first FROM is the first element.
    """
    text = (DEPLOY / "Containerfile").read_text(encoding="utf-8")
    text = re.sub(r"^#.*\n", "", text, flags=re.MULTILINE).replace("\\\n", " ")
    found: list[list[Instruction]] = [[]]
    for line in filter(None, map(str.strip, text.splitlines())):
        word, _, rest = line.partition(" ")
        if word == "FROM":
            found.append([])
        found[-1].append(Instruction(word, " ".join(rest.split())))
    return found


def the(stage: Sequence[Instruction], word: str) -> str:
    """What stands behind the one instruction of this word."""
    (rest,) = [one.rest for one in stage if one.word == word]
    return rest


def engine() -> tuple[str, str]:
    """The program that runs containers here, or why there is none."""
    reasons = []
    for name in ("docker", "podman"):
        if shutil.which(name) is None:
            reasons.append(f"{name} is not on this machine")
            continue
        done = subprocess.run(
            [name, "info"], capture_output=True, text=True, timeout=SOON_S, check=False
        )
        if done.returncode == 0 and "Cannot connect" not in done.stdout + done.stderr:
            return name, ""
        reasons.append(f"{name} has no service to talk to")
    return "", ", ".join(reasons)


def environment(settings: Mapping[str, str]) -> dict[str, str]:
    """The environment of a command in a container: nothing of Kohort but these settings."""
    kept = {name: text for name, text in os.environ.items() if not name.startswith("KOHORT_")}
    return kept | dict(settings)


def kohort(
    *words: str, cwd: Path, settings: Mapping[str, str]
) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "kohort", *words],
        cwd=cwd,
        env=environment(settings),
        capture_output=True,
        text=True,
        timeout=SOON_S,
        check=False,
    )


@contextmanager
def healthy(
    words: Sequence[str], health: Sequence[str], *, cwd: Path, settings: Mapping[str, str]
) -> Iterator["subprocess.Popen[bytes]"]:
    """A command of an image as a process, once its health check succeeds; killed at the end."""
    with (cwd / "output").open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "kohort", *words],
            cwd=cwd,
            env=environment(settings),
            stdout=output,
            stderr=output,
        )
    try:
        eventually(
            lambda: (
                process.poll() is not None
                or kohort(*health, cwd=cwd, settings=settings).returncode == 0
            ),
            f"the health check succeeds: {' '.join(health)}",
        )
        assert process.poll() is None, (cwd / "output").read_text()
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(SOON_S)
