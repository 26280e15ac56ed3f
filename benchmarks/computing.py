# SPDX-License-Identifier: Apache-2.0
"""What it costs to have members compute: 1,000 members, 10,000 partitions, Prepare and Install.

    python benchmarks/computing.py [--members 1000] [--partitions 10000] [--metadata 100]
        [--times 5]

All members offer an assignor with so many bytes of metadata. One of them asks for another
assignment by a new reason, whoever is asked prepares, and installs a balanced assignment with as
much metadata for each member. Told are the bytes of both on the wire, the time from request to
answer, and the processor time of the broker; the medians. No other broker has these requests.
"""

import argparse
import statistics
import time
from typing import Any

from processes import cpu_seconds, load_average, machine
from servers import KohortServer, wait_until_answering
from wire_client import Connection, heartbeat_request, make_topics, wait_for_coordinator

from kohort.wire.codec import encode
from kohort.wire.messages.consumer_group_heartbeat import ClientAssignor
from kohort.wire.messages.consumer_group_install_assignment import (
    ConsumerGroupInstallAssignmentRequest,
    Member,
    TopicPartition,
)
from kohort.wire.messages.consumer_group_prepare_assignment import (
    ConsumerGroupPrepareAssignmentRequest,
)

GROUP, TOPIC = "computing", "t"
COMPUTE = 20000


class Crowd:
    """The members, all on one connection, and the epoch that each has been told."""

    def __init__(self, connection: Connection, count: int, metadata: int) -> None:
        self.connection = connection
        self.metadata = bytes(metadata)
        self.epochs = {f"member-{number:05d}": 0 for number in range(count)}

    def beat(self, member: str, reason: int | None = None) -> int:
        """A heartbeat, a join at first; its error code."""
        epoch = self.epochs[member]
        joins = epoch == 0
        request = heartbeat_request(GROUP, member, epoch, topics=[TOPIC] if joins else None)
        request.topic_partitions = [] if joins else None
        if joins or reason is not None:
            request.client_assignors = [
                ClientAssignor(
                    name="x",
                    minimum_version=0,
                    maximum_version=0,
                    reason=reason or 0,
                    metadata_version=0,
                    metadata_bytes=self.metadata,
                )
            ]
        answer = self.connection.call(request, 1)
        if answer.error_code not in (0, COMPUTE):
            raise RuntimeError(f"{member}: {answer.error_code} {answer.error_message}")
        self.epochs[member] = answer.member_epoch
        return answer.error_code

    def asked(self) -> str:
        """Who is to compute."""
        while True:
            for member in self.epochs:
                if self.beat(member) == COMPUTE:
                    return member


def measured(
    server: KohortServer, connection: Connection, request: Any
) -> tuple[Any, float, float]:
    """An answer, the milliseconds until it is there, and those of the broker's processor."""
    before, begin = cpu_seconds(server.pid), time.perf_counter()
    answer = connection.call(request, 0)
    took = time.perf_counter() - begin
    if answer.error_code:
        raise RuntimeError(f"{request.name}: {answer.error_code} {answer.error_message}")
    return answer, took * 1000, (cpu_seconds(server.pid) - before) * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--members", type=int, default=1000)
    parser.add_argument("--partitions", type=int, default=10_000)
    parser.add_argument("--metadata", type=int, default=100, help="bytes, each way and member")
    parser.add_argument("--times", type=int, default=5)
    given = parser.parse_args()
    print(f"{machine()}, load {load_average()}")
    server = KohortServer({"group.consumer.max.size": 100_000, "max.partitions": 100_000})
    server.launch()
    wait_until_answering(server)
    found: dict[str, list[float]] = {}
    try:
        topic_id = make_topics(server.port, {TOPIC: given.partitions})[TOPIC]
        wait_for_coordinator(server.port)
        with Connection(server.port) as connection:
            crowd = Crowd(connection, given.members, given.metadata)
            before = cpu_seconds(server.pid)
            for member in crowd.epochs:
                crowd.beat(member)
            joined = cpu_seconds(server.pid) - before
            for number in range(given.times):
                crowd.beat("member-00000", reason=number + 1)
                member = crowd.asked()
                identity = {
                    "group_id": GROUP,
                    "member_id": member,
                    "member_epoch": crowd.epochs[member],
                }
                prepare = ConsumerGroupPrepareAssignmentRequest(**identity)
                prepared, took, spent = measured(server, connection, prepare)
                note(found, "Prepare: bytes of the answer", len(encode(prepared, 0)))
                note(found, "Prepare: ms", took)
                note(found, "Prepare: CPU-ms of the broker", spent)
                install = ConsumerGroupInstallAssignmentRequest(
                    **identity,
                    group_epoch=prepared.group_epoch,
                    error=0,
                    members=[
                        Member(
                            member_id=one,
                            partitions=[
                                TopicPartition(
                                    topic_id=topic_id,
                                    partitions=list(range(turn, given.partitions, given.members)),
                                )
                            ],
                            metadata_version=0,
                            metadata_bytes=crowd.metadata,
                        )
                        for turn, one in enumerate(crowd.epochs, number)
                    ],
                )
                _, took, spent = measured(server, connection, install)
                note(found, "Install: bytes of the request", len(encode(install, 0)))
                note(found, "Install: ms", took)
                note(found, "Install: CPU-ms of the broker", spent)
    finally:
        server.close()
    print(
        f"{given.members:,} members, {given.partitions:,} partitions, {given.metadata} bytes each"
    )
    print(f"{'joining, one by one: CPU-s of the broker':<42} {joined:>12,.2f}")
    for name, values in found.items():
        spread = f"({min(values):,.0f} to {max(values):,.0f})"
        print(f"{name:<42} {statistics.median(values):>12,.0f}  {spread}")


def note(found: dict[str, list[float]], name: str, value: float) -> None:
    found.setdefault(name, []).append(value)


if __name__ == "__main__":
    main()
