# SPDX-License-Identifier: Apache-2.0
"""What the mechanisms of SASL have in common (RFC 4422). Each is a machine: it is given what the
other side has sent, and returns what is to be sent. Nonces and the time are given to it.
"""

from typing import NamedTuple, Protocol

from kohort.errors import KohortError
from kohort.terms import Millis

NAME = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]++|=2C|=3D)++"
"""An expression: a name in a message of SCRAM or OAUTHBEARER, as upstream takes it (ASCII)."""

LONGEST_NAME = 1024
"""Of a user, in bytes: names are kept, sent and logged. Upstream has no limit."""


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


class Identity(NamedTuple):
    """The user that a client has proved to be. `ends` is when its proof ends; None: never."""

    name: str
    ends: Millis | None = None


class SaslRefusalError(SaslError):
    """A server refuses, with the text of this error for the client. Any other SaslError has a text
    for the server's log: the client is told no more than that its credentials are wrong.
    """


class ServerMechanism(Protocol):
    """The server's part of one authentication. `identity` is None until it has succeeded."""

    name: str
    identity: Identity | None

    def answer(self, token: bytes, now: Millis) -> bytes:
        """The token that answers one of the client.

        Raises SaslRefusalError and SaslError, and WireError where the connection has to be closed
        without an answer. After one of these the machine must not be asked again.
        """


def other_authorization_id() -> SaslRefusalError:
    """The client wants to act for somebody else."""
    return SaslRefusalError(
        "Authentication failed: Client requested an authorization id that is different from"
        " username"
    )
