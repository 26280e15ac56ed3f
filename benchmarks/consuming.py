# SPDX-License-Identifier: Apache-2.0
"""What a record costs the process that consumes it: our consumer beside those of other packages.

    python benchmarks/consuming.py [--rounds 3] [--megabytes 100] [--sizes 100,1000]
        [--only kohort,aiokafka] [--bootstrap HOST:PORT]

Each consumer is a process of its own that reads the same topic from its beginning, as the one
member of a group, without committing: one by one, and in batches of its own `getmany`, `poll` or
`consume`. The figure is records per second of its own processor time (all threads, user and
system), from the first record to the last. Rounds are interleaved; a ratio is the median of those
within a round. Without `--bootstrap` a broker of Kohort's serves them, in a process of its own.
Last comes the resident memory of each while it waits, with all of its partitions.
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

from processes import load_average, machine

HERE = Path(__file__).parent
PARTITIONS = 6
WAYS = (
    *("kohort one by one", "aiokafka one by one", "kafka-python one by one"),
    *("confluent-kafka one by one", "kohort batches", "aiokafka batches"),
    *("kafka-python batches", "confluent-kafka batches"),
)
BATCH = 500
GROUPS = count()


class Meter:
    """Counts from the first record on."""

    def __init__(self, wanted: int) -> None:
        self.seen = 0
        self.bytes = 0
        self.wanted = wanted
        self._first: tuple[int, float] | None = None
        self.done = False

    def took(self, values: list[bytes]) -> None:
        if self._first is None:
            self._first = (len(values), _cpu_s())
        self.seen += len(values)
        self.bytes += sum(map(len, values))
        self.done = self.seen >= self.wanted

    def rate(self) -> float:
        assert self._first is not None
        first, began = self._first
        return (self.seen - first) / (_cpu_s() - began)


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def kohort(bootstrap: str, group: str, how: str, meter: Meter) -> None:
    import asyncio

    from kohort import Consumer

    async def read() -> None:
        async with Consumer(
            "t",
            bootstrap_servers=bootstrap,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        ) as consumer:
            if how == "batches":
                while not meter.done:
                    batches = await consumer.getmany(timeout_ms=1000, max_records=BATCH)
                    for records in batches.values():
                        meter.took([record.value for record in records])
            else:
                async for record in consumer:
                    meter.took([record.value])
                    if meter.done:
                        break
            tell(meter)

    asyncio.run(read())


def aiokafka(bootstrap: str, group: str, how: str, meter: Meter) -> None:
    import asyncio

    from aiokafka import AIOKafkaConsumer

    async def read() -> None:
        consumer = AIOKafkaConsumer(
            "t",
            bootstrap_servers=bootstrap,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )
        await consumer.start()
        if how == "batches":
            while not meter.done:
                batches = await consumer.getmany(timeout_ms=1000, max_records=BATCH)
                for records in batches.values():
                    meter.took([record.value for record in records])
        else:
            async for record in consumer:
                meter.took([record.value])
                if meter.done:
                    break
        tell(meter)
        await consumer.stop()

    asyncio.run(read())


def kafka_python(bootstrap: str, group: str, how: str, meter: Meter) -> None:
    from kafka import KafkaConsumer

    consumer = KafkaConsumer(
        "t",
        bootstrap_servers=bootstrap,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    if how == "batches":
        while not meter.done:
            for records in consumer.poll(timeout_ms=1000, max_records=BATCH).values():
                meter.took([record.value for record in records])
    else:
        for record in consumer:
            meter.took([record.value])
            if meter.done:
                break
    tell(meter)
    consumer.close(autocommit=False)


def confluent_kafka(bootstrap: str, group: str, how: str, meter: Meter) -> None:
    from confluent_kafka import Consumer

    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe(["t"])
    while not meter.done:
        if how == "batches":
            records = consumer.consume(BATCH, 1.0)
        else:
            record = consumer.poll(1.0)
            records = [] if record is None else [record]
        if records:
            meter.took([record.value() for record in records])
    tell(meter)
    consumer.close()


def tell(meter: Meter) -> None:
    """The rate, and the memory once nothing comes any more."""
    rate = meter.rate()
    time.sleep(0.5)
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    told = {"rate": rate, "bytes": meter.bytes, "mb": pages * 4096 / 1e6, "peak_mb": peak / 1e3}
    print(json.dumps(told), flush=True)


def measure(bootstrap: str, way: str, wanted: int) -> dict[str, float]:
    """One consumer, in a process of its own."""
    client, _, how = way.partition(" ")
    group = f"bench-{next(GROUPS)}-{time.time_ns()}"
    words = [client.replace("-", "_"), bootstrap, group, how, str(wanted)]
    command = [sys.executable, __file__, "--be", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    if done.returncode:
        raise RuntimeError(f"{way}: {done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def be(words: list[str]) -> None:
    client, bootstrap, group, how, wanted = words
    globals()[client](bootstrap, group, how, Meter(int(wanted)))


def fill(bootstrap: str, size: int, records: int) -> None:
    from confluent_kafka import Producer
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": bootstrap})
    for done in admin.create_topics([NewTopic("t", PARTITIONS, 1)]).values():
        done.result(30)
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20, "batch.size": 65536})
    for number in range(records):
        value = b"%010d" % number + bytes(size - 10)
        while True:
            try:
                producer.produce("t", value, partition=number % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.1)
    if producer.flush(120):
        raise RuntimeError("not all was written")


def rounds(bootstrap: str, ways: list[str], size: int, records: int, many: int) -> dict:
    found: dict[str, list[dict[str, float]]] = {way: [] for way in ways}
    for number in range(many):
        for way in ways if number % 2 == 0 else reversed(ways):
            one = measure(bootstrap, way, records)
            assert one["bytes"] == size * records, f"{way} has read {one['bytes']} bytes"
            found[way].append(one)
            print(f"  {size} B, {way}: {one['rate']:,.0f} records/CPU-s", file=sys.stderr)
    return found


def shown(size: int, found: dict[str, list[dict[str, float]]]) -> None:
    for how in ("one by one", "batches"):
        ours = found.get(f"kohort {how}")
        for way, ones in found.items():
            if not way.endswith(how):
                continue
            rates = [one["rate"] for one in ones]
            line = f"{size:>6} B  {way:<28} {statistics.median(rates):>12,.0f} records/CPU-s"
            line += f"  {statistics.median(one['mb'] for one in ones):>5.0f} MB at rest"
            if ours and ones is not ours:
                ratios = [a["rate"] / b["rate"] for a, b in zip(ours, ones, strict=True)]
                low, high = min(ratios), max(ratios)
                line += f"  ours : theirs {statistics.median(ratios):.2f} ({low:.2f} to {high:.2f})"
            print(line)


def main() -> None:
    if sys.argv[1:2] == ["--be"]:
        be(sys.argv[2:])
        return
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--megabytes", type=float, default=100, help="of values, per size (100)")
    parser.add_argument("--sizes", default="100,1000", help="bytes of a value (100,1000)")
    parser.add_argument("--only", default="", help="clients, all of them by default")
    parser.add_argument("--bootstrap", default="", help="another broker, with no topic t")
    given = parser.parse_args()
    ways = [way for way in WAYS if not given.only or way.split(" ")[0] in given.only.split(",")]
    print(f"{machine()}, load {load_average()}")
    kept = {}
    for size in map(int, given.sizes.split(",")):
        records = int(given.megabytes * 1e6 / size)
        from kohort.testing import Broker

        if given.bootstrap:
            fill(given.bootstrap, size, records)
            found = rounds(given.bootstrap, ways, size, records, given.rounds)
        else:
            with Broker(process=True) as broker:
                fill(broker.bootstrap, size, records)
                found = rounds(broker.bootstrap, ways, size, records, given.rounds)
        shown(size, found)
        kept[size] = found
    results = HERE / "results"
    results.mkdir(exist_ok=True)
    path = results / f"{datetime.now(UTC):%Y%m%d-%H%M%S}-consuming.json"
    path.write_text(json.dumps({"machine": machine(), "sizes": kept}, indent=1) + "\n")


if __name__ == "__main__":
    main()
