# SPDX-License-Identifier: Apache-2.0
"""A real HDFS on loopback: Hadoop's own name node and data node, in one process of Java.

Maven brings the jars once, into the user's cache. A caller asks `unavailable()` first and skips
with its words where there is no Java, no Maven or no registry.
"""

import functools
import subprocess
from pathlib import Path

from tests.peers import maven
from tests.peers.kafka import TOOL_FLAGS
from tests.peers.maven import PeerError

VERSION = "3.5.0"
RESOLVE_SECONDS = 400.0
END_SECONDS = 60.0
_POM = f"""<?xml version="1.0" encoding="UTF-8"?>
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>kohort.peers</groupId><artifactId>hdfs</artifactId><version>1</version>
  <packaging>pom</packaging>
  <dependencies>
    <dependency><groupId>org.apache.hadoop</groupId><artifactId>hadoop-client-minicluster</artifactId>
      <version>{VERSION}</version></dependency>
  </dependencies>
</project>
"""


@functools.cache
def class_path() -> str:
    """Hadoop's jars and what they need. Raises PeerError."""
    return maven.kept_class_path(f"hdfs-{VERSION}", _POM, f"HDFS {VERSION}", RESOLVE_SECONDS)


@functools.cache
def unavailable() -> str | None:
    """Why there is no HDFS here, in words fit for a skip; None when there is one."""
    return maven.why_not(class_path, "java", "javac")  # the program is started from its source


class MiniHdfs:
    """One that runs; it ends with its input, so also with this process."""

    def __init__(self, directory: Path) -> None:
        source = Path(__file__).with_name("MiniHdfs.java")
        command = ["java", *TOOL_FLAGS, "-cp", class_path(), str(source), str(directory / "data")]
        self._complaints = directory / "complaints.txt"
        with self._complaints.open("wb") as complaints:
            self._process = subprocess.Popen(
                command,
                cwd=directory,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=complaints,
            )
        self.port = self._ready()

    def _ready(self) -> int:
        for line in self._process.stdout:
            if line.startswith(b"ready "):
                return int(line.split()[1])
        raise PeerError(f"HDFS has ended: {self._complaints.read_text(errors='replace')[-2000:]}")

    @property
    def lives(self) -> bool:
        return self._process.poll() is None

    def close(self) -> None:
        self._process.stdin.close()
        self._process.wait(END_SECONDS)
        self._process.stdout.close()
