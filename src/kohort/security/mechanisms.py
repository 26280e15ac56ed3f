# SPDX-License-Identifier: Apache-2.0
"""Which machine a client authenticates with."""

from kohort.security.names import MECHANISMS, OAUTHBEARER, PLAIN
from kohort.security.oauthbearer import OAuthBearerClient
from kohort.security.plain import PlainClient
from kohort.security.sasl import ClientMechanism, SaslError
from kohort.security.scram import HASHES, ScramClient
from kohort.security.settings import Security


def client_mechanism(security: Security, nonce: str, token: str | None = None) -> ClientMechanism:
    """The machine for one authentication, by `security.mechanism`. Raises SaslError.

    `nonce` is new each time, and nobody can guess it: at least 20 letters and digits. `token` is
    for OAUTHBEARER, got just now from `security.token` or its endpoint.
    """
    name = security.mechanism
    if name == OAUTHBEARER:
        if not token:
            raise SaslError("OAUTHBEARER needs a token, and there is none")
        return OAuthBearerClient(token, security.extensions)
    if name != PLAIN and name not in HASHES:
        raise SaslError(f"SASL mechanism {name!r}, expected one of {', '.join(MECHANISMS)}")
    if not security.username or not security.password:
        raise SaslError(f"{name} needs a user name and a password, and one of them is missing")
    if name == PLAIN:
        return PlainClient(security.username, security.password)
    return ScramClient(name, security.username, security.password, nonce)
