"""OAUTHBEARER (RFC 7628, KIP-255): a token of somebody whom the broker trusts, and extensions
(KIP-342).
"""

import re
from collections.abc import Mapping

from kohort.security.sasl import OAUTHBEARER, SaslError

END = "\x01"
GOODBYE = b"\x01"
"""What a client sends when its token was refused, so that the server can refuse it for good."""

KEY, VALUE = "[A-Za-z]+", r"[\x21-\x7e \t\r\n]+"
TOKEN = "[-_~+/.a-zA-Z0-9]+=*"  # noqa: S105  (an expression)
AUTH = "auth"


class OAuthBearerClient:
    """Shows a token. The server proves nothing."""

    name = OAUTHBEARER

    def __init__(self, token: str, extensions: Mapping[str, str]) -> None:
        """Raises SaslError for a token or an extension that cannot be sent. It shows neither."""
        if not re.fullmatch(TOKEN, token):
            raise SaslError(
                f"OAUTHBEARER: the token ({len(token)} characters) has a character that no token"
                " has, expected letters, digits and -_~+/."
            )
        for key, value in extensions.items():
            if key == AUTH or not re.fullmatch(KEY, key) or not re.fullmatch(VALUE, value):
                raise SaslError(
                    f"OAUTHBEARER: extension {key!r}, expected a name of letters that is not"
                    f" `{AUTH}`, and a value of printable ASCII"
                )
        pairs = {AUTH: f"Bearer {token}", **extensions}
        text = "".join(f"{key}={value}{END}" for key, value in pairs.items())
        self._token = f"n,,{END}{text}{END}".encode()

    def first(self) -> bytes:
        return self._token

    def answer(self, challenge: bytes) -> bytes | None:
        """None where the token was taken; otherwise the goodbye, which the server refuses."""
        return GOODBYE if challenge else None
