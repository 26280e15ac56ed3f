"""What a script waits for: Kafka's own tools for groups, and ours in their place.

python benchmarks/tools.py [--groups 10000 --partitions 10 --rounds 3] [--only PART]

Both ask one broker of ours, in turns; a round of each is a process from its start to its end. What
one waits for depends on what else the machine does, so the processor time of each process stands
beside it. The Java tools run without the start script of bash, which takes its time as well.
"""

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.client.joining import commit, coordinator
from tests.peers.kafka import VERSION, tool_command, unavailable

from kohort.client.admin import AdminClient, NewTopic
from kohort.testing import Broker

JAVA = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
JAVA_GROUPS = "org.apache.kafka.tools.GroupsCommand"
CALLS = {  # of kohort-consumer-groups; `--list` alone is asked of kohort-groups
    "--list": ["--list"],
    "--list --state": ["--list", "--state"],
    "--describe --group": ["--describe", "--group", "group-0"],
    "--describe --all-groups": ["--describe", "--all-groups"],
    "--reset-offsets": [
        *("--reset-offsets", "--group", "group-0", "--all-topics", "--to-earliest"),
        "--dry-run",
    ],
}


async def fill(bootstrap: str, groups: int, partitions: int) -> None:
    async with AdminClient(bootstrap) as admin:
        (await admin.create_topics([NewTopic("orders", partitions, 1)])).all()
    async with coordinator(bootstrap, "group-0") as connection:
        for number in range(groups):
            offsets = {("orders", index): 0 for index in range(partitions)}
            assert not any(await commit(connection, f"group-{number}", offsets))


def seconds(argv: list[str]) -> tuple[float, float]:
    """What one waits for, and what the processors work."""
    begin = time.perf_counter()
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, argv
    return time.perf_counter() - begin, used.ru_utime + used.ru_stime


def main() -> None:
    if reason := unavailable():
        sys.exit(reason)
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--groups", type=int, default=20)
    parser.add_argument("--partitions", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", default="", metavar="PART", help="calls whose name has this")
    args = parser.parse_args()
    calls = {name: words for name, words in CALLS.items() if args.only in name}
    print(f"{'seconds, median':36}{'kohort':>9}{f'kafka {VERSION}':>15}{'ratio':>8}")
    with Broker(in_memory=True, process=True) as broker:
        asyncio.run(fill(broker.bootstrap, args.groups, args.partitions))
        for name, words in calls.items():
            tool = "groups" if name == "--list" else "consumer_groups"
            ours = [sys.executable, "-m", f"kohort.drop_in.{tool}"]
            java = JAVA_GROUPS if name == "--list" else JAVA
            argv = ["--bootstrap-server", broker.bootstrap, *words]
            pairs = [
                (seconds([*ours, *argv]), seconds(tool_command(java, *argv)))
                for _ in range(args.rounds)
            ]
            for what, number in (("waiting", 0), ("processor", 1)):
                here, there = (
                    statistics.median(run[number] for run in runs)
                    for runs in zip(*pairs, strict=True)
                )
                title = f"{name}, {what}"
                print(f"{title:36}{here:9.3f}{there:15.3f}{there / here:7.1f}x")


if __name__ == "__main__":
    main()
