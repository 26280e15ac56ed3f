# SPDX-License-Identifier: Apache-2.0
"""Configurations of topics, brokers, groups and others (KIP-133, KIP-226, KIP-339, KIP-848).

Those of a broker are told and changed by that broker alone, all others by any.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

from kohort.client.admin.answers import Arrived
from kohort.client.admin.config_views import (
    NUMBERS,
    ConfigAppend,
    ConfigChange,
    ConfigEntry,
    ConfigResource,
    ConfigResourceType,
    ConfigSource,
    ConfigSubtract,
    ConfigSynonym,
    ConfigType,
)
from kohort.client.admin.group_views import GroupConfig
from kohort.client.admin.request_rounds import Locate, settle
from kohort.client.admin.single_requests import anybody, broker_by_id, settle_one
from kohort.client.admin.views import Outcomes
from kohort.client.network.cluster import Cluster, Node
from kohort.client.network.connection import Need
from kohort.client.network.denials import explained
from kohort.errors import ApiError, ErrorCode, api_error
from kohort.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
)
from kohort.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from kohort.wire.messages.list_config_resources import (
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

DOCUMENTATION = Need(3, "the documentation of configs", "KIP-569, Apache Kafka 2.6")
BY_TYPE = Need(1, "resources of other types than client_metrics", "KIP-1142, Apache Kafka 4.1")
_SET, _DELETE, _APPEND, _SUBTRACT = 0, 1, 2, 3
_OF_ONE_BROKER = (ConfigResourceType.BROKER, ConfigResourceType.BROKER_LOGGER)
_TYPES = {number: type_ for type_, number in NUMBERS.items()}

Entries = dict[str, ConfigEntry]


async def describe_configs(
    cluster: Cluster,
    resources: Iterable[ConfigResource],
    *,
    names: Iterable[str] | None = None,
    include_synonyms: bool = False,
    include_documentation: bool = False,
    deadline: float,
    arrived: Arrived[ConfigResource, Entries] | None = None,
) -> Outcomes[ConfigResource, Entries]:
    """See `AdminClient.describe_configs`."""
    keys = None if names is None else list(names)

    async def ask(
        node: Node, resources: Sequence[ConfigResource], deadline: float
    ) -> dict[ConfigResource, Entries | ApiError]:
        connection = await cluster.connection(node.address, deadline)
        request = DescribeConfigsRequest(
            resources=[
                DescribeConfigsResource(
                    resource_type=NUMBERS[resource.type],
                    resource_name=resource.name,
                    configuration_keys=keys,
                )
                for resource in resources
            ],
            include_synonyms=include_synonyms,
            include_documentation=include_documentation,
        )
        answer: DescribeConfigsResponse = await connection.ask(
            request, deadline=deadline, need=DOCUMENTATION if include_documentation else None
        )
        version = connection.version(DescribeConfigsRequest)
        return {
            resource: _error(cluster, resource, result.error_code, result.error_message)
            if result.error_code
            else {
                config.name: _entry(config, request, version)
                for config in sorted(result.configs, key=lambda config: config.name)
            }
            for result in answer.results
            if (resource := _resource_of(result.resource_type, result.resource_name))
        }

    wanted = list(dict.fromkeys(resources))
    locate = _locate(cluster)
    return Outcomes(await settle(cluster, wanted, locate, ask, deadline=deadline, arrived=arrived))


def _entry(
    config: DescribeConfigsResourceResult, request: DescribeConfigsRequest, version: int
) -> ConfigEntry:
    synonyms = tuple(
        ConfigSynonym(synonym.name, synonym.value, ConfigSource(synonym.source))
        for synonym in config.synonyms
    )
    return ConfigEntry(
        config.name,
        config.value,
        ConfigSource(config.config_source),
        read_only=config.read_only,
        sensitive=config.is_sensitive,
        type=ConfigType(config.config_type) if version >= DOCUMENTATION.version else None,
        synonyms=synonyms if request.include_synonyms else None,
        documentation=config.documentation if request.include_documentation else None,
    )


async def describe_group_configs(
    cluster: Cluster, group_ids: Iterable[str], *, deadline: float
) -> Outcomes[str, dict[str, GroupConfig]]:
    """See `AdminClient.describe_group_configs`."""
    described = await describe_configs(cluster, map(_group, group_ids), deadline=deadline)
    own = ConfigSource.DYNAMIC_GROUP_CONFIG
    return Outcomes(
        {
            resource.name: outcome
            if isinstance(outcome, ApiError)
            else {
                name: GroupConfig(entry.value, own=entry.source is own)
                for name, entry in outcome.items()
            }
            for resource, outcome in described.items()
        }
    )


async def alter_configs(
    cluster: Cluster,
    changes: Mapping[ConfigResource, Mapping[str, ConfigChange]],
    *,
    validate_only: bool,
    deadline: float,
) -> Outcomes[ConfigResource, None]:
    """See `AdminClient.alter_configs`."""

    async def ask(
        node: Node, resources: Sequence[ConfigResource], deadline: float
    ) -> dict[ConfigResource, ApiError | None]:
        request = IncrementalAlterConfigsRequest(
            resources=[_alterations(resource, changes[resource]) for resource in resources],
            validate_only=validate_only,
        )
        answer: IncrementalAlterConfigsResponse = await cluster.ask(
            node, request, deadline=deadline
        )
        return {
            resource: _error(cluster, resource, result.error_code, result.error_message)
            if result.error_code
            else None
            for result in answer.responses
            if (resource := _resource_of(result.resource_type, result.resource_name))
        }

    return Outcomes(
        await settle(cluster, changes, _locate(cluster), ask, deadline=deadline, repeatable=False)
    )


async def alter_group_configs(
    cluster: Cluster,
    changes: Mapping[str, Mapping[str, str | None]],
    *,
    validate_only: bool,
    deadline: float,
) -> Outcomes[str, None]:
    """See `AdminClient.alter_group_configs`."""
    altered = await alter_configs(
        cluster,
        {_group(group_id): configs for group_id, configs in changes.items()},
        validate_only=validate_only,
        deadline=deadline,
    )
    return Outcomes({resource.name: outcome for resource, outcome in altered.items()})


def _alterations(
    resource: ConfigResource, changes: Mapping[str, ConfigChange]
) -> AlterConfigsResource:
    return AlterConfigsResource(
        resource_type=NUMBERS[resource.type],
        resource_name=resource.name,
        configs=[_alteration(name, change) for name, change in changes.items()],
    )


def _alteration(name: str, change: ConfigChange) -> AlterableConfig:
    match change:
        case None:
            operation, value = _DELETE, None
        case ConfigAppend(values):
            operation, value = _APPEND, values
        case ConfigSubtract(values):
            operation, value = _SUBTRACT, values
        case _:
            operation, value = _SET, change
    return AlterableConfig(name=name, config_operation=operation, value=value)


async def list_config_resources(
    cluster: Cluster, types: Collection[ConfigResourceType] | None, *, deadline: float
) -> tuple[ConfigResource, ...]:
    """See `AdminClient.list_config_resources`."""
    metrics = ConfigResourceType.CLIENT_METRICS
    request = ListConfigResourcesRequest(resource_types=[NUMBERS[type_] for type_ in types or ()])

    async def ask(node: Node, deadline: float) -> tuple[ConfigResource, ...]:
        answer: ListConfigResourcesResponse = await cluster.ask(
            node,
            request,
            deadline=deadline,
            need=None if types is not None and set(types) == {metrics} else BY_TYPE,
        )
        if answer.error_code:
            raise api_error(answer.error_code)
        return tuple(
            sorted(
                ConfigResource(
                    _TYPES.get(resource.resource_type, ConfigResourceType.UNKNOWN),
                    resource.resource_name,
                )
                for resource in answer.config_resources
            )
        )

    return await settle_one(cluster, "", anybody(cluster), ask, deadline=deadline)


def _group(group_id: str) -> ConfigResource:
    return ConfigResource(ConfigResourceType.GROUP, group_id)


def _resource_of(number: int, name: str) -> ConfigResource | None:
    """The resource that an answer is about; None for one that nobody can have asked for."""
    type_ = _TYPES.get(number)
    return None if type_ is None else ConfigResource(type_, name)


def _error(cluster: Cluster, resource: ConfigResource, code: int, text: str | None) -> ApiError:
    if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and not text:
        text = f"topic {resource.name} does not exist"
    return explained(api_error(code, text), cluster.principal, resource.name)


def _locate(cluster: Cluster) -> Locate[ConfigResource]:
    def broker_of(resource: ConfigResource) -> int | None:
        is_of_one = resource.type in _OF_ONE_BROKER and resource.name
        return int(resource.name) if is_of_one else None

    return broker_by_id(cluster, broker_of)
