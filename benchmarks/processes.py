# SPDX-License-Identifier: Apache-2.0
"""What a server costs, as the kernel counts it: processor time and memory of its processes."""

import os
import subprocess
import sys
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")


def tree(pid: int) -> list[int]:
    """The process and everything it started, directly or not."""
    found = [pid]
    for one in found:
        for thread in Path(f"/proc/{one}/task").iterdir():
            found += map(int, (thread / "children").read_text().split())
    return found


def cpu_seconds(pid: int) -> float:
    """utime + stime of the tree so far; the kernel counts in ticks of 10 ms."""
    ticks = 0
    for one in tree(pid):
        fields = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / TICKS


def resident_mib(pid: int) -> float:
    """VmRSS of the tree now."""
    kib = 0
    for one in tree(pid):
        status = Path(f"/proc/{one}/status").read_text()
        kib += int(status.partition("VmRSS:")[2].split()[0])
    return kib / 1024


def can_pin() -> bool:
    return sys.platform == "linux" and len(os.sched_getaffinity(0)) > 1


def pin(pid: int, cpus: set[int]) -> None:
    """Move every thread the process has now (and those they start) to these processors."""
    for thread in Path(f"/proc/{pid}/task").iterdir():
        os.sched_setaffinity(int(thread.name), cpus)


def require_linux() -> None:
    if not Path("/proc/self/stat").exists():
        sys.exit("the benchmarks read /proc, so they need Linux")


def load_average() -> float:
    return os.getloadavg()[0]


def machine() -> dict[str, str]:
    """What a result must say about where it was made."""
    model = Path("/proc/cpuinfo").read_text().partition("model name")[2].partition(":")[2]
    java = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False).stderr
    return {
        "processor": model.partition("\n")[0].strip(),
        "processors": str(len(os.sched_getaffinity(0))),
        "python": sys.version.partition(" (")[0],
        "java": java.partition("\n")[0],
    }
