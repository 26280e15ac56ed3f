"""DescribeConfigs and IncrementalAlterConfigs: topics can be changed, brokers can be looked at."""

from collections import Counter
from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING

from kohort.config import (
    BROKER_SETTINGS,
    TOPIC_SETTINGS,
    BrokerConfig,
    ConfigError,
    Kind,
    Setting,
    TopicSetting,
    checked_topic_config,
    text_of,
)
from kohort.coordinator.effects import Call
from kohort.errors import ApiError, ErrorCode, StorageError
from kohort.server.apis import unsupported
from kohort.server.catalog import Topic
from kohort.terms import Millis
from kohort.wire.messages.create_topics import CreatableTopicConfigs
from kohort.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from kohort.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

if TYPE_CHECKING:
    from kohort.server.node import Node


class _Resource(IntEnum):
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class _Source(IntEnum):
    """Where a value comes from, as DescribeConfigs numbers it."""

    TOPIC = 1
    CLUSTER_DEFAULT = 3
    FILE = 4
    DEFAULT = 5


class _Operation(IntEnum):
    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


# Upstream keeps this one as a default of the whole cluster, with the eligible leader replicas of
# KIP-966, and so it shows it.
_CLUSTER_DEFAULTS = frozenset({"min.insync.replicas"})


def created_configs(node: "Node", topic: Topic) -> list[CreatableTopicConfigs]:
    """All settings of a topic that was just made, in the form of CreateTopics (KIP-525)."""
    broker = node.cluster.config
    return [
        CreatableTopicConfigs(
            name=name,
            value=_topic_value(row, topic, broker),
            config_source=_topic_source(row, topic, broker),
        )
        for name, row in TOPIC_SETTINGS.items()
    ]


# --- DescribeConfigs


def describe_configs(
    node: "Node", call: Call[DescribeConfigsRequest], now: Millis
) -> DescribeConfigsResponse:
    """Each resource by itself. Names that nobody knows are left out, as upstream does."""
    del now
    request = call.request
    results = []
    for resource in request.resources:
        try:
            configs = _described(node, resource, request)
        except ApiError as error:
            results.append(
                DescribeConfigsResult(
                    error_code=error.code,
                    error_message=error.message,
                    resource_type=resource.resource_type,
                    resource_name=resource.resource_name,
                    configs=[],
                )
            )
        else:
            results.append(
                DescribeConfigsResult(
                    error_code=0,
                    error_message="",
                    resource_type=resource.resource_type,
                    resource_name=resource.resource_name,
                    configs=configs,
                )
            )
    return DescribeConfigsResponse(results=results)


def _described(
    node: "Node", resource: DescribeConfigsResource, request: DescribeConfigsRequest
) -> list[DescribeConfigsResourceResult]:
    name = resource.resource_name
    match resource.resource_type:
        case _Resource.TOPIC:
            topic = node.cluster.catalog.by_name.get(name)
            if topic is None:
                raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            return [
                _topic_config(row, topic, node.cluster.config, request)
                for key, row in TOPIC_SETTINGS.items()
                if resource.configuration_keys is None or key in resource.configuration_keys
            ]
        case _Resource.BROKER:
            if not name:  # the defaults of all brokers: none can be set
                return []
            if name != str(node.id):
                raise ApiError(ErrorCode.INVALID_REQUEST, f"broker is {name!r}, expected {node.id}")
            return [
                _broker_config(setting, node.cluster.config, request)
                for key, setting in BROKER_SETTINGS.items()
                if resource.configuration_keys is None or key in resource.configuration_keys
            ]
        case _:
            raise _refused_resource(resource.resource_type, name)


def _refused_resource(resource_type: int, name: str) -> ApiError:
    if resource_type == _Resource.GROUP:
        if not name:
            return ApiError(ErrorCode.INVALID_REQUEST, "Group name must not be empty")
        return unsupported.group_configs(name)
    if resource_type in [kind.value for kind in _Resource]:
        return ApiError(
            ErrorCode.INVALID_REQUEST,
            f"resource type is {resource_type}, expected 2 (topic) or 4 (broker)",
        )
    return ApiError(ErrorCode.INVALID_REQUEST, f"Unknown resource type {resource_type}")


def _topic_value(row: TopicSetting, topic: Topic, broker: BrokerConfig) -> str | None:
    own = topic.configs.get(row.setting.name)
    return text_of(row.followed(broker)) if own is None else own


def _topic_source(row: TopicSetting, topic: Topic, broker: BrokerConfig) -> _Source:
    if row.setting.name in topic.configs:
        return _Source.TOPIC
    if any(synonym.name in broker.given for synonym in row.synonyms):
        return _Source.FILE
    return _Source.CLUSTER_DEFAULT if row.setting.name in _CLUSTER_DEFAULTS else _Source.DEFAULT


def _topic_config(
    row: TopicSetting, topic: Topic, broker: BrokerConfig, request: DescribeConfigsRequest
) -> DescribeConfigsResourceResult:
    name = row.setting.name
    synonyms: list[DescribeConfigsSynonym] = []
    if request.include_synonyms:
        own = topic.configs.get(name)
        if own is not None:
            synonyms.append(DescribeConfigsSynonym(name=name, value=own, source=_Source.TOPIC))
        for synonym in row.synonyms:
            synonyms += _broker_synonyms(BROKER_SETTINGS[synonym.name], broker)
    return DescribeConfigsResourceResult(
        name=name,
        value=_topic_value(row, topic, broker),
        read_only=False,
        config_source=_topic_source(row, topic, broker),
        is_sensitive=False,
        synonyms=synonyms,
        config_type=row.setting.kind,
        documentation=row.setting.doc if request.include_documentation else None,
    )


def _broker_synonyms(setting: Setting, broker: BrokerConfig) -> list[DescribeConfigsSynonym]:
    """What stands behind a broker's setting: the file, then the default."""
    found = []
    if setting.name in broker.given:
        value = text_of(broker.value(setting.name))
        found.append(DescribeConfigsSynonym(name=setting.name, value=value, source=_Source.FILE))
    if setting.default is not None:
        value = text_of(setting.default)
        found.append(DescribeConfigsSynonym(name=setting.name, value=value, source=_Source.DEFAULT))
    return found


def _broker_config(
    setting: Setting, broker: BrokerConfig, request: DescribeConfigsRequest
) -> DescribeConfigsResourceResult:
    return DescribeConfigsResourceResult(
        name=setting.name,
        value=text_of(broker.value(setting.name)),
        read_only=True,
        config_source=_Source.FILE if setting.name in broker.given else _Source.DEFAULT,
        is_sensitive=False,
        synonyms=_broker_synonyms(setting, broker) if request.include_synonyms else [],
        config_type=setting.kind,
        documentation=setting.doc if request.include_documentation else None,
    )


# --- IncrementalAlterConfigs


def incremental_alter_configs(
    node: "Node", call: Call[IncrementalAlterConfigsRequest], now: Millis
) -> IncrementalAlterConfigsResponse:
    """Each resource changes as a whole or not at all."""
    del now
    request = call.request
    counts = Counter((one.resource_type, one.resource_name) for one in request.resources)
    responses = []
    for resource in request.resources:
        code, message = 0, None
        try:
            count = counts[resource.resource_type, resource.resource_name]
            topic = _altered(node, resource, count)
            if not request.validate_only:
                _store(node, topic)
        except ApiError as error:
            code, message = error.code, error.message
        responses.append(
            AlterConfigsResourceResponse(
                error_code=code,
                error_message=message,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
        )
    return IncrementalAlterConfigsResponse(responses=responses)


def _altered(node: "Node", resource: AlterConfigsResource, count: int) -> Topic:
    """The topic with its settings changed; `count` is how often it was named. Raises ApiError."""
    if count > 1:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"{resource.resource_name!r} is named twice")
    if resource.resource_type == _Resource.BROKER:
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            f"broker {resource.resource_name!r}: settings of brokers are read at their start only",
        )
    if resource.resource_type != _Resource.TOPIC:
        raise _refused_resource(resource.resource_type, resource.resource_name)
    topic = node.cluster.catalog.by_name.get(resource.resource_name)
    if topic is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    names = [config.name for config in resource.configs]
    if len(set(names)) < len(names):
        raise ApiError(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
    configs = dict(topic.configs)
    for config in resource.configs:
        value = _changed(node.cluster.config, topic, config)
        if value is None:
            configs.pop(config.name, None)
        else:
            configs[config.name] = value
    return Topic(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=topic.partitions,
        replication_factor=topic.replication_factor,
        configs=configs,
        assignments=topic.assignments,
    )


def _changed(broker: BrokerConfig, topic: Topic, config: AlterableConfig) -> str | None:
    """The new text of a setting, or None when it follows the broker again. Raises ApiError."""
    name = config.name
    if config.config_operation == _Operation.DELETE:
        return None
    if config.config_operation not in [one.value for one in _Operation]:
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            f"operation on {name} is {config.config_operation}, expected 0 to 3",
        )
    if config.value is None:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {name}")
    try:
        if config.config_operation == _Operation.SET:
            return checked_topic_config(name, config.value)
        row = TOPIC_SETTINGS.get(name)
        if row is not None and row.setting.kind is not Kind.LIST:
            word = _Operation(config.config_operation).name
            raise ApiError(
                ErrorCode.INVALID_CONFIG,
                f"Can't {word} to key {name} because its type is not LIST.",
            )
        old = _entries(_topic_value(row, topic, broker) if row else "")
        given = _entries(config.value)
        return checked_topic_config(name, ",".join(_COMBINE[config.config_operation](old, given)))
    except ConfigError as error:
        raise ApiError(ErrorCode.INVALID_CONFIG, str(error)) from error


_COMBINE: dict[int, Callable[[Sequence[str], Sequence[str]], list[str]]] = {
    _Operation.APPEND: lambda old, given: [*old, *(one for one in given if one not in old)],
    _Operation.SUBTRACT: lambda old, given: [one for one in old if one not in given],
}


def _entries(text: str | None) -> list[str]:
    return [one.strip() for one in (text or "").split(",") if one.strip()]


def _store(node: "Node", topic: Topic) -> None:
    cluster = node.cluster
    try:
        cluster.catalog.change(topic)
    except StorageError as error:
        raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error
    for index in range(topic.partitions):
        partition = cluster.partition(topic.name, index)
        if partition is not None:
            partition.reconfigure(topic, cluster.config)
