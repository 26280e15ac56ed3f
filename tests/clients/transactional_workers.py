# SPDX-License-Identifier: Apache-2.0
"""Workers that read numbers, write them on and commit in transactions, one after the other."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from tests.waiting import eventually

WORKER = Path(__file__).with_name("worker.py")
WORKERS = [
    pytest.param(
        "confluent-classic", marks=pytest.mark.prove
    ),  # as the next, by the other protocol
    "confluent-consumer",
    "aiokafka",
    "kohort",
]
NUMBERS = 900


class Shift:
    """One worker at a time: where the last one has ended, another one begins."""

    def __init__(self, kind, bootstrap, directory):
        self.arguments = [sys.executable, str(WORKER), kind, bootstrap, "the-worker"]
        self.errors = (directory / "worker.err").open("w")
        self.process = None

    def __enter__(self):
        self.go_on()
        return self

    def go_on(self):
        if self.process is None or self.process.poll() is not None:
            self.process = subprocess.Popen(self.arguments, stderr=self.errors)

    def kill(self):
        self.process.kill()
        self.process.wait(60)

    def __exit__(self, *_):
        self.kill()
        self.errors.close()


class Reader:
    """Everything in `out` that a reader of committed records gets."""

    def __init__(self, bootstrap):
        self.consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "readers",
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
                "reconnect.backoff.max.ms": 300,
            }
        )
        self.consumer.subscribe(["out"])
        self.numbers = Counter()

    def read(self):
        for one in self.consumer.consume(500, 0.2):
            if one.error() is None:
                self.numbers[int(one.value())] += 1
        return len(self.numbers)


def produce(bootstrap):
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    for number in range(NUMBERS):
        producer.produce("in", str(number))
    assert producer.flush(60) == 0


def reach(shift, reader, count):
    """Wait until so many numbers are written on, by whichever worker."""

    def done():
        shift.go_on()
        return reader.read() >= count

    eventually(done, f"{count} numbers are written on", seconds=300)


def assert_each_number_is_written_on_once(reader):
    for _ in range(10):
        reader.read()
    reader.consumer.close()
    assert set(reader.numbers) == set(range(NUMBERS))
    assert not [number for number, count in reader.numbers.items() if count > 1]
