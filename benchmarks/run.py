# SPDX-License-Identifier: Apache-2.0
"""The figures of Kohort beside those of a real Apache Kafka, measured in the same run.

    python benchmarks/run.py [--only heartbeats,commits] [--rounds 5] [--seconds 2] [--quick]

Prints a table and keeps every round in benchmarks/results/. docs/benchmarks.md says what the
figures mean.
"""

import argparse
import json
import sys
import time
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path

import load
from bench import Bench
from figures import Figure, table
from processes import load_average, machine, require_linux
from servers import VERSION, unavailable

HERE = Path(__file__).parent

MEASURES = (
    "start",
    "idle",
    "heartbeats",
    "commits",
    "fetches",
    "one_group",
    "static_members",
    "reload",
    "small_write",
    "producing",
    "tls",
)


def options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Kohort measured beside Apache Kafka.")
    parser.add_argument(
        "--only", default=",".join(MEASURES), help="some of: " + ", ".join(MEASURES)
    )
    parser.add_argument("--rounds", type=int, default=5, help="interleaved rounds (default 5)")
    parser.add_argument("--seconds", type=float, default=2.0, help="of one steady round (2)")
    parser.add_argument("--quick", action="store_true", help="3 short rounds, little warming")
    parser.add_argument("--unpinned", action="store_true", help="do not give each side a processor")
    parser.add_argument("--servers", default="kohort,kafka", help="kohort, kafka, or both")
    given = parser.parse_args(arguments)
    given.only = given.only.split(",")
    if unknown := [name for name in given.only if name not in MEASURES]:
        parser.error(f"{', '.join(unknown)}: not measured; there are {', '.join(MEASURES)}")
    return given


def servers_of(wanted: str) -> tuple[str, ...]:
    names = tuple(wanted.split(","))
    if "kafka" in names and (reason := unavailable()):
        print(f"Kohort alone, no Apache Kafka to compare with: {reason}\n")
        names = tuple(name for name in names if name != "kafka")
    return names


def keep(bench: Bench, figures: list[Figure]) -> Path:
    results = HERE / "results"
    results.mkdir(exist_ok=True)
    path = results / f"{datetime.now(UTC):%Y%m%d-%H%M%S}.json"
    told = {
        "machine": machine(),
        "kafka": VERSION,
        "rounds": bench.rounds,
        "seconds": bench.seconds,
        "pinned": bench.pinned,
        "figures": [figure.as_json() for figure in figures],
    }
    path.write_text(json.dumps(told, indent=1) + "\n")
    return path


def main(arguments: list[str]) -> int:
    given = options(arguments)
    require_linux()
    load.build()
    bench = Bench(
        servers_of(given.servers),
        rounds=3 if given.quick else given.rounds,
        seconds=1.0 if given.quick else given.seconds,
        warm_seconds=6.0 if given.quick else 60.0,
        pinned=not given.unpinned,
    )
    figures: list[Figure] = []
    failed = []
    for name in given.only:
        begin = time.monotonic()
        print(f"{name} (load average {load_average():.1f}) ...", file=sys.stderr, flush=True)
        try:
            figures += import_module(f"measures.{name}").run(bench)
        except RuntimeError as error:
            failed.append(name)
            print(f"{name} failed: {error}", file=sys.stderr)
        print(f"{name}: {time.monotonic() - begin:.0f} s", file=sys.stderr, flush=True)
    print(table(figures))
    print(f"\nall rounds: {keep(bench, figures)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
