"""SASL and delegation tokens on a listener of plain text: offered as upstream offers them, and
refused with upstream's codes. Nobody is authenticated here, and the connection goes on.
"""

from kohort.errors import ApiError, ErrorCode
from kohort.machines.effects import Call
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


def sasl_handshake(
    _node: Node, _call: Call[SaslHandshakeRequest], _now: Millis
) -> SaslHandshakeResponse:
    """No mechanism: whoever is here is in already."""
    return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)


def sasl_authenticate(
    _node: Node, _call: Call[SaslAuthenticateRequest], _now: Millis
) -> SaslAuthenticateResponse:
    """Raises ApiError."""
    raise ApiError(
        ErrorCode.ILLEGAL_SASL_STATE,
        "SaslAuthenticate request received after successful authentication",
    )


def create_token(
    _node: Node, call: Call[CreateDelegationTokenRequest], _now: Millis
) -> CreateDelegationTokenResponse:
    """The refusal names the owner and who has asked, as upstream's does."""
    request = call.request
    asking, _, name = call.client.principal.partition(":")
    owner = asking, name
    if request.owner_principal_name:
        owner = request.owner_principal_type or "", request.owner_principal_name
    return CreateDelegationTokenResponse(
        error_code=NOT_ALLOWED,
        principal_type=owner[0],
        principal_name=owner[1],
        token_requester_principal_type=asking,
        token_requester_principal_name=name,
        issue_timestamp_ms=-1,
        expiry_timestamp_ms=-1,
        max_timestamp_ms=-1,
    )


def renew_token(
    _node: Node, _call: Call[RenewDelegationTokenRequest], _now: Millis
) -> RenewDelegationTokenResponse:
    return RenewDelegationTokenResponse(error_code=NOT_ALLOWED, expiry_timestamp_ms=-1)


def expire_token(
    _node: Node, _call: Call[ExpireDelegationTokenRequest], _now: Millis
) -> ExpireDelegationTokenResponse:
    return ExpireDelegationTokenResponse(error_code=NOT_ALLOWED, expiry_timestamp_ms=-1)


def describe_tokens(
    _node: Node, _call: Call[DescribeDelegationTokenRequest], _now: Millis
) -> DescribeDelegationTokenResponse:
    return DescribeDelegationTokenResponse(error_code=NOT_ALLOWED)
