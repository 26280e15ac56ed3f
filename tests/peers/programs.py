# SPDX-License-Identifier: Apache-2.0
"""Java programs beside Kafka's tools: Connect workers, and a Streams application of our own."""

from __future__ import annotations

import functools
import subprocess
from pathlib import Path
from typing import Self

from tests.peers import maven
from tests.peers.kafka import LOG4J, RESOLVE_SECONDS, TOOL_FLAGS, VERSION
from tests.peers.maven import PeerError
from tests.waiting import eventually

JARS = ("kafka-streams", "connect-runtime", "connect-file")
STOP_SECONDS = 60.0


def _dependency(group: str, name: str, version: str) -> str:
    return (
        f"    <dependency><groupId>{group}</groupId><artifactId>{name}</artifactId>"
        f"<version>{version}</version></dependency>\n"
    )


POM = f"""<?xml version="1.0" encoding="UTF-8"?>
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>kohort.peers</groupId><artifactId>programs</artifactId><version>1</version>
  <packaging>pom</packaging>
  <dependencies>
{"".join(_dependency("org.apache.kafka", name, VERSION) for name in JARS)}\
{_dependency("org.apache.logging.log4j", "log4j-slf4j-impl", LOG4J)}\
  </dependencies>
</project>
"""


@functools.cache
def class_path() -> str:
    """The jars of Streams and Connect; Maven brings what is missing. Raises PeerError."""
    name = f"Streams and Connect {VERSION}"
    return maven.kept_class_path(f"programs-{VERSION}", POM, name, RESOLVE_SECONDS)


@functools.cache
def unavailable() -> str | None:
    """Why there are no such programs here, in words fit for a skip; None when there are."""
    return maven.why_not(class_path, "java", "javac")


def compiled(source: Path, directory: Path) -> str:
    """Compile a program; the class path that runs it. Raises PeerError."""
    command = ["javac", "-cp", class_path(), "-d", str(directory), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode:
        raise PeerError(f"{source.name} does not compile: {done.stderr[-800:]}")
    return f"{directory}:{class_path()}"


class Program:
    """A Java program as a process. What it prints, and complains, goes into one file."""

    def __init__(self, main: str, *arguments: str, classes: str, output: Path) -> None:
        self.main = main
        self.output = output
        self.command = ["java", *TOOL_FLAGS, "-cp", classes, main, *arguments]
        self.process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def start(self) -> None:
        with self.output.open("ab") as output:
            self.process = subprocess.Popen(
                self.command, stdin=subprocess.PIPE, stdout=output, stderr=output
            )

    def words(self) -> str:
        """All that it has said."""
        return self.output.read_text(errors="replace")

    def until_said(self, what: str) -> None:
        """Wait until it has said something. Fails when it ends before."""

        def said() -> bool:
            runs = self.is_running
            if what in self.words():
                return True
            assert runs, f"{self.main} has ended: {self.words()[-2000:]}"
            return False

        eventually(said, f"{self.main} says {what!r}")

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def end(self) -> None:
        """Have it end in order: a program of ours by its input, others by a signal."""
        assert self.process is not None
        assert self.process.stdin is not None
        if "." not in self.main:
            self.process.stdin.write(b"\n")
        self.process.stdin.close()
        if "." in self.main:
            self.process.terminate()
        self.process.wait(STOP_SECONDS)

    def kill(self) -> None:
        """A crash."""
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
