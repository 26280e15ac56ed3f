"""Settings of groups (KIP-848): any broker takes a change, and tells what holds."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import count

from kohort.client.admin.request_rounds import Locate, settle
from kohort.client.admin.views import GroupConfig, Outcomes
from kohort.client.network.cluster import Cluster, Node
from kohort.errors import ApiError, api_error
from kohort.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from kohort.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

_GROUP = 32
_OWN = 8  # the source of a value that was set for the group
_SET, _DELETE = 0, 1


async def describe_group_configs(
    cluster: Cluster, group_ids: Iterable[str], *, deadline: float
) -> Outcomes[str, dict[str, GroupConfig]]:
    """See `AdminClient.describe_group_configs`."""

    async def ask(
        node: Node, ids: Sequence[str], deadline: float
    ) -> dict[str, dict[str, GroupConfig] | ApiError]:
        resources = [
            DescribeConfigsResource(
                resource_type=_GROUP, resource_name=group_id, configuration_keys=None
            )
            for group_id in ids
        ]
        answer: DescribeConfigsResponse = await cluster.ask(
            node, DescribeConfigsRequest(resources=resources), deadline=deadline
        )
        return {
            result.resource_name: api_error(result.error_code, result.error_message)
            if result.error_code
            else {
                config.name: GroupConfig(config.value, own=config.config_source == _OWN)
                for config in sorted(result.configs, key=lambda config: config.name)
            }
            for result in answer.results
        }

    ids = list(dict.fromkeys(group_ids))
    return Outcomes(await settle(cluster, ids, _anybody(cluster), ask, deadline=deadline))


async def alter_group_configs(
    cluster: Cluster,
    changes: Mapping[str, Mapping[str, str | None]],
    *,
    validate_only: bool,
    deadline: float,
) -> Outcomes[str, None]:
    """See `AdminClient.alter_group_configs`."""

    async def ask(node: Node, ids: Sequence[str], deadline: float) -> dict[str, ApiError | None]:
        request = IncrementalAlterConfigsRequest(
            resources=[_resource(group_id, changes[group_id]) for group_id in ids],
            validate_only=validate_only,
        )
        answer: IncrementalAlterConfigsResponse = await cluster.ask(
            node, request, deadline=deadline
        )
        return {
            response.resource_name: api_error(response.error_code, response.error_message)
            if response.error_code
            else None
            for response in answer.responses
        }

    return Outcomes(
        await settle(cluster, changes, _anybody(cluster), ask, deadline=deadline, repeatable=False)
    )


def _resource(group_id: str, changes: Mapping[str, str | None]) -> AlterConfigsResource:
    return AlterConfigsResource(
        resource_type=_GROUP,
        resource_name=group_id,
        configs=[
            AlterableConfig(
                name=name, config_operation=_DELETE if value is None else _SET, value=value
            )
            for name, value in changes.items()
        ],
    )


def _anybody(cluster: Cluster) -> Locate[str]:
    """A broker by its place in the order of ids: the next one, when one has not answered."""
    turn = count()

    async def locate(ids: Sequence[str], deadline: float) -> dict[str, Node | ApiError]:
        nodes = await cluster.nodes(deadline)
        return dict.fromkeys(ids, nodes[sorted(nodes)[next(turn) % len(nodes)]])

    return locate
