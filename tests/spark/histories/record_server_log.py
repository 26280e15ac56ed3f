# SPDX-License-Identifier: Apache-2.0
"""Record what Kafka's own log file says beside a history: NAME... --out DIR.

Each script is played on a real Kafka in a zone with quarters of an hour. The archive is as those of
`record`, with `server.log` beside the folders: the lines of its coordinators.
"""

import argparse
import asyncio
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.peers.kafka import Kafka
from tests.spark.histories import record, scripts
from tests.spark.histories.player import Player
from tests.spark.histories.steps import Produce, Script, Stable, Start, Topic

from kohort.testing.cluster_client import ClusterClient

ZONE = "Asia/Kathmandu"  # 5:45 h east of Greenwich
COORDINATOR = b" (org.apache.kafka.coordinator."  # the rest is about threads and settings
# As Kafka's own config/log4j2.yaml has it.
LOG4J = """
status = error
appender.file.type = File
appender.file.name = file
appender.file.fileName = server.log
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = [%d] %p %m (%c)%n
rootLogger.level = info
rootLogger.appenderRef.file.ref = file
"""


@dataclass(frozen=True)
class Kick:
    """An operator removes the members of a classic group."""

    group: str


class _Player(Player):
    def act(self, step: Any) -> dict[str, Any] | None:
        if not isinstance(step, Kick):
            return super().act(step)

        async def kick() -> int:
            asker = ClusterClient(self.broker.bootstrap)
            try:
                return await asker.remove_members(step.group, None)
            finally:
                await asker.close()

        return {"kicked": asyncio.run(kick())}


def _kicked(kind: Any, instance_id: str | None = None) -> tuple[Any, ...]:
    return (
        Topic("orders", 2),
        Produce("orders", {0: 3}),
        Start("a", "g", ("orders",), kind, instance_id),
        Stable("g", ("a",)),
        Kick("g"),
        Stable("g", ("a",)),
    )


SCRIPTS = {
    **{
        name: scripts.SCRIPTS[name]
        for name in (
            "consumer-life",
            "classic-life",
            "consumer-stall",
            "classic-stall",
            "consumer-static",
            "classic-static",
        )
    },
    "kicked": Script("kicked", _kicked("classic")),
    "kicked-consumer": Script("kicked-consumer", _kicked("consumer")),
    "kicked-static": Script("kicked-static", _kicked("consumer", "static-a")),
}


def play(script: Script, out: Path) -> Path:
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        (folder / "log4j2.properties").write_text(LOG4J)
        flags = (f"-Duser.timezone={ZONE}", "-Dlog4j2.configurationFile=log4j2.properties")
        settings = record.SETTINGS | record.ONLY_KAFKA
        with Kafka(settings, heap="384M", directory=folder, flags=flags) as kafka:
            player = _Player(record._Kafka(kafka), script, "kafka")
            try:
                truth = player.play()
                kafka.stop()
            finally:
                player.end()
        said = (folder / "server.log").read_bytes().splitlines(keepends=True)
        kept = [line for line in said if COORDINATOR in line]
        (kafka.data / "server.log").write_bytes(b"".join(kept))
        packed = record.pack(truth, kafka.data, out)
        return packed.rename(out / f"{script.name}.tar.xz")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="record_server_log", description=__doc__)
    parser.add_argument("names", nargs="+", metavar="NAME", choices=[*SCRIPTS, "all"])
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args(arguments)
    for name in SCRIPTS if "all" in given.names else given.names:
        try:
            print(play(SCRIPTS[name], given.out), flush=True)
        except Exception as error:  # noqa: BLE001  (the next one may succeed)
            print(f"{name}: FAILED: {error!r}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
