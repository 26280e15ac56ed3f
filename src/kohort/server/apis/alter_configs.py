"""IncrementalAlterConfigs: change settings of topics, each resource as a whole or not at all."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from enum import IntEnum

from kohort.config import (
    TOPIC_SETTINGS,
    BrokerConfig,
    ConfigError,
    Kind,
    checked_topic_config,
)
from kohort.coordinator.effects import Call, Client
from kohort.errors import ApiError, ErrorCode
from kohort.server.access import ALTER_CONFIGS
from kohort.server.apis.judging import change_topics
from kohort.server.apis.resources import (
    Resource,
    check_resource,
    refused_resource,
    topic_value,
)
from kohort.server.catalog import Draft, Topic, check_topic_name
from kohort.server.node import Node
from kohort.terms import NO_TOPIC_ID, Millis
from kohort.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

# Another policy would remove records that nothing supersedes.
_KEEPS_GROUPS = frozenset({"cleanup.policy"})


class _Operation(IntEnum):
    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


def incremental_alter_configs(
    node: Node, call: Call[IncrementalAlterConfigsRequest], _now: Millis
) -> None:
    """Change or refuse each resource by itself."""
    request = call.request

    def judge(draft: Draft) -> dict[int, Topic | ApiError]:
        return dict(enumerate(_judged(node, call.client, draft, request.resources)))

    def answer(judged: dict[int, Topic | ApiError]) -> IncrementalAlterConfigsResponse:
        responses = [_told(request.resources[at], outcome) for at, outcome in judged.items()]
        return IncrementalAlterConfigsResponse(responses=responses)

    change_topics(node, call, judge, answer, validate_only=request.validate_only)


def _judged(
    node: Node, client: Client, draft: Draft, resources: Sequence[AlterConfigsResource]
) -> Iterator[Topic | ApiError]:
    counts = Counter((one.resource_type, one.resource_name) for one in resources)
    for resource in resources:
        try:
            count = counts[resource.resource_type, resource.resource_name]
            topic = _altered(node, client, draft, resource, count)
            draft.put(topic)
            yield topic
        except ApiError as error:
            yield error


def _told(
    resource: AlterConfigsResource, outcome: Topic | ApiError
) -> AlterConfigsResourceResponse:
    return AlterConfigsResourceResponse(
        error_code=outcome.code if isinstance(outcome, ApiError) else 0,
        error_message=outcome.message if isinstance(outcome, ApiError) else None,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


def _altered(
    node: Node, client: Client, draft: Draft, resource: AlterConfigsResource, count: int
) -> Topic:
    """The topic with its settings changed; `count` is how often it was named. Raises ApiError."""
    if count > 1:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"{resource.resource_name!r} is named twice")
    check_resource(
        node.cluster.may,
        client,
        ALTER_CONFIGS,
        resource.resource_type,
        resource.resource_name,
    )
    if resource.resource_type == Resource.BROKER:
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            f"broker {resource.resource_name!r}: settings of brokers are read at their start only",
        )
    if resource.resource_type != Resource.TOPIC:
        raise refused_resource(resource.resource_type, resource.resource_name)
    _check_operations(resource.configs)
    if not resource.resource_name:
        raise ApiError(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
    check_topic_name(resource.resource_name)
    topic = draft.by_name.get(resource.resource_name)
    known = topic or _nobody(resource.resource_name)  # values are judged before it is looked for
    configs = dict(known.configs)
    for config in resource.configs:
        value = _changed(node.cluster.config, known, config)
        if known.is_internal and config.name in _KEEPS_GROUPS:
            raise ApiError(
                ErrorCode.POLICY_VIOLATION,
                f"{config.name} of {known.name} cannot be changed: it would lose groups",
            )
        if value is None:
            configs.pop(config.name, None)
        else:
            configs[config.name] = value
    if topic is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return Topic(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=topic.partitions,
        replication_factor=topic.replication_factor,
        configs=configs,
        assignments=topic.assignments,
    )


def _nobody(name: str) -> Topic:
    return Topic(name=name, topic_id=NO_TOPIC_ID, partitions=0, replication_factor=0)


def _check_operations(changes: Sequence[AlterableConfig]) -> None:
    """Raises ApiError for operations that no topic allows."""
    names = [config.name for config in changes]
    if len(set(names)) < len(names):
        raise ApiError(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
    for config in changes:
        if config.value is None and config.config_operation != _Operation.DELETE:
            raise ApiError(
                ErrorCode.INVALID_REQUEST, f"Null value not supported for : {config.name}"
            )
    for config in changes:
        if config.config_operation not in [one.value for one in _Operation]:
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                f"operation on {config.name} is {config.config_operation}, expected 0 to 3",
            )
    for config in changes:
        row = TOPIC_SETTINGS.get(config.name)
        is_list = row is not None and row.setting.kind is Kind.LIST
        if config.config_operation in _COMBINE and not is_list:
            word = _Operation(config.config_operation).name
            raise ApiError(
                ErrorCode.INVALID_CONFIG,
                f"Can't {word} to key {config.name} because its type is not LIST.",
            )


def _changed(broker: BrokerConfig, topic: Topic, config: AlterableConfig) -> str | None:
    """The new text of a setting, or None when it follows the broker again. Raises ApiError."""
    name = config.name
    if config.config_operation == _Operation.DELETE:
        return None
    assert config.value is not None
    try:
        if config.config_operation == _Operation.SET:
            return checked_topic_config(name, config.value)
        old = _entries(topic_value(TOPIC_SETTINGS[name], topic, broker))
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
