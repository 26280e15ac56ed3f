# SPDX-License-Identifier: Apache-2.0
"""Rules of access (KIP-140, KIP-290): any broker of a KRaft cluster takes them, before that the
controller did.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from kohort.client.admin.request_rounds import settle
from kohort.client.admin.security_views import AclBinding, AclFilter
from kohort.client.admin.topics import controller
from kohort.client.admin.views import Outcomes
from kohort.client.network.cluster import Cluster, Node
from kohort.errors import ApiError, api_error
from kohort.security.acls import AclOperation, AclPermission, PatternType, ResourceType
from kohort.wire.messages.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from kohort.wire.messages.delete_acls import (
    DeleteAclsFilter,
    DeleteAclsFilterResult,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from kohort.wire.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse


async def describe_acls(
    cluster: Cluster, wanted: AclFilter, *, deadline: float
) -> tuple[AclBinding, ...]:
    """See `AdminClient.describe_acls`."""

    async def ask(
        node: Node, filters: Sequence[AclFilter], deadline: float
    ) -> dict[AclFilter, tuple[AclBinding, ...] | ApiError]:
        (only,) = filters
        request = DescribeAclsRequest(**_fields(only))
        answer: DescribeAclsResponse = await cluster.ask(node, request, deadline=deadline)
        if answer.error_code:
            return {only: api_error(answer.error_code, answer.error_message)}
        found = (
            AclBinding(
                ResourceType(resource.resource_type),
                resource.resource_name,
                acl.principal,
                AclOperation(acl.operation),
                AclPermission(acl.permission_type),
                PatternType(resource.pattern_type),
                acl.host,
            )
            for resource in answer.resources
            for acl in resource.acls
        )
        return {only: tuple(sorted(found))}

    found = await settle(cluster, [wanted], controller(cluster), ask, deadline=deadline)
    return Outcomes(found)[wanted]


async def create_acls(
    cluster: Cluster, acls: Iterable[AclBinding], *, deadline: float
) -> Outcomes[AclBinding, None]:
    """See `AdminClient.create_acls`."""

    async def ask(
        node: Node, acls: Sequence[AclBinding], deadline: float
    ) -> dict[AclBinding, ApiError | None]:
        request = CreateAclsRequest(
            creations=[
                AclCreation(
                    resource_type=acl.resource_type,
                    resource_name=acl.resource_name,
                    resource_pattern_type=acl.pattern,
                    principal=acl.principal,
                    host=acl.host,
                    operation=acl.operation,
                    permission_type=acl.permission,
                )
                for acl in acls
            ]
        )
        answer: CreateAclsResponse = await cluster.ask(node, request, deadline=deadline)
        return {
            acl: api_error(result.error_code, result.error_message) if result.error_code else None
            for acl, result in zip(acls, answer.results, strict=False)
        }

    # A rule that is there already is a success, so that asking twice does no harm.
    return Outcomes(await settle(cluster, acls, controller(cluster), ask, deadline=deadline))


async def delete_acls(
    cluster: Cluster, filters: Iterable[AclFilter], *, deadline: float
) -> Outcomes[AclFilter, tuple[AclBinding, ...]]:
    """See `AdminClient.delete_acls`."""

    async def ask(
        node: Node, filters: Sequence[AclFilter], deadline: float
    ) -> dict[AclFilter, tuple[AclBinding, ...] | ApiError]:
        request = DeleteAclsRequest(filters=[DeleteAclsFilter(**_fields(one)) for one in filters])
        answer: DeleteAclsResponse = await cluster.ask(node, request, deadline=deadline)
        return {
            wanted: _deleted(result)
            for wanted, result in zip(filters, answer.filter_results, strict=False)
        }

    return Outcomes(
        await settle(
            cluster, filters, controller(cluster), ask, deadline=deadline, repeatable=False
        )
    )


def _fields(wanted: AclFilter) -> dict[str, Any]:
    return {
        "resource_type_filter": wanted.resource_type,
        "resource_name_filter": wanted.resource_name,
        "pattern_type_filter": wanted.pattern,
        "principal_filter": wanted.principal,
        "host_filter": wanted.host,
        "operation": wanted.operation,
        "permission_type": wanted.permission,
    }


def _deleted(result: DeleteAclsFilterResult) -> tuple[AclBinding, ...] | ApiError:
    if result.error_code:
        return api_error(result.error_code, result.error_message)
    for acl in result.matching_acls:
        if acl.error_code:
            return api_error(acl.error_code, acl.error_message)
    found = (
        AclBinding(
            ResourceType(acl.resource_type),
            acl.resource_name,
            acl.principal,
            AclOperation(acl.operation),
            AclPermission(acl.permission_type),
            PatternType(acl.pattern_type),
            acl.host,
        )
        for acl in result.matching_acls
    )
    return tuple(sorted(found))
