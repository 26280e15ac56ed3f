# SPDX-License-Identifier: Apache-2.0
"""A real Apache Kafka as a source: a log that its cleaner has thinned, and forbidden topics."""

import time

import pytest
from tests.peers import kafka
from tests.spark.sources.commits import create, produce
from tests.spark.sources.test_record_estimate import KEYS, judge
from tests.waiting import SOON_S

from kohort.pipeline.sources.log_position import SourceError
from kohort.spark.sources import record_estimate
from kohort.spark.sources.feed import Span
from kohort.spark.sources.topic import TopicSource

pytestmark = [pytest.mark.java, pytest.mark.timeout(300)]

SETTINGS = {
    "log.cleaner.backoff.ms": 100,
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}
COMPACTED = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.01",
    "segment.ms": "500",
}


@pytest.fixture(scope="module")
def broker():
    if reason := kafka.unavailable():
        pytest.skip(reason)
    with kafka.Kafka(SETTINGS, heap="384M") as running:
        yield running


def test_a_compacted_log_has_few_tasks(broker, monkeypatch):
    monkeypatch.setattr(record_estimate, "SPAN_RECORDS", 100)
    create(broker.address, "letters", 1, **COMPACTED)
    produce(broker.address, "letters", KEYS, **{"batch.num.messages": 10})
    live = TopicSource(broker.address, "letters")
    until = time.monotonic() + SOON_S
    while sum(one.weight for one in live._feed.weigh({0: (0, 6000)})) > 1000:
        assert time.monotonic() < until, "Kafka has cleaned nothing"
        time.sleep(0.6)
        produce(broker.address, "letters", KEYS[:10])  # a segment ends when it is written to
    produce(broker.address, "letters", map(str, range(600)), **{"batch.num.messages": 10})

    judge(live)


def test_topics_that_may_not_be_seen_or_not_be_read(broker):
    create(broker.address, "unseen", 1)
    create(broker.address, "unread", 1)
    produce(broker.address, "unread", ["a", "b"])
    forbid(broker.address, "unseen", "READ")
    forbid(broker.address, "unread", "READ", "DESCRIBE")
    unread = TopicSource(broker.address, "unread")

    assert unread.identity().topic_id is not None
    for ask in (
        lambda: TopicSource(broker.address, "unseen").plan({}),
        lambda: unread.plan({}),
        lambda: list(unread._feed.read([Span(0, 0, 2)])),
    ):
        with pytest.raises(SourceError, match="may not be read: allow this client Describe and R"):
            ask()


def forbid(bootstrap, topic, operation, *allowed):
    from confluent_kafka import admin as ck

    def rule(what, how):
        topics, literal = ck.ResourceType.TOPIC, ck.ResourcePatternType.LITERAL
        operation = ck.AclOperation[what]
        return ck.AclBinding(topics, topic, literal, "User:ANONYMOUS", "*", operation, how)

    rules = [rule(operation, ck.AclPermissionType.DENY)]
    rules += [rule(one, ck.AclPermissionType.ALLOW) for one in allowed]
    client = ck.AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    for one in client.create_acls(rules).values():
        one.result(30)
