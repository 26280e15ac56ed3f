"""What a script waits for: Kafka's own tools for groups, and ours in their place.

python benchmarks/tools.py

Both ask one broker of ours, in turns; a round of each is a process from its start to its end. What
one waits for depends on what else the machine does, so the processor time of each process stands
beside it. The Java tools run without the start script of bash, which takes its time as well.
"""

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

ROUNDS = 7
GROUPS, PARTITIONS = 20, 12
JAVA = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
CALLS = {
    "--list --state": ["--list", "--state"],
    "--describe --group": ["--describe", "--group", "group-0"],
    "--describe --all-groups": ["--describe", "--all-groups"],
    "--reset-offsets": [
        *("--reset-offsets", "--group", "group-0", "--all-topics", "--to-earliest"),
        "--dry-run",
    ],
}


async def fill(bootstrap: str) -> None:
    async with AdminClient(bootstrap) as admin:
        (await admin.create_topics([NewTopic("orders", PARTITIONS, 1)])).all()
    async with coordinator(bootstrap, "group-0") as connection:
        for number in range(GROUPS):
            offsets = {("orders", index): 0 for index in range(PARTITIONS)}
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
    ours = [sys.executable, "-m", "kohort.drop_in.consumer_groups"]
    print(f"{'seconds, median':36}{'kohort':>9}{f'kafka {VERSION}':>15}{'ratio':>8}")
    with Broker(in_memory=True, process=True) as broker:
        asyncio.run(fill(broker.bootstrap))
        for name, words in CALLS.items():
            argv = ["--bootstrap-server", broker.bootstrap, *words]
            pairs = [
                (seconds([*ours, *argv]), seconds(tool_command(JAVA, *argv))) for _ in range(ROUNDS)
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
