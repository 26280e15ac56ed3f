# SPDX-License-Identifier: Apache-2.0
"""Record stories: python -m tests.spark.downtime.record SEED... --on kafka|kohort --out DIR.

Each is played on a broker of its own. The folders of the group log, what the coordinator wrote into
its log file and `truth.json` become one archive, `BROKER-SEED.tar.xz`: what was done, and each
client's own journal.
"""

import argparse
import asyncio
import io
import json
import sys
import tarfile
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.spark.downtime.brokers import Hosted, running
from tests.spark.downtime.days import day
from tests.spark.downtime.player import Player
from tests.spark.histories.record_server_log import COORDINATOR


def record(seed: int, on: str, out: Path) -> Path:
    """Play the day and pack what is left of it."""
    with (
        tempfile.TemporaryDirectory() as directory,
        tempfile.TemporaryDirectory() as journals,
        running(on, Path(directory)) as hosted,
    ):
        player = Player(hosted, day(seed), on, Path(journals))
        try:
            asyncio.run(player.prepare())
            player.play()
            hosted.stop()
        finally:
            player.end()
        player.truth["journals"] = {
            path.stem: [json.loads(line) for line in path.read_text().splitlines()]
            for path in sorted(Path(journals).iterdir())
        }
        return pack(player.truth, hosted, out / f"{on}-{seed}.tar.xz")


def pack(truth: dict[str, Any], hosted: Hosted, archive: Path) -> Path:
    files = {"truth.json": json.dumps(truth, separators=(",", ":")).encode()}
    if hosted.said.exists():
        lines = hosted.said.read_bytes().splitlines(keepends=True)
        files["server.log"] = b"".join(line for line in lines if COORDINATOR in line)
    for segment in sorted(hosted.data.glob("__consumer_offsets-*/*.log")):
        files[str(segment.relative_to(hosted.data))] = segment.read_bytes()
    archive.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(archive, "w:xz", preset=9) as tar:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return archive


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="record", description=__doc__)
    parser.add_argument("seeds", nargs="+", type=int, metavar="SEED")
    parser.add_argument("--on", choices=["kafka", "kohort"], required=True)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args(arguments)
    for seed in given.seeds:
        began = time.monotonic()
        archive = record(seed, given.on, given.out)
        seconds = time.monotonic() - began
        print(f"{archive} {archive.stat().st_size} bytes, {seconds:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
