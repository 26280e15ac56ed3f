# SPDX-License-Identifier: Apache-2.0
"""How long a small write waits, alone and beside a producer that writes to 64 partitions.

With an fsync before every answer on both sides (log.sync=group; flush.messages=1), and without.
"""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench import Bench
from figures import Figure
from load import Load
from load import run as run_load
from servers import Server, wait_until_answering
from wide_writer import PARTITIONS, TOPIC, VERSION, produce
from wire_client import Connection, frame, make_topics, place_of_error, wait_for_coordinator

from kohort.wire.messages.produce import (
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)

WRITER = Path(__file__).parents[1] / "wide_writer.py"
PROMISES = {
    "fsync": {"kohort": {"log.sync": "group"}, "kafka": {"log.flush.interval.messages": 1}},
    "no fsync": {"kohort": {"log.sync": "none"}, "kafka": {}},
}


def answer(code: int) -> ProduceResponse:
    partition = PartitionProduceResponse(index=0, error_code=code, base_offset=0)
    return ProduceResponse(
        responses=[TopicProduceResponse(name="small", partition_responses=[partition])]
    )


@contextmanager
def writer(server: Server) -> Iterator[None]:
    with subprocess.Popen([sys.executable, str(WRITER), str(server.port)]) as process:
        time.sleep(1)
        try:
            yield
        finally:
            process.kill()


def run(bench: Bench) -> list[Figure]:
    figures = []
    for recovery_point, settings in PROMISES.items():
        figures += waits(bench, recovery_point, settings)
    return figures


def waits(bench: Bench, recovery_point: str, settings: dict[str, dict[str, Any]]) -> list[Figure]:
    load = Load([frame(produce("small", 1), VERSION)], 1, place_of_error(answer(0), answer(1), 9))
    figures = {
        (beside, part): Figure(f"small write, {recovery_point}, {where}: {part}", "ms", False)
        for beside, where in ((False, "alone"), (True, "beside a writer to 64 partitions"))
        for part in ("p50", "p95", "p99")
    }
    servers = [bench.server(name, settings[name]) for name in bench.names]
    try:
        for server in servers:
            server.launch()
            wait_until_answering(server)
            wait_for_coordinator(server.port)
            make_topics(server.port, {"small": 1, TOPIC: PARTITIONS})
            wait_for_leaders(server)
            bench.warm_up(server, load)
        for turn in range(bench.rounds):
            for server in bench.order(servers, turn):
                note(figures, server, load, beside=False, seconds=bench.seconds)
                with writer(server):
                    note(figures, server, load, beside=True, seconds=bench.seconds)
    finally:
        for server in servers:
            server.close()
    return list(figures.values())


def wait_for_leaders(server: Server) -> None:
    """Metadata names them before they lead, and with an fsync for each log that takes seconds."""
    end = time.monotonic() + 60
    with Connection(server.port) as connection:
        for request in (produce("small", 1), produce(TOPIC, PARTITIONS)):
            while any(
                one.error_code
                for topic in connection.call(request, VERSION).responses
                for one in topic.partition_responses
            ):
                if time.monotonic() > end:
                    raise RuntimeError(f"{server.name}: no leaders after 60 s")
                time.sleep(0.1)


def note(
    figures: dict[tuple[bool, str], Figure],
    server: Server,
    load: Load,
    *,
    beside: bool,
    seconds: float,
) -> None:
    told = run_load(server, load, seconds=seconds)
    for part, micros in (("p50", told.p50_us), ("p95", told.p95_us), ("p99", told.p99_us)):
        figures[beside, part].add(server.name, micros / 1000)
