"""What the mechanisms of SASL have in common (RFC 4422). Each is a machine: it is given what the
other side has sent, and returns what is to be sent. Nonces and the time are given to it.
"""

from typing import Protocol

from kohort.errors import KohortError

PLAIN = "PLAIN"
SCRAM_SHA_256, SCRAM_SHA_512 = "SCRAM-SHA-256", "SCRAM-SHA-512"
OAUTHBEARER = "OAUTHBEARER"
MECHANISMS = (PLAIN, SCRAM_SHA_256, SCRAM_SHA_512, OAUTHBEARER)


class SaslError(KohortError):
    """One side cannot trust the other, or does not understand it. The text has no secret."""


class ClientMechanism(Protocol):
    """The client's part of one authentication."""

    name: str

    def first(self) -> bytes:
        """The first token of the client."""

    def answer(self, challenge: bytes) -> bytes | None:
        """The token that answers what the server has sent; None: the client has nothing to add.

        Once it is None, the client trusts the server as far as the mechanism can tell. Raises
        SaslError.
        """
