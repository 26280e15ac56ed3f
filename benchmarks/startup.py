# SPDX-License-Identifier: Apache-2.0
"""What a shell waits for: `kohort --help`, `kohort --version`, an interpreter that does nothing.

python benchmarks/startup.py
"""

import statistics
import subprocess
import sys
import time

ROUNDS = 21
COMMANDS = {
    "kohort --help": ["-m", "kohort", "--help"],
    "kohort groups list --help": ["-m", "kohort", "groups", "list", "--help"],
    "kohort --version": ["-m", "kohort", "--version"],
    "python -c pass": ["-c", "pass"],
}


def main() -> None:
    for name, argv in COMMANDS.items():
        times = []
        for _ in range(ROUNDS):
            begin = time.perf_counter()
            subprocess.run([sys.executable, *argv], stdout=subprocess.DEVNULL, check=True)
            times.append((time.perf_counter() - begin) * 1000)
        print(f"{name:28} {statistics.median(times):6.1f} ms  (best {min(times):.1f})")


if __name__ == "__main__":
    main()
