# SPDX-License-Identifier: Apache-2.0
"""Resources and sources of configurations, by upstream's names and numbers."""

from kohort import ConfigResource, ConfigResourceType, ConfigSource, ConfigType
from kohort.client.admin.config_views import NUMBERS
from kohort.config import Kind
from kohort.server.apis.resources import Resource, Source


def test_a_resource_is_equal_to_its_pair():
    resource = ConfigResource(ConfigResourceType.TOPIC, "orders")
    assert resource == ("topic", "orders")
    assert {resource: 1}["topic", "orders"] == 1
    assert str(resource) == "topic 'orders'"


def test_numbers_are_those_of_the_broker():
    assert {type_.name: number for type_, number in NUMBERS.items()} == {
        resource.name: resource.value for resource in Resource
    }
    of_broker = {
        Source.TOPIC: "DYNAMIC_TOPIC_CONFIG",
        Source.BROKER: "DYNAMIC_BROKER_CONFIG",
        Source.CLUSTER_DEFAULT: "DYNAMIC_DEFAULT_BROKER_CONFIG",
        Source.FILE: "STATIC_BROKER_CONFIG",
        Source.DEFAULT: "DEFAULT_CONFIG",
        Source.GROUP: "DYNAMIC_GROUP_CONFIG",
    }
    assert {source: ConfigSource(source).name for source in Source} == of_broker
    assert {kind.name for kind in Kind} <= {type_.name for type_ in ConfigType}
    assert all(ConfigType(kind).name == kind.name for kind in Kind)


def test_a_number_that_is_newer_is_unknown():
    assert ConfigSource(99) is ConfigSource.UNKNOWN
    assert ConfigType(99) is ConfigType.UNKNOWN
