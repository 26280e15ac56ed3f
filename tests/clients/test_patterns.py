# SPDX-License-Identifier: Apache-2.0
"""Stock clients subscribe by a pattern: the broker matches it, or in classic groups they do."""

import pytest
from confluent_kafka import Consumer
from tests.clients.member_processes import create_topic
from tests.waiting import eventually

pytestmark = [pytest.mark.clients, pytest.mark.timeout(300)]


@pytest.fixture
def consumer_of(broker):
    opened = []

    def opens(protocol):
        settings = {
            "bootstrap.servers": broker.bootstrap,
            "group.id": f"by-pattern-{protocol}",
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
            "topic.metadata.refresh.interval.ms": 500,
        }
        if protocol == "classic":
            settings |= {"session.timeout.ms": 6000, "heartbeat.interval.ms": 500}
        consumer = Consumer(settings)
        opened.append(consumer)
        return consumer

    yield opens
    for consumer in opened:
        consumer.close()


def has(consumer, *topics):
    def done():
        consumer.poll(0.05)
        return {one.topic for one in consumer.assignment()} == set(topics)

    return done


@pytest.mark.parametrize("protocol", ["consumer", "classic"])
def test_topics_come_by_a_pattern_and_later_ones_too(protocol, broker, consumer_of):
    """K848-110, K848-112, K848-167."""
    for name in ("orders-eu", "payments"):
        create_topic(broker.bootstrap, name, 2)
    consumer = consumer_of(protocol)
    consumer.subscribe(["^orders-.*"])
    eventually(has(consumer, "orders-eu"), "it has the topic that matches")

    create_topic(broker.bootstrap, "orders-us", 1)
    create_topic(broker.bootstrap, "refunds", 1)
    eventually(has(consumer, "orders-eu", "orders-us"), "it has the later topic")

    if protocol == "consumer":
        member = broker.groups[f"by-pattern-{protocol}"].describe().members[0]
        assert member.subscribed_regex == "(^orders-.*)"  # as librdkafka puts several together


def test_names_and_a_pattern_together(broker, consumer_of):
    for name in ("orders-eu", "payments"):
        create_topic(broker.bootstrap, name, 2)
    consumer = consumer_of("consumer")
    consumer.subscribe(["payments", "^orders-.*"])
    eventually(has(consumer, "orders-eu", "payments"), "it has both")


def test_a_pattern_that_re2_does_not_know_is_an_error_of_the_consumer(broker, consumer_of):
    """K848-111: one that librdkafka lets through, and RE2 does not."""
    create_topic(broker.bootstrap, "orders-eu", 2)
    consumer = consumer_of("consumer")
    consumer.subscribe([r"^orders.{1001}"])
    seen = []

    def refused():
        message = consumer.poll(0.1)
        if message is not None and message.error() is not None:
            seen.append(message.error().str())
        return bool(seen)

    eventually(refused, "it is told")
    assert "regular expression" in seen[0]
