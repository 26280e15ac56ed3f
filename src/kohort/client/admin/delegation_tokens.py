# SPDX-License-Identifier: Apache-2.0
"""Delegation tokens (KIP-48): made, renewed, ended and described.

Who asks has to have logged in, and not by a token.
"""

from collections.abc import Iterable, Sequence

from kohort.client.admin.security_views import DelegationToken
from kohort.client.admin.single_requests import anybody, settle_one
from kohort.client.network.cluster import Cluster, Node
from kohort.client.network.connection import Need
from kohort.errors import api_error
from kohort.wire.messages import create_delegation_token as creation
from kohort.wire.messages import describe_delegation_token as description
from kohort.wire.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from kohort.wire.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)

OF_ANOTHER = Need(3, "a token for another owner", "KIP-373, Apache Kafka 3.3")
BY_BROKER = -1  # the broker's own time; for an end it is now

Principal = tuple[str, str]
"""The type and the name."""


async def create_delegation_token(
    cluster: Cluster,
    renewers: Sequence[Principal],
    *,
    owner: Principal | None,
    max_lifetime_ms: int | None,
    deadline: float,
) -> DelegationToken:
    """See `AdminClient.create_delegation_token`."""
    kind, name = (None, None) if owner is None else owner
    request = creation.CreateDelegationTokenRequest(
        owner_principal_type=kind,
        owner_principal_name=name,
        renewers=[
            creation.CreatableRenewers(principal_type=kind, principal_name=name)
            for kind, name in renewers
        ],
        max_lifetime_ms=BY_BROKER if max_lifetime_ms is None else max_lifetime_ms,
    )

    async def ask(node: Node, deadline: float) -> DelegationToken:
        answer: creation.CreateDelegationTokenResponse = await cluster.ask(
            node, request, deadline=deadline, need=None if owner is None else OF_ANOTHER
        )
        if answer.error_code:
            raise api_error(answer.error_code)
        return DelegationToken(
            answer.token_id,
            f"{answer.principal_type}:{answer.principal_name}",
            _requester(answer),
            answer.issue_timestamp_ms,
            answer.expiry_timestamp_ms,
            answer.max_timestamp_ms,
            answer.hmac,
            tuple(":".join(renewer) for renewer in renewers),
        )

    return await settle_one(cluster, "", anybody(cluster), ask, deadline=deadline, repeatable=False)


async def renew_delegation_token(
    cluster: Cluster, hmac: bytes, renew_period_ms: int | None, *, deadline: float
) -> int:
    """See `AdminClient.renew_delegation_token`."""
    request = RenewDelegationTokenRequest(
        hmac=hmac, renew_period_ms=BY_BROKER if renew_period_ms is None else renew_period_ms
    )
    return await _new_expiry(cluster, request, deadline)


async def expire_delegation_token(
    cluster: Cluster, hmac: bytes, expiry_period_ms: int | None, *, deadline: float
) -> int:
    """See `AdminClient.expire_delegation_token`."""
    request = ExpireDelegationTokenRequest(
        hmac=hmac,
        expiry_time_period_ms=BY_BROKER if expiry_period_ms is None else expiry_period_ms,
    )
    return await _new_expiry(cluster, request, deadline)


async def _new_expiry(
    cluster: Cluster,
    request: RenewDelegationTokenRequest | ExpireDelegationTokenRequest,
    deadline: float,
) -> int:
    async def ask(node: Node, deadline: float) -> int:
        answer: RenewDelegationTokenResponse | ExpireDelegationTokenResponse = await cluster.ask(
            node, request, deadline=deadline
        )
        if answer.error_code:
            raise api_error(answer.error_code)
        return answer.expiry_timestamp_ms

    return await settle_one(cluster, "", anybody(cluster), ask, deadline=deadline, repeatable=False)


async def describe_delegation_tokens(
    cluster: Cluster, owners: Iterable[Principal] | None, *, deadline: float
) -> tuple[DelegationToken, ...]:
    """See `AdminClient.describe_delegation_tokens`."""
    wanted = None
    if owners is not None:
        wanted = [
            description.DescribeDelegationTokenOwner(principal_type=kind, principal_name=name)
            for kind, name in owners
        ]

    async def ask(node: Node, deadline: float) -> tuple[DelegationToken, ...]:
        request = description.DescribeDelegationTokenRequest(owners=wanted)
        answer: description.DescribeDelegationTokenResponse = await cluster.ask(
            node, request, deadline=deadline
        )
        if answer.error_code:
            raise api_error(answer.error_code)
        tokens = map(_token, answer.tokens)
        return tuple(sorted(tokens, key=lambda token: token.token_id))

    return await settle_one(cluster, "", anybody(cluster), ask, deadline=deadline)


def _token(token: description.DescribedDelegationToken) -> DelegationToken:
    return DelegationToken(
        token.token_id,
        f"{token.principal_type}:{token.principal_name}",
        _requester(token),
        token.issue_timestamp,
        token.expiry_timestamp,
        token.max_timestamp,
        token.hmac,
        tuple(f"{each.principal_type}:{each.principal_name}" for each in token.renewers),
    )


def _requester(
    token: creation.CreateDelegationTokenResponse | description.DescribedDelegationToken,
) -> str | None:
    name = token.token_requester_principal_name
    return f"{token.token_requester_principal_type}:{name}" if name else None
