# SPDX-License-Identifier: Apache-2.0
"""The C load client from Python: build it, run it, and divide by what the server spent."""

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from processes import cpu_seconds
from servers import Server

HERE = Path(__file__).parent
BINARY = HERE / "bin" / "load"


class Load(NamedTuple):
    """What to send: frames dealt out over connections, `depth` of each unanswered at a time."""

    frames: Sequence[bytes]
    connections: int
    error_at: int
    depth: int = 1


class LoadResult(NamedTuple):
    """One run of the load client. `client_busy`, its share of a processor, near 1: it limits."""

    answers: int
    seconds: float
    server_cpu: float
    client_busy: float
    least_bytes: int
    most_bytes: int
    p50_us: int
    p95_us: int
    p99_us: int

    @property
    def per_cpu_second(self) -> float:
        return self.answers / self.server_cpu


def build() -> None:
    """Compile the client when its source is newer than what is there."""
    source = HERE / "load.c"
    if BINARY.exists() and BINARY.stat().st_mtime > source.stat().st_mtime:
        return
    BINARY.parent.mkdir(exist_ok=True)
    compiler = os.environ.get("CC", "cc")
    subprocess.run([compiler, "-O2", "-o", str(BINARY), str(source)], check=True)


def run(
    server: Server, load: Load, *, seconds: float, requests: int = 0, client_cpu: int | None = None
) -> LoadResult:
    """Send for so long or so many; raises when any answer carried an error code."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(b"".join(load.frames))
        file.flush()
        shape = (server.port, load.connections, load.depth, seconds, requests, load.error_at)
        command = [str(BINARY), file.name, *map(str, shape)]
        if client_cpu is not None:
            command = ["taskset", "-c", str(client_cpu), *command]
        with subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as client:
            assert client.stdin is not None
            assert client.stdout is not None
            assert client.stderr is not None
            if client.stdout.readline() == "ready\n":
                before = cpu_seconds(server.pid)
                client.stdin.write("go\n")
                client.stdin.flush()
                line = client.stdout.readline()
                time.sleep(0.02)  # what the server does behind the last answer is its cost too
                spent = cpu_seconds(server.pid) - before
            client.stdin.close()
            words = client.stderr.read().strip()
    if client.returncode:
        raise RuntimeError(f"{server.name}: {words}")
    told = json.loads(line)
    if told["errors"]:
        raise RuntimeError(
            f"{server.name}: {told['errors']} of {told['answers']} answers had error "
            f"{told['error_code']}: nothing was measured"
        )
    return LoadResult(
        told["answers"],
        told["seconds"],
        spent,
        told["cpu_seconds"] / told["seconds"],
        told["least_bytes"],
        told["most_bytes"],
        told["p50_us"],
        told["p95_us"],
        told["p99_us"],
    )
