"""Reads the keys of an authority from a server of HTTP. Imported only where keys are on one."""

from http.client import HTTPException
from urllib.request import urlopen

from kohort.security.sasl import SaslError

TIMEOUT_SECONDS = 10


def read_url(url: str, limit_bytes: int) -> bytes:
    """What is at this URL, as far as one byte beyond the limit. Raises SaslError."""
    try:
        with urlopen(url, timeout=TIMEOUT_SECONDS) as answer:  # noqa: S310  (the caller has checked it)
            read: bytes = answer.read(limit_bytes + 1)
    except (OSError, ValueError, HTTPException) as error:
        raise SaslError(
            f"the keys at {url} cannot be read: {error or type(error).__name__}"
        ) from None
    return read
