# SPDX-License-Identifier: Apache-2.0
"""A log of 300 MB, one of 3 million commits and many members, and one of ten thousand groups go
through the whole pipeline with a driver of 1 GB.
"""

import re
import subprocess
import sys
import threading
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = [pytest.mark.prove, pytest.mark.spark, pytest.mark.timeout(4000)]

READ = re.compile(r"([\d,]+) (\w+)(?:, |$)", re.MULTILINE)  # rows of a kind, as crowd.py tells them
RECORDS = 4_050_000  # a whole number of batches
MIB = 1024 * 1024
MOST_MIB = {"java": 2048, "python": 1024}
"""Of the JVM, with a heap of 1 GB, and of the driver and the workers in Python together."""


class Watch:
    """Looks five times a second at the memory of a process and all that it has started.

    It counts Java and Python only: Java's children look like Java until they are what they run.
    """

    def __init__(self, pid):
        self.pid = pid
        self.most = Counter()  # program -> MiB of all its processes
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self):
        while not self._ending.wait(0.2):
            now = Counter()
            for pid in tree(self.pid):
                with suppress(OSError, StopIteration):
                    program = Path(f"/proc/{pid}/comm").read_text().strip().rstrip(".0123456789")
                    if program in MOST_MIB:
                        now[program] += proportional(pid) / MIB
            self.most |= now

    def end(self):
        self._ending.set()
        self._thread.join()


def tree(pid):
    """The ids of a process and of all below it."""
    yield pid
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                yield from tree(int(child))


def proportional(pid):
    """Bytes in memory; of what several processes share, each has its part."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith("Pss:")).split()[1])


def test_a_log_of_300_mb_in_a_driver_of_1_gb(tmp_path):
    log, out = tmp_path / "log", tmp_path / "out"
    run(str(ROOT / "benchmarks" / "group_log.py"), str(log), "--records", str(RECORDS))
    size = sum(file.stat().st_size for file in log.rglob("*.log"))
    assert size >= 300 * MIB

    told, most = run(
        *("-m", "kohort", "pipeline", "run", "--source", f"log:{log}", "--out", str(out)),
        *("--master", "local[2]", "-X", "spark.driver.memory=1g"),
    )

    print(", ".join(f"{program}: {mib:.0f} MiB" for program, mib in most.items()))
    assert all(0 < most[program] < mib for program, mib in MOST_MIB.items())
    assert f"read {RECORDS:,} records" in told
    assert (out / "report.html").exists()


def test_ten_thousand_groups_of_fifty_partitions_in_a_driver_of_1_gb():
    """A first run, and one that goes on from what it knows of half a million partitions."""
    told, _ = run(str(ROOT / "benchmarks" / "crowd.py"), "--hours", "1")
    print(told)
    assert re.findall(r"^ +(\d+) +[\d.]+ ", told, re.MULTILINE) == ["0", "1"]


def test_three_million_commits_and_many_members_at_once_in_a_driver_of_1_gb():
    """Every group of two thousand replaces a member four times; one run reads all of it."""
    told, _ = run(
        *(str(ROOT / "benchmarks" / "crowd.py"), "--once", "--groups", "2000"),
        *("--hours", "4", "--restarts", "2000", "--commits", "6"),
    )
    print(told)
    read = {kind: int(rows.replace(",", "")) for rows, kind in READ.findall(told)}
    assert read.pop("offset_commit") == 3_000_000
    assert read.pop("tombstone") > 0
    assert sum(read.values()) >= 105_000


def run(*words):
    """What a program wrote, and the most memory that it took."""
    with subprocess.Popen(
        [sys.executable, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        watch = Watch(process.pid)
        try:
            told, errors = process.communicate(timeout=3600)
        finally:
            watch.end()
    assert process.returncode == 0, errors[-2000:]
    return told, watch.most
