# SPDX-License-Identifier: Apache-2.0
"""SASL on a listener without it, or after a login, and delegation tokens: offered as upstream
offers them, and refused with upstream's codes. The connection goes on.

Logins are not handled here: `kohort.server.sasl` takes the frames of a client until it is known.
"""

from kohort.errors import ApiError, ErrorCode
from kohort.machines.effects import ANONYMOUS, Call, Client
from kohort.server.access import CREATE_TOKENS, USER
from kohort.server.node import Node
from kohort.terms import Millis
from kohort.wire.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from kohort.wire.messages.describe_delegation_token import (
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from kohort.wire.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from kohort.wire.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)
from kohort.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from kohort.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

NOT_ALLOWED = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
DISABLED = ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
_NO_TIME = -1


def sasl_handshake(
    _node: Node, _call: Call[SaslHandshakeRequest], _now: Millis
) -> SaslHandshakeResponse:
    """No mechanism: this client needs none, or has logged in already."""
    return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)


def sasl_authenticate(
    _node: Node, _call: Call[SaslAuthenticateRequest], _now: Millis
) -> SaslAuthenticateResponse:
    """Raises ApiError."""
    raise ApiError(
        ErrorCode.ILLEGAL_SASL_STATE,
        "SaslAuthenticate request received after successful authentication",
    )


def _refusal(client: Client) -> ErrorCode:
    """Who has proved nothing gets no token; for others there is no secret to make tokens with."""
    return NOT_ALLOWED if client.principal == ANONYMOUS else DISABLED


def create_token(
    node: Node, call: Call[CreateDelegationTokenRequest], _now: Millis
) -> CreateDelegationTokenResponse:
    """The refusal names the owner and who has asked, as upstream's does."""
    request, client = call.request, call.client
    asking, _, name = client.principal.partition(":")
    owner = asking, name
    if request.owner_principal_name:
        owner = request.owner_principal_type or "", request.owner_principal_name
    code = _refusal(client)
    may = owner == (asking, name) or node.cluster.may(client, CREATE_TOKENS, USER, ":".join(owner))
    if code is DISABLED and not may:
        code = ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
    stamp = 0 if code is DISABLED else _NO_TIME
    return CreateDelegationTokenResponse(
        error_code=code,
        principal_type=owner[0],
        principal_name=owner[1],
        token_requester_principal_type=asking,
        token_requester_principal_name=name,
        issue_timestamp_ms=stamp,
        expiry_timestamp_ms=stamp,
        max_timestamp_ms=stamp,
    )


def renew_token(
    _node: Node, call: Call[RenewDelegationTokenRequest], _now: Millis
) -> RenewDelegationTokenResponse:
    code = _refusal(call.client)
    return RenewDelegationTokenResponse(
        error_code=code, expiry_timestamp_ms=0 if code is DISABLED else _NO_TIME
    )


def expire_token(
    _node: Node, call: Call[ExpireDelegationTokenRequest], _now: Millis
) -> ExpireDelegationTokenResponse:
    code = _refusal(call.client)
    return ExpireDelegationTokenResponse(
        error_code=code, expiry_timestamp_ms=0 if code is DISABLED else _NO_TIME
    )


def describe_tokens(
    _node: Node, call: Call[DescribeDelegationTokenRequest], _now: Millis
) -> DescribeDelegationTokenResponse:
    return DescribeDelegationTokenResponse(error_code=_refusal(call.client))
