# SPDX-License-Identifier: Apache-2.0
"""Do groups that are deleted or expire give back what they have taken: memory, and disk?

    python benchmarks/space_reclaim.py [--groups 100000] [--rounds 3] [--way delete,expire]

A round commits an offset for each of many new groups, deletes them or lets them expire, and has the
log of groups cleaned. What is left must not grow from round to round: an interpreter keeps a part
of its memory for the next round, so the first one is only for comparison.
"""

import argparse
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

sys.path.insert(0, str(Path(__file__).parents[1]))

from processes import require_linux, resident_mib
from wire_client import frame

from kohort.testing import Broker
from kohort.wire.messages.delete_groups import DeleteGroupsRequest
from kohort.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)

TOPIC = "orders"
WEEK_S = 7 * 24 * 3600
AT_ONCE = 500  # requests on their way
DELETED_AT_ONCE = 1000
SETTINGS = {
    "offsets.retention.check.interval.ms": 24 * 3600 * 1000,
    "offsets.topic.segment.bytes": 1 << 20,
    "log.cleaner.backoff.ms": 1000,
    "log.cleaner.delete.retention.ms": 0,
    "log.cleaner.min.cleanable.ratio": 0,
}


def commit(group_id: str) -> bytes:
    place = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    topic = OffsetCommitRequestTopic(name=TOPIC, partitions=[place])
    return frame(OffsetCommitRequest(group_id=group_id, topics=[topic]), 8)


def exchange(port: int, requests: Iterator[bytes]) -> None:
    """Send all, some at once, and read as many answers; what they say is looked at afterwards."""
    with socket.create_connection(("127.0.0.1", port), 120) as connection:
        stream = connection.makefile("rb")
        waiting = 0
        for request in requests:
            connection.sendall(request)
            waiting += 1
            if waiting == AT_ONCE:
                waiting -= _read(stream, AT_ONCE)
        _read(stream, waiting)


def _read(stream: BinaryIO, count: int) -> int:
    for _ in range(count):
        size = int.from_bytes(stream.read(4))
        stream.read(size)
    return count


def disk_mib(broker: Broker) -> float:
    assert broker.data_dir is not None
    files = broker.data_dir.glob("__consumer_offsets-*/*.log")
    return sum(path.stat().st_size for path in files) / (1 << 20)


def one_round(broker: Broker, names: list[str], way: str) -> tuple[float, float, float, float]:
    """Memory and disk when all groups are there, and when they are gone; in MiB."""
    port = int(broker.bootstrap.rpartition(":")[2])
    exchange(port, (commit(name) for name in names))
    assert len(broker.groups) >= len(names)
    full = resident_mib(broker.pid), disk_mib(broker)
    if way == "delete":
        slices = range(0, len(names), DELETED_AT_ONCE)
        requests = (
            frame(DeleteGroupsRequest(groups_names=names[at : at + DELETED_AT_ONCE]), 2)
            for at in slices
        )
        exchange(port, requests)
    broker.clock.advance(WEEK_S + 3600)
    assert len(broker.groups) == 0, f"{len(broker.groups)} groups are left"
    for _ in range(3):  # a segment is closed by its age when something new comes
        exchange(port, (commit(f"filler-{one}") for one in range(32)))
        broker.clock.advance(WEEK_S + 3600)
    return (*full, resident_mib(broker.pid), disk_mib(broker))


def main() -> None:
    require_linux()
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--groups", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--way", default="delete,expire")
    arguments = parser.parse_args()
    for way in arguments.way.split(","):
        with Broker(SETTINGS, process=True) as broker:
            broker.create_topic(TOPIC)
            print(f"{way}: {resident_mib(broker.pid):.0f} MiB of memory at the start")
            for number in range(arguments.rounds):
                begun = time.monotonic()
                names = [f"group-{number}-{one}" for one in range(arguments.groups)]
                memory, disk, memory_left, disk_left = one_round(broker, names, way)
                print(
                    f"  round {number + 1}: {arguments.groups} groups take {memory:.0f} MiB of"
                    f" memory and {disk:.1f} MiB of disk; gone, {memory_left:.0f} MiB and"
                    f" {disk_left:.1f} MiB are left ({time.monotonic() - begun:.0f} s)"
                )


if __name__ == "__main__":
    main()
