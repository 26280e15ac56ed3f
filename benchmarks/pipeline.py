# SPDX-License-Identifier: Apache-2.0
"""The pipeline's way from the group log to typed columns, beside Kafka's own formatter,
kafka-python and Spark's Kafka connector, on the same records in the same run.

    python benchmarks/pipeline.py [--records 3000000] [--only ours,formatter] [--passes 5]

The unit is records per CPU-second of everything that works on them: driver, JVM and Python workers,
or the one process of a peer. The broker that is read from is not counted. What a line shows is the
last pass, which is warm, and the first beside it. Every way gives the same six columns (group,
topic, partition, offset, metadata, time); a line tells what all of ours cost. With local[1] Spark
and its workers have one core. docs/benchmarks.md says what the figures mean.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from group_log import write_log
from processes import load_average, machine, require_linux

HERE = Path(__file__).parent
ROOT = HERE.parent
PARTITIONS = 50


class Line:
    """One way, and records per CPU-second of each pass, in millions."""

    def __init__(self, name: str, passes: list[float], note: str = "") -> None:
        self.name, self.passes, self.note = name, passes, note

    def row(self) -> str:
        first, last = self.passes[0], self.passes[-1]
        return f"{self.name:44} {last:8.3f} {first:8.3f}   {self.note}"


def spark_passes(
    way: str, place: str, records: int, *, master: str, passes: int, older: bool = False
) -> Line:
    """A way through Spark, in a process of its own: before the first pass nothing is warm."""
    environment = dict(os.environ)
    if older:
        environment["PYTHONPATH"] = str(ROOT / ".venv" / "spark-4.2")
    pinned = ("taskset", "--cpu-list", "0") if master == "local[1]" else ()
    done = subprocess.run(
        [*pinned, sys.executable, str(HERE / "pipeline_spark.py"), way, place, master, str(passes)],
        capture_output=True,
        text=True,
        timeout=1800,
        check=False,
        env=environment,
    )
    if done.returncode:
        raise SystemExit(f"{way} has failed:\n{done.stderr[-3000:]}")
    told = json.loads(done.stdout.splitlines()[-1])
    if not 0 <= told["rows"] - records < 100:  # the console consumer's group is in the log as well
        raise SystemExit(f"{way} gave {told['rows']} rows, expected {records}")
    rates = [records / one["cpu_s"] / 1e6 for one in told["passes"]]
    wall = records / told["passes"][-1]["wall_s"] / 1e6
    return Line(f"{way}, {master}", rates, f"{wall:.2f} M/s of wall time")


def formatter(bootstrap: str, records: int, passes: int) -> Line:
    """Kafka's console consumer with its OffsetsMessageFormatter."""
    from tests.peers.kafka import tool_command

    command = tool_command(
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
        *("--bootstrap-server", bootstrap, "--topic", "__consumer_offsets", "--from-beginning"),
        *("--formatter", "org.apache.kafka.tools.consumer.OffsetsMessageFormatter"),
        *("--command-property", "exclude.internal.topics=false"),
        *("--max-messages", str(records)),
    )
    # The tool's start takes the first compiler only; a long run deserves both.
    command = [word for word in command if not word.startswith(("-XX:Tiered", "-Xmx"))]
    rates = []
    for _ in range(passes):
        before = os.times()
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as process:
            assert process.stdout is not None
            found = 0  # it ends no line; a chunk may cut one of these in two
            while chunk := process.stdout.read(1 << 20):
                found += chunk.count(b'{"key":')
            process.wait(60)
        after = os.times()
        if found < 0.99 * records:
            raise SystemExit(f"the formatter printed {found} records, expected {records}")
        cpu = (
            after.children_user
            + after.children_system
            - before.children_user
            - before.children_system
        )
        rates.append(records / cpu / 1e6)
    return Line("Kafka's OffsetsMessageFormatter", rates, "a JVM of its own each pass")


def kafka_python(directory: Path, records: int, passes: int) -> Line:
    """kafka-python's record parser over the segment files, and a decoder in plain Python."""
    from kafka.record import MemoryRecords
    from plain_decoder import decode

    rates = []
    for _ in range(passes):
        began = time.process_time()
        found = 0
        for file in sorted(directory.glob("__consumer_offsets-*/*.log")):
            parsed = MemoryRecords(file.read_bytes())
            while (batch := parsed.next_batch()) is not None:
                batch.validate_crc()
                for record in batch:
                    found += decode(record.key, record.value) is not None
        rates.append(records / (time.process_time() - began) / 1e6)
        if found != records:
            raise SystemExit(f"kafka-python found {found} records, expected {records}")
    return Line("kafka-python, Python decoder", rates, "no Spark: bare processor time")


def lines(options: argparse.Namespace, directory: Path) -> Iterator[Line]:
    """Every way that was asked for, as it is measured."""
    records = options.records
    place = f"log:{directory}"
    run = {"passes": options.passes}
    if "ours" in options.only:
        yield spark_passes("ours", place, records, master="local[1]", **run)
        yield spark_passes("ours", place, records, master="local[2]", **run)
        yield spark_passes("ours, all columns", place, records, master="local[1]", **run)
    if "kafka-python" in options.only:
        yield kafka_python(directory, records, 1)
    if {"live", "formatter", "connector"} & set(options.only):
        from fill_group_log import filled

        with filled(directory) as bootstrap:
            place = f"cluster:{bootstrap}"
            if "live" in options.only:
                yield spark_passes("ours", place, records, master="local[1]", **run)
                yield spark_passes("ours", place, records, master="local[2]", **run)
            if "formatter" in options.only:
                yield formatter(bootstrap, records, options.passes)
            if "connector" in options.only:
                for way in ("connector, Python decoder", "connector, our decoder"):
                    yield spark_passes(way, place, records, master="local[1]", older=True, **run)


def main() -> None:
    require_linux()
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    ways = ("ours", "live", "formatter", "kafka-python", "connector")
    parser.add_argument("--records", type=int, default=3_000_000)
    parser.add_argument("--groups", type=int, default=300)
    parser.add_argument("--per-batch", type=int, default=30)
    parser.add_argument(
        "--codec", type=int, default=0, help="0 to 4: none, gzip, snappy, lz4, zstd"
    )
    parser.add_argument("--passes", type=int, default=5)
    parser.add_argument("--only", default=",".join(ways))
    options = parser.parse_args()
    options.only = options.only.split(",")
    sys.path.insert(0, str(ROOT))
    print(f"{machine()}, load {load_average():.1f}\n")
    with tempfile.TemporaryDirectory(prefix="kohort-bench-") as temporary:
        directory = Path(temporary)
        options.records = write_log(
            directory,
            options.records,
            groups=options.groups,
            per_batch=options.per_batch,
            codec=options.codec,
            partitions=PARTITIONS,
        )
        print(f"{'M records per CPU-second':44} {'last':>8} {'first':>8}")
        for line in lines(options, directory):
            print(line.row(), flush=True)


if __name__ == "__main__":
    main()
