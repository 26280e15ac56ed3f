# SPDX-License-Identifier: Apache-2.0
"""What a run of the pipeline costs: the first one, one that finds nothing, and many that add a few.

    python benchmarks/increments.py [--records 300000] [--fresh 1500] [--increments 10]
        [--only cold,increments,session] [--beside DIR]

Each run is `kohort pipeline run` in a process of its own, on a log of committed offsets that grows
(`group_log.py`). Told are its CPU-seconds with those of its JVM and its workers, which it waits
for, and its wall time. `session` is increments once more, in a session that stays. At the end the
tables are compared with those of one run over everything, and the files that count are counted.
`--beside` is another checkout of Kohort, whose runs take turns with ours. docs/benchmarks.md says
what the figures mean.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from group_log import write_log
from pipeline_spark import cpu_seconds
from processes import load_average, machine, require_linux

ROOT = Path(__file__).parents[1]
COLD = 1_500
PARTITIONS = 50
AS_OF = "2026-12-01T00:00:00Z"
"""After the last commit of any log that is written here."""


class Cost(NamedTuple):
    """Of one run."""

    cpu_s: float
    wall_s: float


class Way:
    """A Kohort, and its directories of tables."""

    def __init__(self, name: str, checkout: Path, directory: Path) -> None:
        self.name = name
        self._source = checkout / "src"
        self._directory = directory / name

    def tables(self, what: str) -> Path:
        return self._directory / what

    def run(self, log: Path, what: str) -> Cost:
        """Bring tables up to date, and tell what it took."""
        out = self.tables(what)
        return self.kohort("run", "--source", f"log:{log}", "--out", str(out), "--as-of", AS_OF)

    def runs(self, log: Path, what: str) -> Iterator[Cost]:
        """The same again and again, in one process with one session."""
        command = [sys.executable, __file__, "--runs", str(log), str(self.tables(what))]
        with subprocess.Popen(
            command, env=self.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            while True:
                process.stdin.write(b"\n")
                process.stdin.flush()
                told = process.stdout.readline()
                if not told:
                    raise SystemExit(f"{self.name}: a session with many runs has ended")
                yield Cost(*json.loads(told))

    def warm(self) -> None:
        """Whoever has run Kohort before has an archive of classes, unless it is switched off."""
        from kohort.spark.engine import class_archive

        if not class_archive.is_off():
            self.kohort("warm")

    def kohort(self, *arguments: str) -> Cost:
        command = [sys.executable, "-m", "kohort", "pipeline", *arguments]
        with tempfile.TemporaryFile() as told:
            began = time.monotonic()
            process = subprocess.Popen(command, env=self.environment(), stdout=told, stderr=told)
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            wall = time.monotonic() - began
            if process.returncode:
                told.seek(0)
                said = told.read().decode(errors="replace")[-3000:]
                raise SystemExit(f"{self.name}: {' '.join(arguments)} has failed:\n{said}")
        return Cost(used.ru_utime + used.ru_stime, wall)

    def environment(self) -> dict[str, str]:
        return {**os.environ, "PYTHONPATH": str(self._source)}


class ParquetFileWriter:
    """A log that is written anew, with more records each time: what was there is its beginning."""

    def __init__(self, directory: Path, groups: int) -> None:
        self.directory = directory
        self._groups = groups

    def reach(self, records: int) -> None:
        fresh = self.directory.with_name(f"{self.directory.name}-next")
        write_log(fresh, records, groups=self._groups, partitions=PARTITIONS)
        shutil.rmtree(self.directory, ignore_errors=True)
        fresh.rename(self.directory)


def counting_files(out: Path) -> int:
    """How many files hold rows that count."""
    from kohort.pipeline.format.manifest import load

    return sum(1 for one in load(out).paths() for _ in (out / one).rglob("*.parquet"))


def digests(out: Path) -> dict[str, tuple[int, int | None]]:
    """Of each table how many rows it has, and a number for them in any order. Without the past,
    which tells what each run has seen.
    """
    import duckdb

    import kohort.tables
    from kohort.pipeline.schemas import OBSERVED_HISTORY

    found = {}
    for name in {*kohort.tables.names(out)} - {table.name for table in OBSERVED_HISTORY}:
        rows = kohort.tables.scan(out, name)  # noqa: F841  (the query names it)
        (found[name],) = duckdb.sql("select count(*), sum(hash(rows)) from rows").fetchall()
    return found


def line(what: str, way: Way, costs: list[Cost]) -> str:
    cpu, wall = (statistics.median(one) for one in zip(*costs, strict=True))
    return f"{what:44} {way.name:8} {cpu:8.1f} {wall:8.1f}"


def run_when_asked(log: str, out: str) -> None:
    """A process with one session: a run for each line that comes, and what it took."""
    from kohort.spark import jobs

    for _ in sys.stdin:
        cpu, wall = cpu_seconds(), time.monotonic()
        jobs.run(f"log:{log}", out, as_of=datetime.fromisoformat(AS_OF))
        print(json.dumps([cpu_seconds() - cpu, time.monotonic() - wall]), flush=True)


def cold(options: argparse.Namespace, ways: list[Way], directory: Path) -> Iterator[str]:
    """Few records, and then nothing."""
    few = ParquetFileWriter(directory / "few", groups=15)
    few.reach(COLD)
    for what in ("cold", "again"):
        costs: dict[str, list[Cost]] = {one.name: [] for one in ways}
        for turn in range(options.rounds):
            for one in ways if turn % 2 == 0 else ways[::-1]:
                costs[one.name].append(one.run(few.directory, f"few-{turn}"))
        title = f"{COLD:,} records" if what == "cold" else "the same, nothing new"
        yield from (line(title, one, costs[one.name]) for one in ways)


def increments(
    options: argparse.Namespace, ways: list[Way], directory: Path, *, stays: bool
) -> Iterator[str]:
    """A few records more, again and again."""
    directory = directory / ("session" if stays else "increments")
    log = ParquetFileWriter(directory / "log", groups=300)
    log.reach(options.records)
    runs = {
        one.name: one.runs(log.directory, directory.name)
        if stays
        else _alone(one, log.directory, directory.name)
        for one in ways
    }
    for one in ways:
        yield line(f"{options.records:,} records", one, [next(runs[one.name])])
    costs: dict[str, list[Cost]] = {one.name: [] for one in ways}
    files: dict[str, list[int]] = {one.name: [] for one in ways}
    for number in range(1, options.increments + 1):
        log.reach(options.records + number * options.fresh)
        for one in ways if number % 2 else ways[::-1]:
            costs[one.name].append(next(runs[one.name]))
            files[one.name].append(counting_files(one.tables(directory.name)))
    third = max(options.increments // 3, 1)
    for one in ways:
        of_way = costs[one.name]
        yield line(f"{options.fresh:,} more, the median of {len(of_way)}", one, of_way)
        yield line(f"  the first {third}", one, of_way[:third])
        yield line(f"  the last {third}", one, of_way[-third:])
        yield f"  {one.name}: {max(files[one.name])} files that count at most"
    for one in ways:
        yield line("all of it at once", one, [one.run(log.directory, "at-once")])
        both = [digests(one.tables(what)) for what in (directory.name, "at-once")]
        differing = [name for name in both[0] if both[0][name] != both[1].get(name)]
        yield f"  {one.name}: tables that differ from those: {', '.join(differing) or 'none'}"
        shutil.rmtree(one.tables("at-once"))


def _alone(way: Way, log: Path, what: str) -> Iterator[Cost]:
    """Runs that each have a process of their own."""
    while True:
        yield way.run(log, what)


def main() -> None:
    require_linux()
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--records", type=int, default=300_000, help="before the increments")
    parser.add_argument("--fresh", type=int, default=1_500, help="records of an increment")
    parser.add_argument("--increments", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3, help="of the cold runs, and those again")
    parser.add_argument("--beside", type=Path, help="another checkout of Kohort")
    parser.add_argument("--only", default="cold,increments,session")
    parser.add_argument("--runs", nargs=2, metavar=("LOG", "OUT"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.runs is not None:
        run_when_asked(*options.runs)
    else:
        measure(options)


def measure(options: argparse.Namespace) -> None:
    print(f"{machine()}, load {load_average():.1f}\n")
    with tempfile.TemporaryDirectory(prefix="kohort-bench-") as temporary:
        directory = Path(temporary)
        ways = [Way("ours", ROOT, directory)]
        if options.beside is not None:
            ways.append(Way("beside", options.beside.resolve(), directory))
        for one in ways:
            one.warm()
        print(f"{'a run over':44} {'':8} {'CPU-s':>8} {'wall-s':>8}")
        measures = {
            "cold": lambda: cold(options, ways, directory),
            "increments": lambda: increments(options, ways, directory, stays=False),
            "session": lambda: increments(options, ways, directory, stays=True),
        }
        for what in options.only.split(","):
            for told in measures[what]():
                print(told, flush=True)


if __name__ == "__main__":
    main()
