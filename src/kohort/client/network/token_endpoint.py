"""Tokens by client credentials (RFC 6749, 4.4): one request to a token endpoint. It blocks."""

import base64
import json
import ssl
from http.client import HTTPException, HTTPResponse
from typing import Any, NamedTuple
from urllib.error import HTTPError, URLError
from urllib.parse import quote_plus, urlencode, urlsplit
from urllib.request import HTTPRedirectHandler, HTTPSHandler, ProxyHandler, Request, build_opener

from kohort.client.network.connection_errors import ConnectionFailedError
from kohort.errors import AuthenticationError, ErrorCode
from kohort.escaping import visible
from kohort.security.settings import Security
from kohort.security.stores import client_context

TIMEOUT_S = 10.0
_ANSWER_BYTES = 1 << 20
_SHOWN_MAX = 200


class AccessToken(NamedTuple):
    """A token, and how long it holds from the request on: 0 where nobody says."""

    text: str
    lifetime_s: float

    def __repr__(self) -> str:
        return f"AccessToken({self.lifetime_s} s)"


class _NoRedirect(HTTPRedirectHandler):
    """The secret goes nowhere else."""

    def redirect_request(self, *_: Any) -> None:
        return None


def request_token(security: Security) -> AccessToken:
    """A new token. Raises AuthenticationError where the endpoint refuses, and ConnectionFailedError
    where it cannot be reached or fails, which may pass.
    """
    endpoint = security.token_endpoint or ""
    secret = f"{quote_plus(security.client_id or '')}:{quote_plus(security.client_secret or '')}"
    form = {"grant_type": "client_credentials"}
    if security.scope:
        form["scope"] = security.scope
    request = Request(  # noqa: S310  (the scheme is checked when the client is made)
        endpoint,
        data=urlencode(form).encode(),
        headers={
            "Authorization": "Basic " + base64.b64encode(secret.encode()).decode(),
            "Accept": "application/json",
        },
        method="POST",
    )
    shown = _shown(endpoint)
    # A proxy sees what goes by http: the secret. What goes by https passes one unread.
    proxies = ProxyHandler({} if request.type == "http" else None)
    opener = build_opener(_NoRedirect(), proxies, HTTPSHandler(context=_context(security)))
    try:
        with opener.open(request, timeout=TIMEOUT_S) as answer:
            return _token(shown, _body(answer))
    except HTTPError as error:
        with error:
            raise _refusal(shown, security, error) from None
    except ssl.SSLCertVerificationError as error:
        raise _untrusted(shown, error) from None
    except URLError as error:
        if isinstance(error.reason, ssl.SSLCertVerificationError):
            raise _untrusted(shown, error.reason) from None
        raise _unreachable(shown, error.reason) from None
    except (OSError, HTTPException) as error:
        raise _unreachable(shown, error) from None


def _context(security: Security) -> ssl.SSLContext:
    """The authorities of the system, and those that the client trusts for its brokers."""
    context = client_context(trust=security.trust)
    if security.trust is not None:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    return context


def _body(answer: HTTPResponse | HTTPError) -> dict[str, Any]:
    """The fields of a JSON answer, none for anything else."""
    try:
        found = json.loads(answer.read(_ANSWER_BYTES))
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _token(endpoint: str, body: dict[str, Any]) -> AccessToken:
    token, lifetime_s = body.get("access_token"), body.get("expires_in", 0)
    if not isinstance(token, str) or not token:
        text = f"no token: the answer of {endpoint} has no access_token, expected one in JSON"
        raise AuthenticationError(ErrorCode.SASL_AUTHENTICATION_FAILED, text)
    try:
        return AccessToken(token, max(0.0, float(lifetime_s)))
    except (TypeError, ValueError):
        return AccessToken(token, 0.0)


def _refusal(endpoint: str, security: Security, error: HTTPError) -> Exception:
    if error.code >= 500:
        return ConnectionFailedError(f"no token: {endpoint} answered {error.code}", sent=False)
    body = _body(error)
    said = ": ".join(
        visible(str(body[name]))[:_SHOWN_MAX]
        for name in ("error", "error_description")
        if body.get(name)
    )
    text = f"no token: {endpoint} refused client {visible(security.client_id or '')}"
    why = f"{said or 'without a reason'} (HTTP {error.code})"
    return AuthenticationError(ErrorCode.SASL_AUTHENTICATION_FAILED, f"{text}: {why}")


def _untrusted(endpoint: str, error: ssl.SSLCertVerificationError) -> AuthenticationError:
    text = f"no token: the certificate of {endpoint} is not trusted: {error.verify_message}"
    return AuthenticationError(ErrorCode.SSL_AUTHENTICATION_FAILED, text)


def _unreachable(endpoint: str, why: object) -> ConnectionFailedError:
    text = f"no token: {endpoint} cannot be reached: {visible(str(why))}"
    return ConnectionFailedError(text, sent=False)


def _shown(endpoint: str) -> str:
    """Without what may be a secret: a user, a password, a query."""
    parts = urlsplit(endpoint)
    return visible(f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}")
