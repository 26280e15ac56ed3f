# SPDX-License-Identifier: Apache-2.0
"""Record histories: python -m tests.spark.histories.record NAME... --on kafka|kohort --out DIR.

Each is played on a broker of its own; the log folders and the truth become one small archive,
`NAME.kafka.tar.xz`. `all` stands for every script that the broker can play.
"""

import argparse
import io
import json
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.peers.kafka import Kafka
from tests.spark.histories.player import Player, Running
from tests.spark.histories.scripts import SCRIPTS
from tests.spark.histories.steps import Script

from kohort.testing import Broker

KEPT = {"partition.metadata", "meta.properties"}  # and *.log: the rest can be made from them
SETTINGS = {
    "offsets.topic.num.partitions": "4",
    "group.min.session.timeout.ms": "1000",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "4000",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "300",
    "group.initial.rebalance.delay.ms": "0",
}
ONLY_KAFKA = {"group.consumer.regex.refresh.interval.ms": "10000"}


class _Kafka:
    def __init__(self, kafka: Kafka) -> None:
        self.kafka = kafka
        self.bootstrap = kafka.address

    def crash(self) -> None:
        self.kafka.kill()
        self.kafka.start()


class _Kohort:
    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.bootstrap = broker.bootstrap

    def crash(self) -> None:
        self.broker.kill()
        self.broker.restart()


@contextmanager
def running(on: str, directory: Path) -> Iterator[tuple[Running, Path, Any]]:
    """A broker, where its log will be, and what stops it."""
    if on == "kafka":
        with Kafka(SETTINGS | ONLY_KAFKA, heap="384M", directory=directory) as kafka:
            yield _Kafka(kafka), kafka.data, kafka.stop
    else:
        with Broker(SETTINGS, data_dir=directory, process=True) as broker:
            yield _Kohort(broker), directory, broker.stop


def record(script: Script, on: str, out: Path) -> Path:
    """Play the script and pack what is left of it. The members outlive the broker, so that their
    end is not in the log.
    """
    with (
        tempfile.TemporaryDirectory() as directory,
        running(on, Path(directory)) as (broker, data, stop),
    ):
        player = Player(broker, script, on)
        try:
            truth = player.play()
            stop()
        finally:
            player.end()
        return pack(truth, data, out)


def pack(truth: dict[str, Any], data: Path, out: Path) -> Path:
    out.mkdir(parents=True, exist_ok=True)
    archive = out / f"{truth['name']}.{truth['on']}.tar.xz"
    with tarfile.open(archive, "w:xz", preset=9) as tar:
        text = json.dumps(truth, indent=1, sort_keys=True).encode()
        entry = tarfile.TarInfo("truth.json")
        entry.size = len(text)
        tar.addfile(entry, io.BytesIO(text))
        for file in sorted(data.rglob("*")):
            name = file.relative_to(data)
            folder = name.parts[0]
            internal = folder.startswith("__") and not folder.startswith("__consumer_offsets-")
            if internal or folder.endswith("-delete"):
                continue
            if file.name in KEPT or file.suffix == ".log":
                tar.add(file, arcname=str(name), filter=_anonymous)
    return archive


def _anonymous(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = entry.mtime = 0
    entry.uname = entry.gname = ""
    return entry


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="record", description=__doc__)
    parser.add_argument("names", nargs="+", metavar="NAME", choices=[*SCRIPTS, "all"])
    parser.add_argument("--on", choices=["kafka", "kohort"], required=True)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args(arguments)
    names = list(SCRIPTS) if "all" in given.names else given.names
    failed = 0
    for name in names:
        began = time.monotonic()
        try:
            archive = record(SCRIPTS[name], given.on, given.out)
        except Exception as error:  # noqa: BLE001  (the next one may succeed)
            failed += 1
            print(f"{name}: FAILED: {error!r}", flush=True)
            continue
        seconds = time.monotonic() - began
        print(f"{archive} {archive.stat().st_size} bytes, {seconds:.0f} s", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
