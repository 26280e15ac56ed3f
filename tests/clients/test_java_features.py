# SPDX-License-Identifier: Apache-2.0
"""Java clients as static members, with patterns and in transactions: on our broker, and on the one
that they were made for, where the same holds.
"""

import json
from collections import Counter
from pathlib import Path

import pytest
from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient
from tests.clients.member_processes import create_topic, produce
from tests.peers import kafka
from tests.peers.either import WHOSE, either
from tests.peers.java_client import JavaConsumer
from tests.peers.kafka import unavailable
from tests.peers.programs import Program, compiled
from tests.waiting import eventually

pytestmark = [pytest.mark.clients, pytest.mark.java, pytest.mark.timeout(600)]

SETTINGS = {
    "num.partitions": "6",
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.min.heartbeat.interval.ms": "300",
    "group.consumer.heartbeat.interval.ms": "300",
    "transaction.state.log.num.partitions": "3",
}
PROTOCOLS = ["classic", "consumer"]
SUBSCRIBER = Path(__file__).parents[1] / "peers" / "Subscriber.java"
COPIER = "org.apache.kafka.tools.TransactionalMessageCopier"


@pytest.fixture(scope="module", params=WHOSE)
def bootstrap(request):
    if reason := unavailable():
        pytest.skip(reason)
    with either(request.param, SETTINGS) as address:
        yield address


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_java_members_with_instance_ids_restart_one_by_one(protocol, bootstrap):
    """Each comes back to its partitions, and the others are told nothing.

    Holds K848-106, K848-107.
    """
    topic, group = f"static-{protocol}", f"static-{protocol}"
    create_topic(bootstrap, topic, 6)
    produce(bootstrap, topic, range(30))

    def member(instance):
        properties = {"heartbeat.interval.ms": 300} if protocol == "classic" else {}
        return JavaConsumer(
            bootstrap,
            group,
            topic,
            protocol=protocol,
            properties=properties,
            arguments=("--group-instance-id", instance),
        )

    members = {}
    try:
        for instance in ("i-1", "i-2"):
            members[instance] = member(instance)
            members[instance].start()
        for one in members.values():
            one.until(lambda it: len(it.assigned) == 3)
        eventually(
            lambda: sum(sum(one.committed.values()) for one in members.values()) == 30,
            "all of it is committed",
        )
        everyone, records = list(members.values()), 30
        for instance, old in list(members.items()):
            had = set(old.assigned)
            (other,) = [one for one in members.values() if one is not old]
            told = rebalances(other)
            old.leave()
            produce(bootstrap, topic, range(30))
            members[instance] = new = member(instance)
            new.start()
            new.until(lambda it, had=had: it.assigned == had)
            everyone.append(new)
            records += 30
            eventually(
                lambda records=records: (
                    len({one[:3] for it in everyone for one in it.records}) == records
                ),
                f"{records} records are read",
            )
            assert rebalances(other) == told
    finally:
        for one in members.values():
            one.kill()
            one.directory.cleanup()


def rebalances(member):
    return sum(
        one["name"] in ("partitions_assigned", "partitions_revoked") for one in member.events
    )


@pytest.mark.parametrize(
    ("protocol", "who"), [("classic", "client"), ("consumer", "client"), ("consumer", "broker")]
)
def test_topics_come_to_java_members_by_a_pattern(protocol, who, bootstrap, tmp_path):
    """K848-110, K848-112: `SubscriptionPattern` is matched by the broker."""
    classes = compiled(SUBSCRIBER, tmp_path)
    name = f"{protocol}-{who}"
    for topic in (f"{name}-orders-eu", f"{name}-payments"):
        create_topic(bootstrap, topic, 2)
    produce(bootstrap, f"{name}-orders-eu", [1])
    pattern = f"{name}-orders-.*"
    with Program(
        "Subscriber",
        *(bootstrap, f"by-pattern-{name}", protocol, who, pattern),
        classes=classes,
        output=tmp_path / "said.txt",
    ) as subscriber:
        subscriber.until_said(f"assigned {name}-orders-eu-0 {name}-orders-eu-1.")
        subscriber.until_said(f"record {name}-orders-eu 1.")
        create_topic(bootstrap, f"{name}-orders-us", 1)
        create_topic(bootstrap, f"{name}-refunds", 1)
        produce(bootstrap, f"{name}-orders-us", [2])
        subscriber.until_said(f"record {name}-orders-us 2.")
        subscriber.end()
        assert "closed" in subscriber.words()
    assert "payments" not in subscriber.words()
    assert "refunds" not in subscriber.words()


def test_a_java_producer_copies_in_transactions_and_its_heir_goes_on(bootstrap, tmp_path):
    """Some transactions it aborts. It is killed in the middle of one; with the same transactional
    id its heir fences it, and each number is in the copy once.
    """
    for topic in ("original", "copy"):
        create_topic(bootstrap, topic, 1)
    produce(bootstrap, "original", range(2000))

    def copier(number):
        return Program(
            COPIER,
            *("--broker-list", bootstrap, "--transactional-id", "copier"),
            *("--input-topic", "original", "--input-partition", "0", "--output-topic", "copy"),
            *("--consumer-group", "copiers", "--transaction-size", "50"),
            *("--enable-random-aborts", "--use-group-metadata"),
            # What the killed one has begun is over before its heir gives up asking for offsets.
            *("--transaction-timeout", "10000"),
            classes=kafka.class_path(),
            output=tmp_path / f"copier-{number}.txt",
        )

    def told(one):
        return [json.loads(line) for line in one.words().splitlines() if line.startswith("{")]

    with copier(1) as first:
        eventually(lambda: any(one["consumed"] for one in told(first)), "it copies")
        first.kill()
    with copier(2) as heir:
        heir.until_said('"ShutdownComplete"')
    reader = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "readers",
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
        }
    )
    reader.subscribe(["copy"])
    found = Counter()

    def read():
        found.update(int(one.value()) for one in reader.consume(500, 0.5) if not one.error())
        return len(found) == 2000

    eventually(read, "2,000 numbers are in the copy")
    read()
    reader.close()
    assert set(found.values()) == {1}
    topics = AdminClient({"bootstrap.servers": bootstrap}).list_topics(timeout=30).topics
    assert len(topics["__transaction_state"].partitions) == 3
