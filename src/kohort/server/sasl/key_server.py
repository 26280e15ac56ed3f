# SPDX-License-Identifier: Apache-2.0
"""Reads the keys of an authority from a server of HTTP. Imported only where keys are on one."""

from http.client import HTTPException, HTTPMessage
from typing import IO
from urllib.parse import urljoin, urlsplit
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

from kohort.escaping import visible
from kohort.security.sasl import SaslError

TIMEOUT_SECONDS = 10
LONGEST_SHOWN = 200  # characters of what a server says


class _Redirects(HTTPRedirectHandler):
    """Whoever answers in place of a server must have proved who it is, or be the same server."""

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> Request | None:
        before, after = urlsplit(req.full_url), urlsplit(urljoin(req.full_url, newurl))
        if after.scheme != "https" and before[:2] != after[:2]:
            raise SaslError("it leads to another server without TLS, expected https")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def read_url(url: str, limit_bytes: int) -> bytes:
    """The content at this URL, as far as one byte beyond the limit. Raises SaslError: why not."""
    handlers: list[HTTPRedirectHandler | ProxyHandler] = [_Redirects()]
    if url.startswith("http:"):  # a proxy could give out keys of its own
        handlers.append(ProxyHandler({}))
    try:
        with build_opener(*handlers).open(url, timeout=TIMEOUT_SECONDS) as answer:
            read: bytes = answer.read(limit_bytes + 1)
    except (OSError, ValueError, HTTPException) as error:
        text = visible(str(error)[:LONGEST_SHOWN])
        raise SaslError(text or type(error).__name__) from None
    return read
