# SPDX-License-Identifier: Apache-2.0
"""A real Apache Kafka to compare with: one KRaft node on loopback, run from the released jars.

Maven brings the jars once, into the user's cache; the tree never holds them. A caller asks
`unavailable()` first and skips with its words where there is no Java, no Maven or no registry.
"""

from __future__ import annotations

import atexit
import functools
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from tests.peers import maven
from tests.peers.maven import PeerError
from tests.ports import free_ports

VERSION = "4.3.1"
OLDER = "3.9.1"  # the last release with ZooKeeper, and the first protocol of KIP-848 as a preview
LOG4J = "2.25.4"  # the version Kafka's own jars bring; the binding beside it must match
CLUSTER_ID = "Mum3idoTSZOW-6psC2Nhig"
RESOLVE_SECONDS = 400.0
START_SECONDS = 240.0

POM = """<?xml version="1.0" encoding="UTF-8"?>
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>kohort.peers</groupId><artifactId>kafka</artifactId><version>1</version>
  <packaging>pom</packaging>
  <dependencies>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId>
      <version>{version}</version></dependency>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka-tools</artifactId>
      <version>{version}</version></dependency>
    <dependency><groupId>org.apache.logging.log4j</groupId><artifactId>log4j-slf4j-impl</artifactId>
      <version>{log4j}</version></dependency>
  </dependencies>
</project>
"""

# What bin/kafka-server-start.sh gives a broker; the heap comes on top.
SERVER_FLAGS = (
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-Djava.awt.headless=true",
)
# A tool lives for a second: the first compiler and one collector thread start it sooner.
TOOL_FLAGS = ("-Xmx256M", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Djava.awt.headless=true")


@functools.cache
def class_path(version: str = VERSION) -> str:
    """Kafka's jars and what they need, as Java wants it; Maven brings what is missing."""
    pom = POM.format(version=version, log4j=LOG4J)
    return maven.kept_class_path(f"kafka-{version}", pom, f"Kafka {version}", RESOLVE_SECONDS)


@functools.cache
def unavailable(version: str = VERSION) -> str | None:
    """Why there is no real Kafka here, in words fit for a skip; None when there is one."""
    return maven.why_not(functools.partial(class_path, version), "java")


def tool_command(main: str, *arguments: str, version: str = VERSION) -> list[str]:
    """The command line that runs a class of Kafka's jars."""
    return ["java", *TOOL_FLAGS, "-cp", class_path(version), main, *arguments]


def run_tool(
    main: str,
    *arguments: str,
    given: str | None = None,
    seconds: float = 120.0,
    version: str = VERSION,
) -> subprocess.CompletedProcess[str]:
    """Run a tool to its end, `given` on its standard input. Raises TimeoutExpired."""
    return subprocess.run(
        tool_command(main, *arguments, version=version),
        input=given or "",
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )


def dump_log(*files: Path | str, seconds: float = 120.0) -> subprocess.CompletedProcess[str]:
    """Kafka's reading of log segments: every batch and record, coordinator records decoded."""
    return run_tool(
        "org.apache.kafka.tools.DumpLogSegments",
        "--deep-iteration",
        "--offsets-decoder",
        "--files",
        ",".join(map(str, files)),
        seconds=seconds,
    )


class Kafka:
    """One node, broker and controller; `with Kafka({...}) as broker:` starts it and ends it.

    `settings` are lines of server.properties that replace the ones of `properties`. Classes in the
    folder `ahead` take the place of Kafka's own. A directory that is given is kept and may already
    hold a formatted log; otherwise a temporary one goes with the broker.
    """

    def __init__(
        self,
        settings: Mapping[str, object] | None = None,
        *,
        heap: str = "1G",
        directory: Path | None = None,
        flags: Sequence[str] = (),
        ahead: Path | None = None,
        version: str = VERSION,
    ) -> None:
        self.settings = dict(settings or {})
        self.heap = heap
        self.flags = tuple(flags)
        self.ahead = ahead
        self.version = version
        self.keeps_directory = directory is not None
        self.directory = directory or Path(tempfile.mkdtemp(prefix="kohort-kafka-"))
        self.port, self.controller_port = free_ports(2)
        self.process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        try:
            self.format()
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        if self.process is None:
            raise PeerError("Kafka is not running, so it has no process id")
        return self.process.pid

    @property
    def data(self) -> Path:
        """The folder with one folder per partition, as `log.dirs` names it."""
        return self.directory / "data"

    @property
    def log(self) -> Path:
        return self.directory / "broker.log"

    def properties(self) -> dict[str, object]:
        """Kafka's defaults but for what a single node needs."""
        return {
            "process.roles": "broker,controller",
            "node.id": 1,
            "controller.quorum.voters": f"1@127.0.0.1:{self.controller_port}",
            "listeners": f"PLAINTEXT://{self.address},CONTROLLER://127.0.0.1:{self.controller_port}",
            "advertised.listeners": f"PLAINTEXT://{self.address}",
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "PLAINTEXT",
            "log.dirs": self.data,
            "offsets.topic.replication.factor": 1,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
            "share.coordinator.state.topic.replication.factor": 1,
            "share.coordinator.state.topic.min.isr": 1,
            "group.initial.rebalance.delay.ms": 0,
            **self.settings,
        }

    def format(self) -> None:
        """Give the directory its cluster and feature levels; one that has them is left alone."""
        self.data.mkdir(parents=True, exist_ok=True)
        lines = "".join(f"{name}={value}\n" for name, value in self.properties().items())
        (self.directory / "server.properties").write_text(lines)
        if (self.data / "meta.properties").exists():
            return
        config = str(self.directory / "server.properties")
        done = run_tool(
            *("kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", config),
            version=self.version,
        )
        if done.returncode != 0:
            raise PeerError(f"StorageTool could not format {self.data}: {done.stderr[:600]}")

    def launch(self) -> None:
        """Start the process and return at once: what measures the start waits by itself."""
        if self.process is not None:
            raise PeerError(f"Kafka already runs as process {self.process.pid}")
        command = ["java", f"-Xms{self.heap}", f"-Xmx{self.heap}", *SERVER_FLAGS, *self.flags]
        config = str(self.directory / "server.properties")
        jars = class_path(self.version)
        classes = f"{self.ahead}:{jars}" if self.ahead else jars
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(
                [*command, "-cp", classes, "kafka.Kafka", config],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=self.directory,
            )
        atexit.register(self.kill)

    def start(self) -> None:
        """Start, and return when a first request has been answered and every listener is open."""
        self.launch()
        self.wait_until_answering()

    def wait_until_answering(self, seconds: float = START_SECONDS) -> None:
        end = time.monotonic() + seconds
        while not (answers(self.port) and all(map(listens, self.ports()))):
            if self.process is None or self.process.poll() is not None:
                raise PeerError(f"Kafka ended before it answered: {self.last_words()}")
            if time.monotonic() > end:
                raise PeerError(f"Kafka did not answer in {seconds:.0f} s: {self.last_words()}")
            time.sleep(0.01)

    def ports(self) -> list[int]:
        """The port of every listener: Kafka opens one after the other."""
        listeners = str(self.properties()["listeners"]).split(",")
        return [int(listener.rpartition(":")[2]) for listener in listeners]

    def last_words(self) -> str:
        return self.log.read_text(errors="replace")[-1500:] if self.log.exists() else ""

    def stop(self, seconds: float = 120.0) -> None:
        """A clean stop (SIGTERM); its log is closed as Kafka closes it."""
        self.end(signal.SIGTERM, seconds)

    def kill(self) -> None:
        """A crash (SIGKILL): indexes stay preallocated, no clean-shutdown marker is written.

        The next start takes as long as `broker.session.timeout.ms` (9 s): until then the controller
        believes that the old process still lives.
        """
        self.end(signal.SIGKILL, 30.0)

    def end(self, how: signal.Signals, seconds: float) -> None:
        process, self.process = self.process, None
        atexit.unregister(self.kill)
        if process is None:
            return
        process.send_signal(how)
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def restart(self) -> None:
        """The same directory and port, after a clean stop; changed `settings` take effect."""
        self.stop()
        self.format()
        self.start()

    def close(self) -> None:
        """End the process and take away the directory unless the caller owns it."""
        self.kill()
        if not self.keeps_directory:
            shutil.rmtree(self.directory, ignore_errors=True)

    def tool(
        self, main: str, *arguments: str, given: str | None = None, seconds: float = 120.0
    ) -> subprocess.CompletedProcess[str]:
        """Run one of Kafka's tools against this broker."""
        return run_tool(
            *(main, "--bootstrap-server", self.address, *arguments),
            given=given,
            seconds=seconds,
            version=self.version,
        )


API_VERSIONS = struct.pack(">ihhih", 10, 18, 0, 1, -1)


def answers(port: int) -> bool:
    """Whether a broker on this port of loopback answers an ApiVersions request right now."""
    try:
        with socket.create_connection(("127.0.0.1", port), 5.0) as connection:
            connection.sendall(API_VERSIONS)
            return len(connection.recv(8, socket.MSG_WAITALL)) == 8
    except OSError:
        return False


def listens(port: int) -> bool:
    """Whether somebody on this port of loopback takes a connection right now."""
    try:
        socket.create_connection(("127.0.0.1", port), 5.0).close()
    except OSError:
        return False
    return True
