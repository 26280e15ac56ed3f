# SPDX-License-Identifier: Apache-2.0
"""What a script waits for: Kafka's own tools for groups, and ours in their place.

python benchmarks/tools.py [--groups 10000 --partitions 10 --rounds 3] [--only PART]

Both ask one broker of ours, in turns; a round of each is a process from its start to its end. What
one waits for depends on what else the machine does, so the processor time of each process stands
beside it. The Java tools run without the start script of bash, which takes its time as well. At the
end admin clients of Python look at all groups (`benchmarks/sweeps.py`).
"""

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))

from sweeps import CLIENTS
from tests.client.joining import commit, coordinator
from tests.peers.kafka import VERSION, tool_command, unavailable

from kohort.client.admin import AdminClient, NewTopic
from kohort.testing import Broker

KAFKA_GROUPS = "org.apache.kafka.tools.GroupsCommand"
KAFKA_CONSUMER_GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
ALL_GROUPS = ("--describe", "--all-groups")
RESET = ("--reset-offsets", "--group", "group-0", "--all-topics", "--to-earliest", "--dry-run")


class Call(NamedTuple):
    """A command of ours, and what a user of Kafka's tools calls for the same."""

    words: Sequence[str]
    java: str
    java_words: Sequence[str]

    @property
    def name(self) -> str:
        return " ".join(word for word in self.words if word != "group-0")


def drop_in(java: str, *words: str) -> Call:
    program = "kohort-groups" if java == KAFKA_GROUPS else "kohort-consumer-groups"
    return Call((program, *words), java, words)


CALLS = [
    drop_in(KAFKA_GROUPS, "--list"),
    Call(("kohort", "groups", "list"), KAFKA_GROUPS, ("--list",)),
    Call(("kohort", "groups", "list", "--format", "json"), KAFKA_GROUPS, ("--list",)),
    drop_in(KAFKA_CONSUMER_GROUPS, "--list", "--state"),
    drop_in(KAFKA_CONSUMER_GROUPS, "--describe", "--group", "group-0"),
    drop_in(KAFKA_CONSUMER_GROUPS, *ALL_GROUPS),
    Call(("kohort", "groups", "describe", "--all"), KAFKA_CONSUMER_GROUPS, ALL_GROUPS),
    Call(
        ("kohort", "groups", "describe", "--all", "--format", "json"),
        KAFKA_CONSUMER_GROUPS,
        ALL_GROUPS,
    ),
    drop_in(KAFKA_CONSUMER_GROUPS, *RESET),
]
SWEEP = "sweep"


class Used(NamedTuple):
    """What a process took, in seconds: what one waits for, and what the processors work."""

    waiting: float
    processor: float


async def fill(bootstrap: str, groups: int, partitions: int) -> None:
    async with AdminClient(bootstrap) as admin:
        (await admin.create_topics([NewTopic("orders", partitions, 1)])).all()
    async with coordinator(bootstrap, "group-0") as connection:
        for number in range(groups):
            offsets = {("orders", index): 0 for index in range(partitions)}
            assert not any(await commit(connection, f"group-{number}", offsets))


def run(argv: Sequence[str]) -> Used:
    """Run it to its end."""
    begin = time.perf_counter()
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, argv
    return Used(time.perf_counter() - begin, used.ru_utime + used.ru_stime)


def medians(runs: Iterable[Used]) -> Used:
    return Used(*map(statistics.median, zip(*runs, strict=True)))


def compare(call: Call, bootstrap: str, rounds: int) -> None:
    """Print what both take, in turns."""
    program, *words = call.words
    at = ("--bootstrap-server", bootstrap)
    ours = [str(Path(sys.executable).with_name(program)), *words, *at]
    java = tool_command(call.java, *at, *call.java_words)
    pairs = [(run(ours), run(java)) for _ in range(rounds)]
    here, there = (medians(runs) for runs in zip(*pairs, strict=True))
    print(call.name)
    for what, one, other in zip(Used._fields, here, there, strict=True):
        print(f"  {what:34}{one:9.2f}{other:15.2f}{other / one:7.1f}x")


def compare_sweeps(bootstrap: str, rounds: int) -> None:
    """Print what admin clients of Python take to look at all groups, in turns."""
    script = str(Path(__file__).with_name("sweeps.py"))
    runs: dict[str, list[Used]] = {name: [] for name in CLIENTS}
    for _ in range(rounds):
        for name, found in runs.items():
            found.append(run([sys.executable, script, name, bootstrap]))
    print(f"list, describe, offsets of all     {'waiting':>10}{'processor':>11}")
    for name, found in runs.items():
        used = medians(found)
        print(f"  {name:33}{used.waiting:10.2f}{used.processor:11.2f}")


def main() -> None:
    if reason := unavailable():
        sys.exit(reason)
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--groups", type=int, default=20)
    parser.add_argument("--partitions", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument(
        "--only", default="", metavar="PART", help=f"calls whose name has this; or {SWEEP}"
    )
    args = parser.parse_args()
    print(f"{'seconds, medians':36}{'kohort':>9}{f'kafka {VERSION}':>15}{'ratio':>8}")
    with Broker(in_memory=True, process=True) as broker:
        asyncio.run(fill(broker.bootstrap, args.groups, args.partitions))
        for call in CALLS:
            if args.only in call.name:
                compare(call, broker.bootstrap, args.rounds)
        if args.only in SWEEP:
            compare_sweeps(broker.bootstrap, args.rounds)
    print(f"load of the machine: {os.getloadavg()[1]:.0f} on {os.cpu_count()} processors")


if __name__ == "__main__":
    main()
