# SPDX-License-Identifier: Apache-2.0
"""The Java client as a member of a group: VerifiableConsumer of Kafka's own jars, as a process.

It tells what happens to it as one JSON object a line. A test waits for a fact (`until`), never for
a time.
"""

from __future__ import annotations

import json
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

from tests.peers.kafka import run_tool, tool_command
from tests.peers.maven import PeerError

CONSUMER = "org.apache.kafka.tools.VerifiableConsumer"
PRODUCER_PROPERTIES = {
    # VerifiableProducer sends nothing again by default, and a new topic may lack a leader yet.
    "retries": 100,
}
PRODUCER = "org.apache.kafka.tools.VerifiableProducer"
TopicPartition = tuple[str, int]


class JavaConsumer:
    """One member of `group`, reading `topic` from the earliest record and committing as it goes.

    `protocol` is "classic" or "consumer". `properties` are lines of a client configuration. Facts
    kept while it runs: `assigned` (partitions it has now), `records` (topic, partition, offset,
    key, value; as read), `committed` (partition -> offset), `events` (all that it told).
    """

    def __init__(
        self,
        bootstrap: str,
        group: str,
        topic: str,
        *,
        protocol: str = "classic",
        properties: Mapping[str, object] | None = None,
        arguments: tuple[str, ...] = (),
    ) -> None:
        self.name = f"{protocol} Java consumer of group {group}"
        self.directory = tempfile.TemporaryDirectory(prefix="kohort-java-")
        config = Path(self.directory.name) / "client.properties"
        config.write_text(properties_text(properties or {}))
        self.complaints = Path(self.directory.name) / "stderr.txt"
        self.command = tool_command(
            CONSUMER,
            *("--bootstrap-server", bootstrap, "--group-id", group, "--topic", topic),
            *("--group-protocol", protocol, "--command-config", str(config), "--verbose"),
            *arguments,
        )
        self.events: list[dict[str, Any]] = []
        self.assigned: set[TopicPartition] = set()
        self.records: list[tuple[str, int, int, str | None, str | None]] = []
        self.committed: dict[TopicPartition, int] = {}
        self.changed = threading.Condition()
        self.ended = False
        self.process: subprocess.Popen[str] | None = None
        self.reader: threading.Thread | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        self.directory.cleanup()

    def start(self) -> None:
        with self.complaints.open("w") as complaints:
            self.process = subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=complaints,
                text=True,
            )
        self.reader = threading.Thread(target=self.read, args=(self.process,), daemon=True)
        self.reader.start()

    def read(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            if not line.startswith("{"):
                continue
            with self.changed:
                self.note(json.loads(line))
                self.changed.notify_all()
        with self.changed:
            self.ended = True
            self.changed.notify_all()

    def note(self, event: dict[str, Any]) -> None:
        self.events.append(event)
        match event["name"]:
            case "partitions_assigned":
                self.assigned |= partitions(event)
            case "partitions_revoked" | "partitions_lost":
                self.assigned -= partitions(event)
            case "record_data":
                place = (event["topic"], event["partition"], event["offset"])
                self.records.append((*place, event["key"], event["value"]))
            case "offsets_committed" if event["success"]:
                for entry in event["offsets"]:
                    self.committed[entry["topic"], entry["partition"]] = entry["offset"]

    def until(self, holds: Callable[[JavaConsumer], bool], seconds: float = 120.0) -> None:
        """Wait until `holds(self)`. Raises PeerError when it never does or the process ends."""
        with self.changed:
            met = self.changed.wait_for(lambda: holds(self) or self.ended, seconds)
            if met and holds(self):
                return
        told = [event["name"] for event in self.events[-8:]]
        fate = "ended" if self.ended else f"not so after {seconds:.0f} s"
        words = self.complaints.read_text(errors="replace")[-1000:]
        raise PeerError(
            f"{self.name} {fate}; it has {sorted(self.assigned)}, last told {told}: {words}"
        )

    def values(self) -> list[str | None]:
        """The values read, in order of reading."""
        with self.changed:
            return [record[4] for record in self.records]

    def leave(self, seconds: float = 120.0) -> None:
        """Close the consumer as an application does: commit, leave the group, end."""
        if self.process is not None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(seconds)
        self.join_reader()

    def kill(self) -> None:
        """A crash: the group learns of it when the session times out."""
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.join_reader()

    def join_reader(self) -> None:
        if self.reader is not None:
            self.reader.join(10)


def partitions(event: dict[str, Any]) -> set[TopicPartition]:
    return {(entry["topic"], entry["partition"]) for entry in event["partitions"]}


def produce(
    bootstrap: str,
    topic: str,
    count: int,
    *,
    seconds: float = 180.0,
    properties: Mapping[str, object] | None = None,
    per_second: int = -1,
) -> list[dict[str, Any]]:
    """Let the Java producer send the values "0" … to `topic`; what was acknowledged, and where.

    It sends as many a second as it is told, or as it can. Raises PeerError unless all of them were
    acknowledged, with what it told of the others.
    """
    with tempfile.TemporaryDirectory(prefix="kohort-java-") as directory:
        config = Path(directory) / "client.properties"
        config.write_text(properties_text(PRODUCER_PROPERTIES | dict(properties or {})))
        done = run_tool(
            PRODUCER,
            *("--bootstrap-server", bootstrap, "--topic", topic, "--max-messages", str(count)),
            *("--throughput", str(per_second), "--command-config", str(config)),
            seconds=seconds,
        )
    lines = done.stdout.splitlines()
    events = [json.loads(line) for line in lines if line.startswith("{")]
    sent = [event for event in events if event["name"] == "producer_send_success"]
    if len(sent) != count:
        others = [line for line in lines if "producer_send_success" not in line]
        raise PeerError(
            f"the Java producer sent {len(sent)} of {count}, and told {others[-8:]}: "
            f"{done.stderr[-800:]}"
        )
    return sent


def properties_text(properties: Mapping[str, object]) -> str:
    """A client's configuration file."""
    return "".join(f"{key}={value}\n" for key, value in properties.items())
