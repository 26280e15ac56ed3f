# SPDX-License-Identifier: Apache-2.0
"""What a live cluster costs the pipeline: a first run, one that finds nothing new, and a stream.

    python benchmarks/live.py [--groups 5] [--rounds 3] [--seconds 120] [--every 10]
        [--only runs,stream]

A broker of ours, in a process of its own that is not counted, has groups that commit. `runs` are
`kohort pipeline run --source cluster:...` while nobody commits: CPU-seconds of the process with
those of its JVM, and its wall time. `stream` is the same with `--stream --every`, while every group
commits once a second: told is how far apart what it publishes is, and how old a commit is at most
when the tables tell it. docs/benchmarks.md says what the figures mean.
"""

import argparse
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from increments import ROOT, Cost, Way, line
from processes import cpu_seconds, load_average, machine, require_linux
from servers import KohortServer, wait_until_answering
from wire_client import Connection, commit_request, make_topics, wait_for_coordinator

TOPIC, PARTITIONS = "orders", 6
LOOKS_S = 0.05
SETTLES_S = 60.0  # a stream begins with a JVM and the first plans: what it keeps comes later


class PublishEvent(NamedTuple):
    """That tables were flipped."""

    at_s: float
    newest_s: float
    """The time of the newest commit that they tell."""


@contextmanager
def cluster(groups: int) -> Iterator[tuple[int, list[str]]]:
    """The port of a broker, and its groups."""
    server = KohortServer({})
    server.launch()
    try:
        wait_until_answering(server)
        make_topics(server.port, {TOPIC: PARTITIONS})
        wait_for_coordinator(server.port)
        yield server.port, [f"group-{number}" for number in range(groups)]
    finally:
        server.close()


def commit(connection: Connection, groups: list[str]) -> None:
    """Every group commits every partition once."""
    for group in groups:
        request = commit_request(group, [(TOPIC, range(PARTITIONS))])
        (topic,) = connection.call(request, 8).topics
        assert not any(partition.error_code for partition in topic.partitions)


def runs(options: argparse.Namespace, way: Way) -> Iterator[str]:
    """First runs, and those after which nothing has come."""
    with cluster(options.groups) as (port, groups), Connection(port) as connection:
        for _ in range(options.commits):
            commit(connection, groups)
        first, again = [], []
        for turn in range(options.rounds):
            first.append(_run(way, port, f"live-{turn}"))
            again.append(_run(way, port, f"live-{turn}"))
        yield line("a live cluster, the first run", way, first)
        yield line("the same, nothing new", way, again)


def _run(way: Way, port: int, what: str) -> Cost:
    return way.kohort(
        "run", "--source", f"cluster:127.0.0.1:{port}", "--out", str(way.tables(what))
    )


def stream(options: argparse.Namespace, way: Way) -> Iterator[str]:
    """A stream beside groups that commit once a second."""
    out = way.tables("stream")
    with cluster(options.groups) as (port, groups):
        ended = threading.Event()
        committing = threading.Thread(target=_commit_until, args=(ended, port, groups))
        committing.start()
        command = [sys.executable, "-m", "kohort", "pipeline", "run"]
        source = ["--source", f"cluster:127.0.0.1:{port}", "--out", str(out)]
        process = subprocess.Popen(
            [*command, *source, "--stream", "--every", f"{options.every}s"],
            env=way.environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            list(_published(out, process, SETTLES_S))
            used = cpu_seconds(process.pid)
            told = list(_published(out, process, options.seconds))
            used = cpu_seconds(process.pid) - used
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(60)
            ended.set()
            committing.join()
    if len(told) < 3:
        raise SystemExit(f"the stream published {len(told)} times in {options.seconds} s")
    apart = [later.at_s - one.at_s for one, later in pairwise(told)]
    # The oldest commit that a flip tells was made right after the newest one of the flip before.
    oldest = [later.at_s - one.newest_s for one, later in pairwise(told)]
    yield (
        f"--stream --every {options.every}s: {len(told)} times in {options.seconds} s,"
        f" {statistics.median(apart):.1f} s apart, {max(apart):.1f} s at most;"
        f" a commit is told after {max(oldest):.1f} s at most;"
        f" {used / len(told):.1f} CPU-s each"
    )


def _commit_until(ended: threading.Event, port: int, groups: list[str]) -> None:
    with Connection(port) as connection:
        while not ended.wait(1):
            commit(connection, groups)


def _published(
    out: Path, process: subprocess.Popen[bytes], seconds: float
) -> Iterator[PublishEvent]:
    """Each time that tables with newer rows were flipped, for so long."""
    from kohort.pipeline.format.manifest import load

    known = None
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if process.poll() is not None:
            raise SystemExit("the stream has ended by itself")
        time.sleep(LOOKS_S)
        if not (out / "manifest.json").exists():
            continue
        newest = max((one.newest_ms or 0 for one in load(out).increments), default=0)
        if newest != known:
            if known is not None:  # when the first one was flipped nobody has seen
                yield PublishEvent(time.time(), newest / 1000)
            known = newest


def main() -> None:
    require_linux()
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--groups", type=int, default=5)
    parser.add_argument("--commits", type=int, default=20, help="of each group before the runs")
    parser.add_argument("--rounds", type=int, default=3, help="of the runs")
    parser.add_argument("--seconds", type=int, default=120, help="for which the stream is watched")
    parser.add_argument("--every", type=int, default=10, help="seconds from batch to batch")
    parser.add_argument("--only", default="runs,stream")
    options = parser.parse_args()
    print(f"{machine()}, load {load_average():.1f}\n")
    with tempfile.TemporaryDirectory(prefix="kohort-bench-") as temporary:
        way = Way("ours", ROOT, Path(temporary))
        way.warm()
        print(f"{'a run over':44} {'':8} {'CPU-s':>8} {'wall-s':>8}")
        measures = {"runs": runs, "stream": stream}
        for what in options.only.split(","):
            for told in measures[what](options, way):
                print(told, flush=True)


if __name__ == "__main__":
    main()
