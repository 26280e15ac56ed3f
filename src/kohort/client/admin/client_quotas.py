# SPDX-License-Identifier: Apache-2.0
"""Quotas of users, client ids and addresses (KIP-546, KIP-612)."""

from collections.abc import Mapping, Sequence

from kohort.client.admin.quota_views import ClientQuotaEntity, NameMatch
from kohort.client.admin.request_rounds import settle
from kohort.client.admin.single_requests import anybody, settle_one
from kohort.client.admin.topics import controller
from kohort.client.admin.views import Outcomes
from kohort.client.network.cluster import Cluster, Node
from kohort.client.network.denials import explained
from kohort.errors import ApiError, api_error
from kohort.wire.messages import alter_client_quotas as alteration
from kohort.wire.messages import describe_client_quotas as description

_EXACT, _DEFAULT, _ANY_NAME = 0, 1, 2  # the kinds of match

Quotas = dict[str, float]


async def describe_client_quotas(
    cluster: Cluster, wanted: Mapping[str, NameMatch], *, strict: bool, deadline: float
) -> dict[ClientQuotaEntity, Quotas]:
    """See `AdminClient.describe_client_quotas`."""
    components = [
        description.ComponentData(
            entity_type=kind,
            match_type=_ANY_NAME if name is ... else _DEFAULT if name is None else _EXACT,
            match=name if isinstance(name, str) else None,
        )
        for kind, name in wanted.items()
    ]

    async def ask(node: Node, deadline: float) -> dict[ClientQuotaEntity, Quotas]:
        request = description.DescribeClientQuotasRequest(components=components, strict=strict)
        answer: description.DescribeClientQuotasResponse = await cluster.ask(
            node, request, deadline=deadline
        )
        if answer.error_code:
            error = api_error(answer.error_code, answer.error_message)
            raise explained(error, cluster.principal, "", "DescribeConfigs")
        return {
            ClientQuotaEntity({part.entity_type: part.entity_name for part in entry.entity}): {
                value.key: value.value for value in entry.values
            }
            for entry in answer.entries or []
        }

    found = await settle_one(cluster, "", anybody(cluster), ask, deadline=deadline)
    return {entity: dict(sorted(found[entity].items())) for entity in sorted(found)}


async def alter_client_quotas(
    cluster: Cluster,
    changes: Mapping[ClientQuotaEntity, Mapping[str, float | None]],
    *,
    validate_only: bool,
    deadline: float,
) -> Outcomes[ClientQuotaEntity, None]:
    """See `AdminClient.alter_client_quotas`."""

    async def ask(
        node: Node, keys: Sequence[ClientQuotaEntity], deadline: float
    ) -> dict[ClientQuotaEntity, ApiError | None]:
        request = alteration.AlterClientQuotasRequest(
            entries=[_entry(entity, changes[entity]) for entity in keys],
            validate_only=validate_only,
        )
        answer: alteration.AlterClientQuotasResponse = await cluster.ask(
            node, request, deadline=deadline
        )
        return {
            ClientQuotaEntity({part.entity_type: part.entity_name for part in entry.entity}): (
                explained(
                    api_error(entry.error_code, entry.error_message),
                    cluster.principal,
                    "",
                    "AlterConfigs",
                )
                if entry.error_code
                else None
            )
            for entry in answer.entries
        }

    return Outcomes(
        await settle(
            cluster, changes, controller(cluster), ask, deadline=deadline, repeatable=False
        )
    )


def _entry(entity: ClientQuotaEntity, changes: Mapping[str, float | None]) -> alteration.EntryData:
    return alteration.EntryData(
        entity=[
            alteration.EntityData(entity_type=kind, entity_name=name)
            for kind, name in entity.names.items()
        ],
        ops=[
            alteration.OpData(key=key, value=0.0 if value is None else value, remove=value is None)
            for key, value in changes.items()
        ],
    )
