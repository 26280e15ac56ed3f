# SPDX-License-Identifier: Apache-2.0
"""Tokens that nobody has signed: anybody can be anybody. For tests alone (KIP-255)."""

from collections.abc import Sequence
from dataclasses import dataclass

from kohort.errors import WireError
from kohort.security.claims import ending_of, name_of, read_token, texts_of, time_of
from kohort.security.oauthbearer import TokenError
from kohort.security.sasl import Identity
from kohort.terms import Millis


@dataclass(frozen=True, slots=True)
class UnsecuredTokens:
    """Takes a token for what it says, as upstream's OAuthBearerUnsecuredValidatorCallbackHandler
    does. The fields are its options, `unsecuredValidator…`.
    """

    principal_claim: str = "sub"
    scope_claim: str = "scope"
    required_scope: Sequence[str] = ()
    clock_skew_ms: int = 0

    def check(self, text: str, now: Millis) -> Identity:
        """Whose the token is. Raises TokenError, and WireError as upstream closes the connection
        for a header without `alg`.
        """
        token = read_token(text)
        algorithm = token.header.get("alg")
        if algorithm is None:
            raise WireError("OAUTHBEARER: the header of a token has no `alg`")
        if algorithm != "none" or token.signature:
            raise TokenError("the token is signed, and tokens are expected that are not")
        claims = token.claims
        name = name_of(claims, self.principal_claim)
        ends = ending_of(claims)
        issued = time_of(claims, "iat")
        if issued is not None and issued * 1000 > now + self.clock_skew_ms:
            raise TokenError("claim `iat` lies in the future")
        if now - self.clock_skew_ms >= ends:
            raise TokenError("the token has ended (`exp`)")
        if issued is not None and ends <= issued * 1000:
            raise TokenError("the token ends before it was issued (`exp`, `iat`)")
        scopes = [one for text in texts_of(claims, self.scope_claim) for one in text.split()]
        for scope in self.required_scope:
            if scope not in scopes:
                scopes_text = f"[{', '.join(self.required_scope)}]"
                reason = f"the token has no scope {scope!r}"
                raise TokenError(reason, "insufficient_scope", scopes_text)
        return Identity(name, ends)
