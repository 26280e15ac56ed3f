# SPDX-License-Identifier: Apache-2.0
"""The settings of a broker that are about SASL. `BrokerConfig` has them.

Each can be written for one listener alone, `listener.name.<name in small letters>.<setting>`, and
most of them for one mechanism of it, with the name of that in small letters before the setting.
"""

from dataclasses import dataclass

from kohort.config.security import SecuritySettings
from kohort.config.settings import integer, listing, long, password, string
from kohort.security.names import MECHANISMS

MECHANISM_PREFIXES = tuple(f"{name.lower()}." for name in MECHANISMS)

_OAUTH = "OAUTHBEARER: "


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthenticationSettings(SecuritySettings):
    """How clients of listeners of SASL_PLAINTEXT and SASL_SSL prove who they are."""

    sasl_enabled_mechanisms: tuple[str, ...] = listing(
        ("GSSAPI",),
        "The mechanisms of a listener: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER. The "
        "default is upstream's and is refused: Kohort does not have it.",
    )
    sasl_jaas_config: str | None = password(
        "The login module of a mechanism with its options. PLAIN has its users there: "
        'user_<name>="<password>".'
    )
    sasl_server_callback_handler_class: str | None = string(
        None,
        _OAUTH + "OAuthBearerValidatorCallbackHandler, or for tests "
        "OAuthBearerUnsecuredValidatorCallbackHandler, which takes tokens that nobody has signed.",
    )
    sasl_server_max_receive_size: int = integer(
        524_288, "How long a frame of a client may be that is not known yet.", least=1
    )
    connections_max_reauth_ms: int = long(
        0,
        "After how long a client has to authenticate again on its connection (KIP-368); 0: never, "
        "unless its token ends.",
        least=0,
    )
    connection_failed_authentication_delay_ms: int = integer(
        100, "How long the refusal of a client waits, so that guessing takes long.", least=0
    )
    sasl_oauthbearer_jwks_endpoint_url: str | None = string(
        None, _OAUTH + "where the keys are that check tokens: an https, http or file URL."
    )
    sasl_oauthbearer_jwks_endpoint_refresh_ms: int = long(
        3_600_000, _OAUTH + "how often the keys are read.", least=1
    )
    sasl_oauthbearer_jwks_endpoint_retry_backoff_ms: int = long(
        100, _OAUTH + "when the keys are read again after they could not be read.", least=1
    )
    sasl_oauthbearer_jwks_endpoint_retry_backoff_max_ms: int = long(
        10_000, _OAUTH + "the same after the keys could not be read many times.", least=1
    )
    sasl_oauthbearer_expected_audience: tuple[str, ...] = listing(
        (), _OAUTH + "a token must be for one of these (`aud`); without any, for anybody."
    )
    sasl_oauthbearer_expected_issuer: str | None = string(
        None, _OAUTH + "who must have issued a token (`iss`)."
    )
    sasl_oauthbearer_clock_skew_seconds: int = integer(
        30, _OAUTH + "by how much the clock of the issuer may be ahead (`nbf`).", least=0
    )
    sasl_oauthbearer_scope_claim_name: str = string(
        "scope", _OAUTH + "the claim that has the scopes of a token."
    )
    sasl_oauthbearer_sub_claim_name: str = string(
        "sub", _OAUTH + "the claim that has the name of the user."
    )
