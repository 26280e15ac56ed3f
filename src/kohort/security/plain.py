"""PLAIN (RFC 4616): a name and a password, as they are."""

from kohort.security.sasl import PLAIN, SaslError

_SEPARATOR = "\0"


class PlainClient:
    """Tells the server the password. The server proves nothing."""

    name = PLAIN

    def __init__(self, username: str, password: str) -> None:
        """Raises SaslError for a name or a password that the mechanism cannot carry."""
        if _SEPARATOR in username + password:
            raise SaslError("PLAIN: the name or the password has a NUL, expected none")
        self._token = _SEPARATOR.join(("", username, password)).encode()

    def first(self) -> bytes:
        return self._token

    def answer(self, challenge: bytes) -> None:
        if challenge:
            raise SaslError(f"PLAIN: the server goes on with {len(challenge)} bytes, expected none")
