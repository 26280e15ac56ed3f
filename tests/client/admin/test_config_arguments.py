# SPDX-License-Identifier: Apache-2.0
"""What callers may give to calls about configurations, and what they are told otherwise."""

import re

import pytest

from kohort import ConfigAppend, ConfigResource, ConfigResourceType, ConfigSubtract
from kohort.client.admin import config_arguments
from kohort.client.admin.arguments import NAME_BYTES

WRONG = [
    (config_arguments.resources, "orders", TypeError, "resources is 'orders', expected a list of"),
    (config_arguments.resources, {("topic", "orders"): 1}, TypeError, "expected a list of pairs"),
    (config_arguments.resources, None, TypeError, "resources is None, expected a list of pairs"),
    (
        config_arguments.resources,
        ("topic", "orders"),
        TypeError,
        "resources has 'topic', expected a pair of a type and a name, as ('topic', 'orders')",
    ),
    (config_arguments.resources, [("topic", 3)], TypeError, "resources has ('topic', 3)"),
    (
        config_arguments.resources,
        [("topics", "orders")],
        ValueError,
        "'topics' is not a type of resources, expected one of topic, broker, broker_logger,",
    ),
    (config_arguments.resources, [("unknown", "x")], ValueError, "'unknown' is not a type"),
    (
        config_arguments.resources,
        [("broker", "first")],
        ValueError,
        "resources has the broker 'first', expected its id, or '' for all brokers",
    ),
    (config_arguments.resources, [("topic", "x" * (NAME_BYTES + 1))], ValueError, "32768 bytes"),
    (config_arguments.resource_types, [], ValueError, "types is empty, expected None for all"),
    (config_arguments.resource_types, 2, TypeError, "types is 2, expected a text or a list"),
    (config_arguments.config_names, [], ValueError, "names is empty, expected None for all"),
    (config_arguments.config_names, [3], TypeError, "names has 3, expected texts"),
    (config_arguments.config_changes, [1], TypeError, "changes is [1], expected a mapping"),
    (
        config_arguments.config_changes,
        {("topic", "orders"): {"retention.ms": 5}},
        TypeError,
        "retention.ms in changes of topic 'orders' is 5, expected a text or None",
    ),
    (
        config_arguments.config_changes,
        {("topic", "orders"): {"cleanup.policy": ConfigAppend(None)}},
        TypeError,
        "cleanup.policy in changes of topic 'orders' is ConfigAppend(values=None), expected",
    ),
    (
        config_arguments.config_changes,
        {("topic", "orders"): "retention.ms"},
        TypeError,
        "changes of topic 'orders' is 'retention.ms', expected a mapping",
    ),
]


@pytest.mark.parametrize(("read", "given", "kind", "text"), WRONG)
def test_what_makes_no_sense_is_said_in_one_line(read, given, kind, text):
    with pytest.raises(kind, match=re.escape(text)) as raised:
        read(given)
    assert "\n" not in str(raised.value)


def test_what_makes_sense_is_taken():
    (orders, all_brokers) = config_arguments.resources([("Topic", "orders"), ["broker", ""]])
    assert orders == ConfigResource(ConfigResourceType.TOPIC, "orders")
    assert all_brokers.type is ConfigResourceType.BROKER
    assert config_arguments.resource_types("GROUP") == ["group"]
    assert config_arguments.config_names("retention.ms") == ["retention.ms"]
    assert config_arguments.config_names(None) is None
    changes = {"a": "1", "b": None, "c": ConfigAppend("x"), "d": ConfigSubtract("y")}
    assert config_arguments.config_changes({orders: changes}) == {orders: changes}
