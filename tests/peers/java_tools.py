# SPDX-License-Identifier: Apache-2.0
"""Kafka's command line tools in one JVM: a run takes as long as its work, not a start of Java."""

from __future__ import annotations

import base64
import functools
import subprocess
from pathlib import Path
from typing import NamedTuple, Self
from urllib.parse import quote

from tests.peers import maven
from tests.peers.kafka import TOOL_FLAGS, class_path
from tests.peers.maven import PeerError

SOURCE = Path(__file__).with_name("Tools.java")


@functools.cache
def unavailable() -> str | None:
    """Why there are no such tools here, in words fit for a skip; None when there are."""
    return maven.why_not(class_path, "java", "javac")


class ToolRun(NamedTuple):
    """What a run of a tool left behind."""

    exit: int
    stdout: str
    stderr: str


class JavaTools:
    """`with JavaTools(directory) as tools:` runs them in this directory until the block ends."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        classes = self.directory / "classes"
        jars = class_path()
        compiling = ["javac", "-cp", jars, "-d", str(classes), str(SOURCE)]
        done = subprocess.run(compiling, capture_output=True, text=True, timeout=120, check=False)
        if done.returncode:
            raise PeerError(f"{SOURCE.name} does not compile: {done.stderr[-800:]}")
        self.process = subprocess.Popen(
            ["java", *TOOL_FLAGS, "-cp", f"{classes}:{jars}", "Tools"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=self.directory,
            text=True,
            encoding="utf-8",
        )
        return self

    def __exit__(self, *_: object) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def run(self, main: str, *arguments: str) -> ToolRun:
        """Run the class `main` to its end. Raises PeerError where the JVM has died."""
        process = self.process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(" ".join(quote(word, safe="") for word in (main, *arguments)) + "\n")
        process.stdin.flush()
        code, out, err = (process.stdout.readline() for _ in range(3))
        if not err:
            raise PeerError(f"the JVM of the tools has ended at {main} {' '.join(arguments)}")
        return ToolRun(int(code), _text(out), _text(err))


def _text(line: str) -> str:
    return base64.b64decode(line).decode()
