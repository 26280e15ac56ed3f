# SPDX-License-Identifier: Apache-2.0
"""What the pipeline costs for a large cluster, hour by hour: ten thousand groups with members.

    python benchmarks/crowd.py [--groups 10000] [--hours 10] [--commits 1] [--restarts 100] [--once]

A broker of ours, whose clock is moved by hand, has groups of two KIP-848 members that share 50
partitions. In each hour every member commits `--commits` times, and in `--restarts` groups one
member is replaced by another. After each hour `kohort pipeline run` brings the group log into
tables, in a process of its own; with `--once` one run does so after the last hour. Told are its
CPU-seconds with those of its JVM and its workers, its wall time, what the log and the tables take
on the disk, and at the end how many rows of each kind were read.
"""

import argparse
import asyncio
import shutil
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from increments import ROOT, Cost, Way, counting_files
from processes import load_average, machine, require_linux
from wire_client import Link, Member, heartbeat_request, make_topics, settle

from kohort.pipeline.format.manifest import load
from kohort.testing import Broker
from kohort.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)

TOPIC, PARTITIONS, EACH = "orders", 50, 2
HOUR_S = 3600
LINKS = 16
LEAVES = -1
RECORDS_AN_HOUR = 1000  # what a partition of the topic gets
SETTINGS = {
    "group.consumer.max.session.timeout.ms": str(2**31 - 1),
    "group.consumer.session.timeout.ms": str(2**31 - 1),
    "group.consumer.assignment.interval.ms": "0",
    "log.sync": "none",
    "offsets.topic.num.partitions": "50",
}

Group = list[Member]


class Crowd:
    """The groups of the broker, and what they have committed."""

    def __init__(self, port: int, names: Sequence[str], commits: int) -> None:
        self._port = port
        self._commits = commits
        self._offset = 0
        self.groups: list[Group] = [[Member(name, TOPIC) for _ in range(EACH)] for name in names]

    async def join(self) -> None:
        """Every member joins, and every group becomes Stable."""
        await self._each(self.groups, settle)

    async def hour(self, restarted: Sequence[Group], pass_s: Callable[[float], None]) -> None:
        """Members come and go, and everybody commits now and then."""
        await self._each(restarted, self._replace)
        for _ in range(self._commits):
            await asyncio.to_thread(pass_s, HOUR_S / self._commits)
            self._offset += RECORDS_AN_HOUR // self._commits
            await self._each(self.groups, self._commit)

    async def _each(
        self, groups: Sequence[Group], act: Callable[[Link, Group], Awaitable[None]]
    ) -> None:
        links = [await Link.open(self._port) for _ in range(LINKS)]
        left = list(groups)

        async def work(link: Link) -> None:
            while left:
                await act(link, left.pop())

        await asyncio.gather(*map(work, links))
        for link in links:
            link.close()

    async def _replace(self, link: Link, group: Group) -> None:
        gone = group.pop(0)
        answer = await link.call(heartbeat_request(gone.group, gone.id, LEAVES), 1)
        assert answer.error_code == 0
        group.append(Member(gone.group, TOPIC))
        await settle(link, group)

    async def _commit(self, link: Link, group: Group) -> None:
        for member in group:
            (owned,) = member.owned.values()
            answer = await link.call(self._committed(member, owned), 9)
            (topic,) = answer.topics
            assert not any(partition.error_code for partition in topic.partitions)

    def _committed(self, member: Member, owned: Sequence[int]) -> OffsetCommitRequest:
        return OffsetCommitRequest(
            group_id=member.group,
            member_id=member.id,
            generation_id_or_member_epoch=member.epoch,
            topics=[
                OffsetCommitRequestTopic(
                    name=TOPIC,
                    partitions=[
                        OffsetCommitRequestPartition(
                            partition_index=partition,
                            committed_offset=self._offset,
                            committed_metadata="",
                        )
                        for partition in owned
                    ],
                )
            ],
        )


def copy_log(data: Path, into: Path) -> Path:
    """The folders of the group log alone: the topic itself has no records."""
    shutil.rmtree(into, ignore_errors=True)
    for folder in data.rglob("__consumer_offsets-*"):
        shutil.copytree(folder, into / folder.name)
    return into


def mebibytes(directory: Path) -> float:
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file()) / (1 << 20)


def main() -> None:
    require_linux()
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--groups", type=int, default=10_000)
    parser.add_argument("--hours", type=int, default=10, help="after the first one")
    parser.add_argument("--commits", type=int, default=1, help="of each member in an hour")
    parser.add_argument("--restarts", type=int, default=100, help="groups in an hour")
    parser.add_argument("--once", action="store_true", help="one run, after the last hour")
    options = parser.parse_args()
    print(f"{machine()}, load {load_average():.1f}\n")
    with tempfile.TemporaryDirectory(prefix="kohort-bench-") as temporary:
        measure(options, Path(temporary))


def measure(options: argparse.Namespace, directory: Path) -> None:
    way = Way("ours", ROOT, directory)
    way.warm()
    data, log = directory / "data", directory / "log"
    with Broker(SETTINGS, data_dir=data, clock="manual") as broker:
        port = int(broker.bootstrap.rpartition(":")[2])
        make_topics(port, {TOPIC: PARTITIONS})
        names = [f"group-{number:05}" for number in range(options.groups)]
        crowd = Crowd(port, names, options.commits)
        began = time.monotonic()
        asyncio.run(crowd.join())
        print(f"{options.groups:,} groups have joined in {time.monotonic() - began:.0f} s\n")
        print(
            f"{'hour':>5} {'log MiB':>9} {'CPU-s':>8} {'wall-s':>8} {'tables MiB':>11} {'files':>6}"
        )
        for hour in range(options.hours + 1):
            first = hour * options.restarts % options.groups
            restarted = crowd.groups[first : first + options.restarts] if hour else []
            asyncio.run(crowd.hour(restarted, broker.clock.advance))
            if options.once and hour < options.hours:
                continue
            cost: Cost = way.run(copy_log(data, log), "tables")
            tables = way.tables("tables")
            print(
                f"{hour:5} {mebibytes(log):9.1f} {cost.cpu_s:8.1f} {cost.wall_s:8.1f}"
                f" {mebibytes(tables):11.1f} {counting_files(tables):6}",
                flush=True,
            )
        read = load(tables).added
        print(f"\nread {', '.join(f'{rows:,} {kind}' for kind, rows in read.items() if rows)}")


if __name__ == "__main__":
    main()
