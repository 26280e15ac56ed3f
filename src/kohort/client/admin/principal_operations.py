# SPDX-License-Identifier: Apache-2.0
"""The calls of AdminClient about quotas and delegation tokens."""

from collections.abc import Iterable, Mapping

from kohort.client.admin import hints
from kohort.client.admin.calls import AdminCalls


class PrincipalOperations(AdminCalls):
    """What users and their clients may use up, and the tokens that stand for users."""

    async def describe_client_quotas(
        self,
        wanted: "Mapping[str, hints.NameMatch] | None" = None,
        *,
        strict: bool = False,
        timeout: float | None = None,
    ) -> "dict[hints.ClientQuotaEntity, dict[str, float]]":
        """The quotas that are set, sorted by whom they are for (KIP-546, KIP-612).

        Args:
            wanted: "user", "client-id" or "ip" -> a name, None for the default, or `...` for every
                name and the default. None asks for all quotas.
            strict: none for whom a type counts that `wanted` does not name.
            timeout: seconds that this call may take, instead of those of the client.

        Raises:
            ApiError: INVALID_REQUEST where "ip" is beside another type,
                CLUSTER_AUTHORIZATION_FAILED without DESCRIBE_CONFIGS on the cluster.
        """
        from kohort.client.admin import client_quotas, operation_arguments

        return await client_quotas.describe_client_quotas(
            self._cluster,
            operation_arguments.name_matches(wanted),
            strict=strict,
            deadline=self._deadline(timeout),
        )

    async def alter_client_quotas(
        self,
        changes: "Mapping[hints.ClientQuotaEntity, Mapping[str, float | None]]",
        *,
        validate_only: bool = False,
        timeout: float | None = None,
    ) -> "hints.Outcomes[hints.ClientQuotaEntity, None]":
        """Set quotas, and take them away (KIP-546): all those of an entity, or none of them.

        No request is sent twice.

        Args:
            changes: entity -> name of a quota, as "producer_byte_rate" in bytes a second -> its
                value, or None to take it away.
            validate_only: check, and change nothing.
            timeout: seconds that this call may take, instead of those of the client.
        """
        from kohort.client.admin import client_quotas, operation_arguments

        return await client_quotas.alter_client_quotas(
            self._cluster,
            operation_arguments.quota_changes(changes),
            validate_only=validate_only,
            deadline=self._deadline(timeout),
        )

    async def create_delegation_token(
        self,
        renewers: str | Iterable[str] = (),
        *,
        owner: str | None = None,
        max_lifetime_ms: int | None = None,
        timeout: float | None = None,
    ) -> "hints.DelegationToken":
        """Make a token that stands for a user (KIP-48).

        No request is sent twice.

        Args:
            renewers: who else may renew it, as "User:alice".
            owner: for whom it stands; None for who asks. Another one needs CreateDelegationToken
                v3 (KIP-373).
            max_lifetime_ms: how long it may live at most; None for as long as the broker lets it.
            timeout: seconds that this call may take, instead of those of the client.

        Raises:
            ApiError: DELEGATION_TOKEN_AUTH_DISABLED where the cluster has no key for tokens,
                DELEGATION_TOKEN_REQUEST_NOT_ALLOWED for a client without a login or with a token,
                DELEGATION_TOKEN_AUTHORIZATION_FAILED without CREATE_TOKENS for the owner.
        """
        from kohort.client.admin import delegation_tokens, operation_arguments

        return await delegation_tokens.create_delegation_token(
            self._cluster,
            operation_arguments.principals("renewers", renewers),
            owner=None if owner is None else operation_arguments.principals("owner", owner)[0],
            max_lifetime_ms=operation_arguments.number_or_none("max_lifetime_ms", max_lifetime_ms),
            deadline=self._deadline(timeout),
        )

    async def renew_delegation_token(
        self, hmac: bytes, *, renew_period_ms: int | None = None, timeout: float | None = None
    ) -> int:
        """Let a token live on (KIP-48), for so long from now, or for as long as the broker says.
        No request is sent twice.

        Returns:
            When it ends now, in milliseconds since 1970.

        Raises:
            ApiError: DELEGATION_TOKEN_NOT_FOUND, DELEGATION_TOKEN_EXPIRED,
                DELEGATION_TOKEN_OWNER_MISMATCH for who is neither its owner nor a renewer.
        """
        from kohort.client.admin import delegation_tokens, operation_arguments

        return await delegation_tokens.renew_delegation_token(
            self._cluster,
            operation_arguments.hmac(hmac),
            operation_arguments.number_or_none("renew_period_ms", renew_period_ms),
            deadline=self._deadline(timeout),
        )

    async def expire_delegation_token(
        self, hmac: bytes, *, expiry_period_ms: int | None = None, timeout: float | None = None
    ) -> int:
        """End a token (KIP-48): so long from now, or at once with None. Returns and raises as
        `renew_delegation_token`. No request is sent twice.
        """
        from kohort.client.admin import delegation_tokens, operation_arguments

        return await delegation_tokens.expire_delegation_token(
            self._cluster,
            operation_arguments.hmac(hmac),
            operation_arguments.number_or_none("expiry_period_ms", expiry_period_ms),
            deadline=self._deadline(timeout),
        )

    async def describe_delegation_tokens(
        self, owners: str | Iterable[str] | None = None, *, timeout: float | None = None
    ) -> "tuple[hints.DelegationToken, ...]":
        """The tokens of these owners, or with None all, as far as this client may see them, sorted
        by id (KIP-48). Raises as `create_delegation_token`.
        """
        from kohort.client.admin import delegation_tokens, operation_arguments

        return await delegation_tokens.describe_delegation_tokens(
            self._cluster,
            None if owners is None else operation_arguments.principals("owners", owners),
            deadline=self._deadline(timeout),
        )
