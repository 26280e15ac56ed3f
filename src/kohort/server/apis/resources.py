# SPDX-License-Identifier: Apache-2.0
"""What has configurations: topics and brokers here; other types are refused by name."""

from collections.abc import Mapping
from enum import IntEnum

from kohort.config import BrokerConfig, TopicSetting, text_of
from kohort.errors import ApiError, ErrorCode
from kohort.machines.effects import Client
from kohort.security.acls import AclOperation
from kohort.server.access import CLUSTER, CLUSTER_NAME, GROUP, TOPIC, May, check
from kohort.server.catalog import Topic
from kohort.server.cluster import Cluster


class Resource(IntEnum):
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class Source(IntEnum):
    """Where a value comes from, as DescribeConfigs numbers it."""

    TOPIC = 1
    BROKER = 2
    CLUSTER_DEFAULT = 3
    FILE = 4
    DEFAULT = 5
    GROUP = 8


def check_resource(
    may: May, client: Client, operation: AclOperation, resource_type: int, name: str
) -> None:
    """Raises ApiError when a client may not do this. Brokers' settings are the cluster's."""
    match resource_type:
        case Resource.TOPIC:
            check(may, client, operation, TOPIC, name)
        case Resource.GROUP:
            check(may, client, operation, GROUP, name)
        case Resource.BROKER | Resource.BROKER_LOGGER | Resource.CLIENT_METRICS:
            check(may, client, operation, CLUSTER, CLUSTER_NAME)


def changed_layers(cluster: Cluster) -> tuple[tuple[Source, Mapping[str, str]], ...]:
    """The broker's settings that were changed while it ran and are in force, strongest first."""
    in_force = cluster.dynamic.in_force
    return (
        (Source.BROKER, in_force.get(str(cluster.base_config.node_id), {})),
        (Source.CLUSTER_DEFAULT, in_force.get("", {})),
    )


def refused_resource(resource_type: int) -> ApiError:
    if resource_type in [kind.value for kind in Resource]:
        return ApiError(
            ErrorCode.INVALID_REQUEST,
            f"resource type is {resource_type}, expected 2 (topic), 4 (broker) or 32 (group)",
        )
    return ApiError(ErrorCode.INVALID_REQUEST, f"Unknown resource type {resource_type}")


def topic_value(row: TopicSetting, topic: Topic, broker: BrokerConfig) -> str | None:
    """The text of a topic's setting: its own, or that of the broker's setting that it follows."""
    own = topic.configs.get(row.setting.name)
    return text_of(row.followed(broker)) if own is None else own
