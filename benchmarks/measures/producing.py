# SPDX-License-Identifier: Apache-2.0
"""Records that a producer delivers per CPU-second of its own, beside other clients in a round.

The broker is Apache Kafka where it is measured, else Kohort's. In the table the other client stands
in the column of Kafka.
"""

import json
import subprocess
import sys
from pathlib import Path

from bench import Bench
from figures import Figure
from servers import Server
from wire_client import make_topics

CLIENT = Path(__file__).parents[1] / "producing_client.py"
OTHERS = {"aiokafka": 2.0, "confluent-kafka": None}
SIZES = {100: 200_000, 1000: 50_000}
PARTITIONS = 3


def delivered(server: Server, client: str, topic: str, size: int, count: int) -> float:
    """Records per CPU-second of the client."""
    done = subprocess.run(
        [sys.executable, CLIENT, client, f"127.0.0.1:{server.port}", topic, str(size), str(count)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{client} failed: {done.stderr[-500:]}")
    return count / json.loads(done.stdout)["cpu_s"]


def run(bench: Bench) -> list[Figure]:
    figures = {
        (size, other): Figure(
            f"records of {size:,} B produced, beside {other}",
            "1/CPU-s",
            more_is_better=True,
            goal=goal,
        )
        for size in SIZES
        for other, goal in OTHERS.items()
    }
    with bench.started() as servers:
        server = servers[-1]
        for size, count in SIZES.items():
            topic = f"produced-{size}"
            make_topics(server.port, {topic: PARTITIONS})
            for turn in range(bench.rounds):
                clients = ["kohort", *OTHERS]
                found = {
                    client: delivered(server, client, topic, size, count)
                    for client in (clients if turn % 2 == 0 else reversed(clients))
                }
                for other in OTHERS:
                    figures[size, other].add("kohort", found["kohort"])
                    figures[size, other].add("kafka", found[other])
    return list(figures.values())
