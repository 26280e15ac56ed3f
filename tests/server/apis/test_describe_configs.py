# SPDX-License-Identifier: Apache-2.0
"""DescribeConfigs: every value, and where it comes from."""

import pytest
from tests.server.apis.asking import describe, value
from tests.server.desk import Desk

from kohort.config import BROKER_SETTINGS, TOPIC_SETTINGS
from kohort.errors import ErrorCode
from kohort.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource

SET, DELETE, APPEND, SUBTRACT = range(4)

TOPIC, BROKER, GROUP = 2, 4, 32

SHOWN = set(BROKER_SETTINGS) - {"super.users", "allow.everyone.if.no.acl.found"}
"""Of a broker that sets nothing for its authorizer."""


@pytest.fixture
def desk():
    desk = Desk(node_id="1", log_retention_ms="5000")
    desk.create(retention_bytes="77")
    return desk


def test_everything_about_a_topic(desk):
    result = describe(desk, TOPIC, "orders", include_documentation=True)

    assert {one.name for one in result.configs} == set(TOPIC_SETTINGS)
    assert [one.name for one in result.configs][:4] == [
        "compression.type",
        "remote.log.delete.on.disable",
        "leader.replication.throttled.replicas",
        "remote.storage.enable",
    ]  # upstream's order, by which some clients read
    assert all(one.documentation for one in result.configs)
    assert not any(one.read_only for one in result.configs)
    assert value(desk, "retention.bytes") == ("77", 1)
    assert value(desk, "retention.ms") == ("5000", 4)
    assert value(desk, "segment.bytes") == ("1073741824", 5)


def test_a_resource_that_is_asked_for_again_is_described_once(desk):
    """A small request would have an answer a thousand times as large. Other keys are another
    question.
    """
    names = [(BROKER, "1", None), (TOPIC, "orders", ["retention.ms"]), (BROKER, "1", [])]
    names += [(TOPIC, "orders", ["segment.ms"]), (GROUP, "g", None), (TOPIC, "nowhere", None)]
    request = DescribeConfigsRequest(
        resources=[
            DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
            for kind, name, keys in names * 3
        ]
    )
    results = desk.ask(request, 4).results

    told = [(one.resource_type, one.resource_name, len(one.configs)) for one in results]
    assert told == [
        (BROKER, "1", len(SHOWN)),
        (TOPIC, "orders", 1),
        (TOPIC, "orders", 1),
        (GROUP, "g", told[3][2]),
        (TOPIC, "nowhere", 0),
    ]
    assert told[3][2]
    assert results[4].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_where_a_value_comes_from(desk):
    (one,) = describe(desk, TOPIC, "orders", ["retention.bytes"], include_synonyms=True).configs
    assert [(s.name, s.value, s.source) for s in one.synonyms] == [
        ("retention.bytes", "77", 1),
        ("log.retention.bytes", "-1", 5),
    ]
    (one,) = describe(desk, TOPIC, "orders", ["retention.ms"], include_synonyms=True).configs
    assert [(s.name, s.value, s.source) for s in one.synonyms] == [
        ("log.retention.ms", "5000", 4),
        ("log.retention.hours", "168", 5),
    ]


def test_everything_about_a_broker(desk):
    result = describe(desk, BROKER, "1")

    assert {one.name for one in result.configs} == SHOWN
    names = [one.name for one in result.configs if not one.name.startswith("log.sync")]
    assert names[:4] == [
        "log.cleaner.min.compaction.lag.ms",
        "sasl.oauthbearer.jwks.endpoint.refresh.ms",
        "offsets.topic.num.partitions",
        "log.flush.interval.messages",
    ]
    shown = {one.name: (one.value, one.config_source) for one in result.configs}
    assert shown["log.retention.ms"] == ("5000", 4)
    assert shown["group.max.size"] == ("2147483647", 5)
    assert shown["log.roll.ms"] == (None, 5)


@pytest.mark.parametrize(
    ("kind", "name", "code"),
    [
        (TOPIC, "nothing", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (BROKER, "9", ErrorCode.INVALID_REQUEST),
        (BROKER, "", 0),
        (TOPIC, "a/b", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (TOPIC, "", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (TOPIC, "x" * 250, ErrorCode.INVALID_TOPIC_EXCEPTION),
        (GROUP, "", ErrorCode.INVALID_REQUEST),
        (8, "1", ErrorCode.INVALID_REQUEST),
        (99, "x", ErrorCode.INVALID_REQUEST),
    ],
)
def test_resources_that_have_nothing_to_show(desk, kind, name, code):
    result = describe(desk, kind, name)

    assert (result.error_code, result.configs) == (code, [])


@pytest.mark.parametrize("kind", [TOPIC, BROKER])
def test_no_keys_are_all_keys(desk, kind):
    name = "orders" if kind == TOPIC else "1"
    assert describe(desk, kind, name, []).configs == describe(desk, kind, name).configs


def test_synonyms_are_told_from_the_first_that_is_set_or_has_a_default():
    """Upstream leaves out what stands before the name that it describes, and so often all."""
    desk = Desk(node_id="1", log_roll_hours="5")
    desk.create()

    def synonyms(kind, name, key):
        (one,) = describe(desk, kind, name, [key], include_synonyms=True).configs
        return [(s.name, s.value, s.source) for s in one.synonyms]

    for key in ("retention.ms", "segment.ms", "segment.jitter.ms", "flush.ms"):
        assert synonyms(TOPIC, "orders", key) == []
    assert synonyms(BROKER, "1", "log.retention.ms") == []
    assert synonyms(BROKER, "1", "log.roll.hours") == [
        ("log.roll.hours", "5", 4),
        ("log.roll.hours", "168", 5),
    ]
    for kind, name in ((TOPIC, "orders"), (BROKER, "1")):
        assert synonyms(kind, name, "min.insync.replicas") == [
            ("min.insync.replicas", "1", 3),
            ("min.insync.replicas", "1", 5),
        ]


def test_all_values_of_files_stand_before_all_defaults():
    desk = Desk(log_retention_ms="5000", log_retention_hours="2")
    desk.create()
    (one,) = describe(desk, TOPIC, "orders", ["retention.ms"], include_synonyms=True).configs
    assert [(s.name, s.value, s.source) for s in one.synonyms] == [
        ("log.retention.ms", "5000", 4),
        ("log.retention.hours", "2", 4),
        ("log.retention.hours", "168", 5),
    ]


def test_unknown_keys_are_left_out(desk):
    assert describe(desk, TOPIC, "orders", ["no.such.key"]).configs == []
