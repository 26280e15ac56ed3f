# SPDX-License-Identifier: Apache-2.0
"""Kafka Connect on our broker, and on the one that it was made for: the same test holds there.

Two workers share connectors as a classic group of the protocol type `connect`, and keep what they
know in compacted topics, which one of them writes in transactions.
"""

import json
import urllib.request

import pytest
from tests.peers.either import WHOSE, either
from tests.peers.programs import Program, class_path, unavailable
from tests.ports import free_port
from tests.waiting import SOON_S, eventually

pytestmark = [pytest.mark.prove, pytest.mark.java, pytest.mark.timeout(600)]

SETTINGS = {"group.initial.rebalance.delay.ms": "0", "transaction.state.log.num.partitions": "3"}
WORKER = "org.apache.kafka.connect.cli.ConnectDistributed"
FILE = "org.apache.kafka.connect.file.FileStream"


@pytest.fixture(scope="module", params=WHOSE)
def bootstrap(request):
    if reason := unavailable():
        pytest.skip(reason)
    with either(request.param, SETTINGS) as address:
        yield address


class Worker(Program):
    """One worker of the group `connect`, with its REST interface."""

    def __init__(self, bootstrap, number, directory):
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        settings = {
            "bootstrap.servers": bootstrap,
            "group.id": "connect",
            "key.converter": "org.apache.kafka.connect.storage.StringConverter",
            "value.converter": "org.apache.kafka.connect.storage.StringConverter",
            "listeners": self.url,
            "plugin.discovery": "only_scan",
            "exactly.once.source.support": "enabled",
            "offset.flush.interval.ms": 500,
            "session.timeout.ms": 6000,
            "heartbeat.interval.ms": 500,
            "scheduled.rebalance.max.delay.ms": 1000,
            "offset.storage.partitions": 3,
            "status.storage.partitions": 2,
        }
        for kind in ("config", "offset", "status"):
            settings[f"{kind}.storage.topic"] = f"connect-{kind}"
            settings[f"{kind}.storage.replication.factor"] = 1
        path = directory / f"worker-{number}.properties"
        path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        output = directory / f"worker-{number}.txt"
        super().__init__(WORKER, str(path), classes=class_path(), output=output)

    def ask(self, path, content=None):
        """An answer of the REST interface; None while it has none."""
        data = None if content is None else json.dumps(content).encode()
        request = urllib.request.Request(self.url + path, data, method="PUT" if data else "GET")
        request.add_header("Content-Type", "application/json")
        try:
            with urllib.request.urlopen(request, timeout=SOON_S) as answer:
                return json.loads(answer.read())
        except OSError:
            assert self.is_running, f"it has ended: {self.words()[-3000:]}"
            return None

    def running(self, *names):
        """The workers that run the connectors' tasks, once each of them has one."""
        workers = []
        for name in names:
            status = self.ask(f"/connectors/{name}/status")
            tasks = (status or {}).get("tasks", [])
            if [one["state"] for one in tasks] != ["RUNNING"]:
                return []
            workers += [one["worker_id"] for one in tasks]
        return workers


def test_two_workers_share_connectors_and_one_takes_over(bootstrap, tmp_path):
    """Lines of a file go into a topic, exactly once, and from there into another file."""
    source, sink = tmp_path / "source.txt", tmp_path / "sink.txt"
    lines = []

    def write(count):
        with source.open("a") as file:
            for number in range(len(lines), len(lines) + count):
                lines.append(f"line {number}")
                file.write(lines[-1] + "\n")

    def arrived():
        return sink.read_text().splitlines() if sink.exists() else []

    def all_arrive():
        eventually(lambda: set(arrived()) == set(lines), f"{len(lines)} lines arrive")

    write(100)
    with (
        Worker(bootstrap, 1, tmp_path) as first,
        Worker(bootstrap, 2, tmp_path) as second,
    ):
        for one in (first, second):
            eventually(lambda one=one: one.ask("/connectors") == [], "a worker is there")
        reading = {
            "connector.class": f"{FILE}SourceConnector",
            "file": str(source),
            "topic": "lines",
            "tasks.max": "1",
        }
        writing = {
            "connector.class": f"{FILE}SinkConnector",
            "file": str(sink),
            "topics": "lines",
            "tasks.max": "1",
            "consumer.override.isolation.level": "read_committed",
        }
        for name, config in (("reading", reading), ("writing", writing)):
            eventually(
                lambda name=name, config=config: first.ask(f"/connectors/{name}/config", config),
                "a connector is made",
            )
        eventually(lambda: first.running("reading", "writing"), "both run")
        all_arrive()
        task = second.running("reading")[0]
        stays, goes = (second, first) if task in first.url else (first, second)
        write(100)
        goes.kill()
        write(100)
        own = stays.url.removeprefix("http://")
        eventually(
            lambda: set(stays.running("reading", "writing")) == {own}, "the other one has both"
        )
        write(100)
        all_arrive()
        stays.end()
    _check_topic(bootstrap, lines)


def _check_topic(bootstrap, lines):
    """Each line is in the topic once, for a reader of committed records."""
    from confluent_kafka import Consumer

    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "readers",
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
        }
    )
    consumer.subscribe(["lines"])
    found = []

    def read():
        found.extend(one.value().decode() for one in consumer.consume(500, 0.5) if not one.error())
        return len(found) >= len(lines)

    eventually(read, "all lines are in the topic")
    consumer.close()
    assert found == lines
