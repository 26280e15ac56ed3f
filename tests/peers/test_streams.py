# SPDX-License-Identifier: Apache-2.0
"""Kafka Streams on our broker, and on the one that it was made for: the same tests hold there.

Two instances share the work as a classic group of the protocol type `consumer`, whose assignor
sends bytes that no broker reads. They make topics of their own for what they regroup and count.
"""

from collections import defaultdict
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from tests.clients.member_processes import create_topic
from tests.peers.either import WHOSE, either
from tests.peers.programs import Program, compiled, unavailable
from tests.waiting import eventually

pytestmark = [pytest.mark.prove, pytest.mark.java, pytest.mark.timeout(600)]

SOURCE = Path(__file__).with_name("Counting.java")
WORDS = [f"word-{number}" for number in range(20)]
SETTINGS = {"group.initial.rebalance.delay.ms": "0", "transaction.state.log.num.partitions": "3"}


@pytest.fixture(scope="module")
def classes(tmp_path_factory):
    if reason := unavailable():
        pytest.skip(reason)
    return compiled(SOURCE, tmp_path_factory.mktemp("classes"))


@pytest.fixture(scope="module", params=WHOSE)
def bootstrap(request, classes):
    with either(request.param, SETTINGS) as address:
        yield address


class Counts:
    """What a reader of committed records finds in `out`: the counts of each word, in order."""

    def __init__(self, bootstrap, topic):
        self.consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": f"readers-of-{topic}",
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
            }
        )
        self.consumer.subscribe([topic])
        self.told = defaultdict(list)

    def read(self):
        for one in self.consumer.consume(500, 0.2):
            if one.error() is None:
                self.told[one.key().decode()].append(int(one.value()))

    def until(self, rounds):
        def done():
            self.read()
            return all(rounds in self.told[word] for word in WORDS)

        eventually(done, f"each word is counted up to {rounds}")

    def close(self):
        for _ in range(5):
            self.read()
        self.consumer.close()


def produce(bootstrap, rounds):
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(rounds):
        for word in WORDS:
            producer.produce("in", word, key=f"{word}-{number}")
    assert producer.flush(60) == 0


@pytest.fixture
def topics(bootstrap):
    """Names are the application's, so each test has a broker's topics anew."""
    from confluent_kafka.admin import AdminClient

    for name in ("in", "out"):
        create_topic(bootstrap, name, 4)
    yield
    admin = AdminClient({"bootstrap.servers": bootstrap})
    names = [name for name in admin.list_topics(timeout=30).topics if not name.startswith("__")]
    for future in admin.delete_topics(names).values():
        future.result(60)


@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
@pytest.mark.usefixtures("topics")
def test_two_instances_count_and_one_takes_over_when_the_other_is_gone(
    guarantee, bootstrap, classes, tmp_path
):
    """With `exactly_once_v2` each count is told once, although an instance is killed amid it. With
    `at_least_once` an instance leaves in order, and no count is lost.
    """
    exactly = guarantee == "exactly_once_v2"

    def instance(number):
        return Program(
            "Counting",
            *(bootstrap, f"counting-{guarantee}", str(tmp_path / f"state-{number}"), guarantee),
            classes=classes,
            output=tmp_path / f"instance-{number}.txt",
        )

    counts = Counts(bootstrap, "out")
    with instance(1) as first, instance(2) as second:
        first.until_said("state RUNNING")
        second.until_said("state RUNNING")
        produce(bootstrap, 10)
        counts.until(10)
        produce(bootstrap, 10)
        if exactly:
            first.kill()
        else:
            first.end()
        counts.until(20)
        produce(bootstrap, 5)
        counts.until(25)
        second.end()
    counts.close()

    for word in WORDS:
        if exactly:
            assert counts.told[word] == list(range(1, 26))
        else:
            assert sorted(set(counts.told[word])) == list(range(1, 26))
