# SPDX-License-Identifier: Apache-2.0
"""The two servers under one face: start, stop, address, process. What differs stays in here."""

import atexit
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.peers.kafka import VERSION, Kafka, answers, unavailable
from tests.ports import free_port

__all__ = [
    "VERSION",
    "KafkaServer",
    "KohortServer",
    "Server",
    "unavailable",
    "wait_until_answering",
]

# Members must outlive set-up and runs, on both sides alike; the interval is Kafka's default.
SHARED = {
    "group.consumer.session.timeout.ms": 1_800_000,
    "group.consumer.max.session.timeout.ms": 1_800_000,
    "group.consumer.assignment.interval.ms": 1000,
    "group.initial.rebalance.delay.ms": 0,
}
START_SECONDS = 120.0


class Server(Protocol):
    name: str
    port: int

    @property
    def pid(self) -> int: ...
    def launch(self) -> None: ...
    def stop(self) -> None: ...
    def close(self) -> None: ...


class KafkaServer(Kafka):
    """Apache Kafka, formatted; 1 GiB of heap as its start script gives it."""

    name = "kafka"

    def __init__(self, settings: Mapping[str, object], heap: str = "1G") -> None:
        super().__init__({**SHARED, **settings}, heap=heap)
        self.format()


class KohortServer:
    """`kohort serve` on a directory of its own, without fsync unless told (Kafka does none)."""

    name = "kohort"

    def __init__(self, settings: Mapping[str, object]) -> None:
        self.settings = {"log.sync": "none", **SHARED, **settings}
        self.directory = Path(tempfile.mkdtemp(prefix="kohort-bench-"))
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        if self.process is None:
            raise RuntimeError("kohort is not running, so it has no process id")
        return self.process.pid

    def launch(self) -> None:
        program = os.environ.get("KOHORT") or str(Path(sys.executable).with_name("kohort"))
        settings = [f"-X{name}={value}" for name, value in self.settings.items()]
        place = ["--data-dir", str(self.directory / "data")]
        if "listeners" not in self.settings:
            place += ["--listen", f"127.0.0.1:{self.port}"]
        with (self.directory / "broker.log").open("ab") as log:
            self.process = subprocess.Popen(
                [program, "serve", *place, *settings],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        atexit.register(self.close)

    def stop(self) -> None:
        process, self.process = self.process, None
        if process is None:
            return
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def close(self) -> None:
        atexit.unregister(self.close)
        self.stop()
        shutil.rmtree(self.directory, ignore_errors=True)

    def last_words(self) -> str:
        return (self.directory / "broker.log").read_text(errors="replace")[-1500:]


def wait_until_answering(server: Server) -> None:
    """Return when a first request was answered; both servers are asked every 2 ms."""
    end = time.monotonic() + START_SECONDS
    while not answers(server.port):
        process = server.process  # type: ignore[attr-defined]
        if process is None or process.poll() is not None or time.monotonic() > end:
            words = server.last_words()  # type: ignore[attr-defined]
            raise RuntimeError(f"{server.name} did not start: {words}")
        time.sleep(0.002)
