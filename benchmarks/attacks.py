# SPDX-License-Identifier: Apache-2.0
"""What one anonymous client can take from a broker, and from the others: memory, time, attention.

    python benchmarks/attacks.py [--only listing,find] [--serve PROGRAM]

Each attack meets a broker of its own. Meanwhile another client asks every 20 ms, from a process of
its own; its longest wait is told beside the broker's largest memory and its processor time.
"""

import argparse
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from processes import cpu_seconds, load_average
from wire_client import frame

from kohort.wire.batch import build
from kohort.wire.messages.api_versions import ApiVersionsRequest
from kohort.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kohort.wire.messages.describe_groups import DescribeGroupsRequest
from kohort.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kohort.wire.messages.find_coordinator import FindCoordinatorRequest
from kohort.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kohort.wire.messages.list_groups import ListGroupsRequest
from kohort.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kohort.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from kohort.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kohort.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

MEGABYTE = 1 << 20
ASK = frame(ApiVersionsRequest(client_software_name="a", client_software_version="1"), 3)

BYSTANDER = """
import json, socket, sys, time
port, ask = int(sys.argv[1]), bytes.fromhex(sys.argv[2])
longest = 0.0
print("ready", flush=True)
connection = socket.create_connection(("127.0.0.1", port), 120)
while True:
    begun = time.monotonic()
    connection.sendall(ask)
    missing = int.from_bytes(connection.recv(4, socket.MSG_WAITALL))
    while missing:
        missing -= len(connection.recv(missing))
    longest = max(longest, time.monotonic() - begun)
    print(json.dumps(longest), flush=True)
    time.sleep(0.02)
"""


class Broker:
    """`kohort serve` in memory, with the largest memory that it ever had."""

    def __init__(self, program: str) -> None:
        self.process = subprocess.Popen(
            [program, "serve", "--in-memory", "--listen", "127.0.0.1:0"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        line = self.process.stdout.readline()
        self.port = int(line.split()[3].rpartition(":")[2])

    def peak_mib(self) -> float:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) / 1024

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), 120)

    def ask(self, request: object, version: int, connection: socket.socket | None = None) -> bytes:
        """The answer to one request."""
        own = connection or self.connect()
        own.sendall(frame(request, version))
        size = int.from_bytes(own.recv(4, socket.MSG_WAITALL))
        answer = own.recv(size, socket.MSG_WAITALL)
        if connection is None:
            own.close()
        return answer

    def create(self, name: str, partitions: int = 1, **configs: str) -> None:
        topic = CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=1,
            assignments=[],
            configs=[
                CreatableTopicConfig(name=key.replace("_", "."), value=value)
                for key, value in configs.items()
            ],
        )
        self.ask(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 5)

    def stop(self) -> None:
        self.process.kill()
        self.process.wait(30)
        self.process.stdout.close()


@contextmanager
def bystander(port: int) -> Iterator[Callable[[], float]]:
    """Another client; asked at the end for its longest wait, that of an answer still out too."""
    process = subprocess.Popen(
        [sys.executable, "-c", BYSTANDER, str(port), ASK.hex()],
        stdout=subprocess.PIPE,
        text=True,
    )
    process.stdout.readline()

    def longest() -> float:
        time.sleep(0.3)
        os.set_blocking(process.stdout.fileno(), False)
        lines = (process.stdout.read() or "0").split()
        return float(json.loads(lines[-1]))

    try:
        yield longest
    finally:
        process.kill()
        process.wait(10)
        process.stdout.close()


def push(connection: socket.socket, data: bytes, seconds: float) -> int:
    """Send as much as the broker takes within a time; how much that was."""
    connection.setblocking(False)
    end = time.monotonic() + seconds
    sent = 0
    view = memoryview(data)
    while sent < len(data) and time.monotonic() < end:
        with suppress(BlockingIOError):
            sent += connection.send(view[sent : sent + MEGABYTE])
            continue
        time.sleep(0.01)
    return sent


def produce(topic: str, batch: bytes) -> ProduceRequest:
    data = [PartitionProduceData(index=0, records=batch)]
    return ProduceRequest(
        acks=-1, timeout_ms=5000, topic_data=[TopicProduceData(name=topic, partition_data=data)]
    )


def fetch(topic: str, *, wait_ms: int = 0, min_bytes: int = 1) -> FetchRequest:
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 30)
    return FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=min_bytes,
        max_bytes=1 << 30,
        topics=[FetchTopic(topic=topic, partitions=[partition])],
    )


def join(group: str, metadata: bytes = b"") -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=group,
        session_timeout_ms=30_000,
        rebalance_timeout_ms=60_000,
        member_id="",
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=metadata)],
    )


def commit(group: str) -> OffsetCommitRequest:
    place = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    return OffsetCommitRequest(
        group_id=group, topics=[OffsetCommitRequestTopic(name="t", partitions=[place])]
    )


def groups(broker: Broker, count: int, name: str = "group-{}") -> None:
    broker.create("t")
    with broker.connect() as connection:
        for number in range(count):
            broker.ask(commit(name.format(number)), 8, connection)


# Each attack prepares a broker, and then does its worst.


def behind_a_wait(broker: Broker) -> Callable[[], object]:
    broker.create("t")

    def attack() -> object:
        connection = broker.connect()
        connection.sendall(frame(fetch("t", wait_ms=60_000, min_bytes=1000), 12))
        large = (50 * MEGABYTE).to_bytes(4) + bytes(50 * MEGABYTE)
        for _ in range(60):
            if push(connection, large, 1) < len(large):
                break
        return connection

    return attack


def unfinished(broker: Broker) -> Callable[[], object]:
    def attack() -> object:
        connections = [broker.connect() for _ in range(30)]
        part = (100 * MEGABYTE).to_bytes(4) + bytes(99 * MEGABYTE)
        for connection in connections:
            push(connection, part, 0.5)
        return connections

    return attack


def unread_lists(count: int, connections: int, pipelined: int) -> Callable[[Broker], Callable]:
    def prepare(broker: Broker) -> Callable[[], object]:
        groups(broker, count)

        def attack() -> object:
            open_ = [broker.connect() for _ in range(connections)]
            for one in open_:
                push(one, frame(ListGroupsRequest(), 4) * pipelined, 0.5)
            time.sleep(8)
            return open_

        return attack

    return prepare


def one_request(request: object, version: int) -> Callable[[Broker], Callable[[], object]]:
    def prepare(broker: Broker) -> Callable[[], object]:
        broker.create("t")

        def attack() -> object:
            connection = broker.connect()
            with suppress(OSError):
                connection.sendall(frame(request, version))
                connection.recv(1)
            return connection

        return attack

    return prepare


def unread_fetches(broker: Broker) -> Callable[[], object]:
    broker.create("t", max_message_bytes="2000000")
    with broker.connect() as connection:
        for _ in range(60):
            batch = build([(None, bytes(MEGABYTE))], int(time.time() * 1000))
            broker.ask(produce("t", batch), 9, connection)

    def attack() -> object:
        connections = [broker.connect() for _ in range(40)]
        for connection in connections:
            connection.sendall(frame(fetch("t"), 12))
        time.sleep(6)
        return connections

    return attack


def large_members(broker: Broker) -> Callable[[], object]:
    def attack() -> object:
        connections = []
        for _ in range(12):
            connection = broker.connect()
            with suppress(OSError):
                push(connection, frame(join("g", bytes(20 * MEGABYTE)), 3), 10)
            connections.append(connection)
        time.sleep(5)
        return connections

    return attack


def many_groups(broker: Broker) -> Callable[[], object]:
    def attack() -> object:
        connection = broker.connect()
        for number in range(50_000):
            broker.ask(join(f"g{number}"), 4, connection)
        return connection

    return attack


def long_names(broker: Broker) -> Callable[[], object]:
    def attack() -> object:
        groups(broker, 2000, "{:05d}" + "x" * 30_000)

    return attack


def bomb(broker: Broker) -> Callable[[], object]:
    """A batch that unfolds to 120 MiB, and questions about times that need it unfolded."""
    broker.create("t")
    now = int(time.time() * 1000)
    batch = build([(None, bytes(120 * MEGABYTE))], now, compression=4)
    broker.ask(produce("t", batch), 9)

    def attack() -> object:
        connection = broker.connect()
        partition = ListOffsetsPartition(partition_index=0, timestamp=now - 1)
        request = ListOffsetsRequest(topics=[ListOffsetsTopic(name="t", partitions=[partition])])
        for _ in range(20):
            broker.ask(request, 5, connection)
        return connection

    return attack


def tiny_records(broker: Broker) -> Callable[[], object]:
    broker.create("t", cleanup_policy="compact")

    def attack() -> object:
        batch = build([(b"k", b"")] * 900_000, int(time.time() * 1000), compression=1)
        broker.ask(produce("t", batch), 9)

    return attack


def new_topics(count: int) -> Callable[[Broker], Callable[[], object]]:
    names = [MetadataRequestTopic(name=f"new-{number}") for number in range(count)]
    return one_request(MetadataRequest(topics=names, allow_auto_topic_creation=True), 9)


ATTACKS: dict[str, tuple[str, Callable[[Broker], Callable[[], object]]]] = {
    "waiting": ("1 connection: a waiting request, 50 MB frames behind it", behind_a_wait),
    "unfinished": ("30 connections, 99 of 100 MB each", unfinished),
    "lists": (
        "1 connection, 256 pipelined ListGroups over 10,000 groups, unread",
        unread_lists(10_000, 1, 256),
    ),
    "many-lists": (
        "20 connections x 10,000 ListGroups, 2,000 groups, unread",
        unread_lists(2000, 20, 10_000),
    ),
    "find": (
        "FindCoordinator with 1 M empty keys",
        one_request(FindCoordinatorRequest(coordinator_keys=[""] * 1_000_000), 4),
    ),
    "find-some": (
        "FindCoordinator with 100,000 keys, as many as are allowed",
        one_request(FindCoordinatorRequest(coordinator_keys=["k"] * 100_000), 4),
    ),
    "describe": (
        "DescribeGroups with 1 M empty ids",
        one_request(DescribeGroupsRequest(groups=[""] * 1_000_000), 5),
    ),
    "describe-some": (
        "DescribeGroups with 100,000 ids, as many as are allowed",
        one_request(DescribeGroupsRequest(groups=["g"] * 100_000), 5),
    ),
    "fetches": ("40 Fetches of up to 55 MB, never read", unread_fetches),
    "members": ("12 classic members x 20 MB of metadata", large_members),
    "groups": ("50,000 JoinGroup with a new group each", many_groups),
    "names": ("2,000 groups, all names 30 KB", long_names),
    "bomb": ("zstd bomb of 4 KB (120 MiB inside), then 20 ListOffsets by time", bomb),
    "tiny": ("900,000 tiny records in one batch into a compacted topic", tiny_records),
    "topics": ("Metadata that names 400 new topics", new_topics(400)),
    "more-topics": ("Metadata that names 2,000 new topics", new_topics(2000)),
}


def measure(program: str, prepare: Callable[[Broker], Callable[[], object]]) -> tuple[float, ...]:
    broker = Broker(program)
    try:
        attack = prepare(broker)
        before = cpu_seconds(broker.process.pid)
        with bystander(broker.port) as longest:
            time.sleep(0.5)
            kept = attack()
            time.sleep(1)
            waited = longest()
        del kept
        return broker.peak_mib(), waited, cpu_seconds(broker.process.pid) - before
    finally:
        broker.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default=",".join(ATTACKS))
    parser.add_argument("--serve", default=str(Path(sys.executable).with_name("kohort")))
    given = parser.parse_args()
    print(f"load average {load_average():.1f}")
    print(f"{'attack':72} {'peak MB':>8} {'others wait':>12} {'CPU s':>7}")
    for name in given.only.split(","):
        title, prepare = ATTACKS[name]
        peak, waited, cpu = measure(given.serve, prepare)
        print(f"{title:72} {peak:8.0f} {waited * 1000:9.0f} ms {cpu:7.1f}", flush=True)


if __name__ == "__main__":
    main()
