# SPDX-License-Identifier: Apache-2.0
"""What a test suite waits for: 100 tests, each with a topic and a group of its own.

    python benchmarks/testing.py [--tests 100] [--ways kohort,mock,kafka] [--kinds consumer,classic]

Each test creates a topic, produces ten records with confluent-kafka, reads them as a group, commits
and leaves. The kinds are the two protocols of groups, and each with an offset that was committed in
advance (`-placed`): without one librdkafka waits for 100 ms before it looks for the beginning. The
same tests run against Kohort in a thread, librdkafka's mock cluster and one real
Kafka, each started once. The start and stop of a broker in a thread is measured beside it. Every
figure is kept in benchmarks/results/.
"""

import argparse
import contextlib
import json
import statistics
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from processes import load_average, machine
from servers import Kafka, unavailable

from kohort.testing import Broker

HERE = Path(__file__).parent
RECORDS = 10
WAIT_S = 60.0
STARTS = 30


@contextlib.contextmanager
def kohort() -> Iterator[str]:
    with Broker() as broker:
        yield broker.bootstrap


@contextlib.contextmanager
def mock() -> Iterator[str]:
    """It lives in a producer, whose metadata says where."""
    home = Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "ignored:1"})
    (broker,) = home.list_topics(timeout=WAIT_S).brokers.values()
    yield f"{broker.host}:{broker.port}"
    home.flush(0)


@contextlib.contextmanager
def kafka() -> Iterator[str]:
    settings = {
        "group.initial.rebalance.delay.ms": 0,
        "group.consumer.min.heartbeat.interval.ms": 100,
        "group.consumer.heartbeat.interval.ms": 100,
    }
    with Kafka(settings) as broker:
        yield broker.address


WAYS = {"kohort": kohort, "mock": mock, "kafka": kafka}


class Suite:
    """The tests of one session: they share what a suite would share. With `placed`, a group has an
    offset committed before its consumer comes, which then need not look for the beginning.
    """

    def __init__(
        self, bootstrap: str, protocol: str, *, creates: bool, placed: bool = False
    ) -> None:
        self.placed = placed
        self.bootstrap = bootstrap
        self.protocol = protocol
        self.admin = AdminClient({"bootstrap.servers": bootstrap}) if creates else None
        self.producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})

    def test(self, number: int) -> None:
        name = f"{self.protocol}-{'placed' if self.placed else 'new'}-{number}"
        topic, group = f"topic-{name}", f"group-{name}"
        if self.admin is not None:
            self.admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(WAIT_S)
        for value in range(RECORDS):
            self.producer.produce(topic, str(value))
        assert self.producer.flush(WAIT_S) == 0
        if self.placed:
            place = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0, 0)])
            self.admin.alter_consumer_group_offsets([place])[group].result(WAIT_S)
        consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": group,
                "group.protocol": self.protocol,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
            }
        )
        consumer.subscribe([topic])
        read = consumer.consume(RECORDS, WAIT_S)
        assert sorted(int(one.value()) for one in read) == list(range(RECORDS))
        consumer.commit(asynchronous=False)
        consumer.close()


def measure(way: str, kinds: list[str], tests: int) -> dict[str, object]:
    began = time.perf_counter()
    with WAYS[way]() as bootstrap:
        figures: dict[str, object] = {"start_s": time.perf_counter() - began}
        for kind in kinds:
            protocol, _, placed = kind.partition("-")
            suite = Suite(bootstrap, protocol, creates=way != "mock", placed=bool(placed))
            each = []
            for number in range(tests):
                begin = time.perf_counter()
                suite.test(number)
                each.append(time.perf_counter() - begin)
            figures[kind] = {"all_s": sum(each), "median_ms": statistics.median(each) * 1000}
        ended = time.perf_counter()
    figures["stop_s"] = time.perf_counter() - ended
    return figures


def starts(**options: object) -> dict[str, float]:
    """Milliseconds of start and close of a broker in a thread."""
    both = []
    Broker(**options).start().close()  # it imports what the others need
    for _ in range(STARTS):
        broker = Broker(**options)
        begin = time.perf_counter()
        broker.start()
        middle = time.perf_counter()
        broker.close()
        both.append((middle - begin, time.perf_counter() - middle))
    begun, closed = (sorted(1000 * one for one in kind) for kind in zip(*both, strict=True))
    return {
        "start_median_ms": statistics.median(begun),
        "close_median_ms": statistics.median(closed),
        "start_least_ms": begun[0],
        "close_least_ms": closed[0],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="What a test suite waits for.")
    parser.add_argument("--tests", type=int, default=100)
    parser.add_argument("--ways", default="kohort,mock,kafka")
    parser.add_argument("--kinds", default="consumer,classic,consumer-placed,classic-placed")
    given = parser.parse_args()
    ways = given.ways.split(",")
    if "kafka" in ways and (reason := unavailable()):
        print(f"without Apache Kafka: {reason}")
        ways.remove("kafka")
    result: dict[str, object] = {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "load_before": load_average(),
        "tests": given.tests,
    }
    for name, options in (("as it is", {}), ("that keeps nothing", {"in_memory": True})):
        result[name] = figures = starts(**options)
        print(
            f"a broker in a thread {name}: start {figures['start_median_ms']:.1f} ms, "
            f"close {figures['close_median_ms']:.1f} ms (medians of {STARTS})"
        )
    for way in ways:
        kinds = [one for one in given.kinds.split(",") if way != "mock" or "-" not in one]
        result[way] = found = measure(way, kinds, given.tests)
        print(f"{way}: start {found['start_s']:.2f} s, stop {found['stop_s']:.2f} s")
        for kind in kinds:
            one = found[kind]
            print(
                f"  {kind:16} {one['all_s']:6.1f} s, {one['median_ms']:5.0f} ms a test", flush=True
            )
    result["load_after"] = load_average()
    folder = HERE / "results"
    folder.mkdir(exist_ok=True)
    path = folder / f"testing-{datetime.now(UTC):%Y%m%dT%H%M%S}.json"
    path.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    print(f"load {result['load_before']} before, {result['load_after']} after; {path}")


if __name__ == "__main__":
    main()
