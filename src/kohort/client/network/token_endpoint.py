# SPDX-License-Identifier: Apache-2.0
"""Tokens by client credentials (RFC 6749, 4.4): one request to a token endpoint. It blocks."""

import base64
import json
import ssl
from http.client import HTTPException, HTTPResponse
from math import isfinite
from typing import Any
from urllib.error import URLError
from urllib.parse import quote_plus, urlencode, urlsplit
from urllib.request import HTTPErrorProcessor, HTTPSHandler, ProxyHandler, Request, build_opener

from kohort.client.network.connection_errors import ConnectionFailedError
from kohort.errors import AuthenticationError, ErrorCode
from kohort.escaping import visible
from kohort.security.oauthbearer import AccessToken
from kohort.security.settings import Security
from kohort.security.stores import client_context

TIMEOUT_S = 10.0
_ANSWER_BYTES = 1 << 20
_SHOWN_MAX = 200


class _AnyStatus(HTTPErrorProcessor):
    """Returns every answer as it is. A redirect is not followed: the secret goes nowhere else."""

    def http_response(self, request: Request, response: HTTPResponse) -> HTTPResponse:  # noqa: ARG002
        return response

    https_response = http_response


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
    opener = build_opener(_AnyStatus(), proxies, HTTPSHandler(context=_context(security)))
    try:
        with opener.open(request, timeout=TIMEOUT_S) as answer:
            if not 200 <= answer.status < 300:
                raise _refusal(shown, security, answer)
            return _token(shown, _body(answer))
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


def _body(answer: HTTPResponse) -> dict[str, Any]:
    """The fields of a JSON answer, none for anything else."""
    try:
        found = json.loads(answer.read(_ANSWER_BYTES))
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _token(endpoint: str, body: dict[str, Any]) -> AccessToken:
    token, lifetime_s = body.get("access_token"), body.get("expires_in", 0)
    if not isinstance(token, str) or not token:
        text = f"no token: the answer of {endpoint} has no access_token, expected one in JSON"
        raise AuthenticationError(ErrorCode.SASL_AUTHENTICATION_FAILED, text)
    return AccessToken(token, _seconds(lifetime_s))


def _seconds(value: Any) -> float:
    """How long a token holds, 0 for what is no such time."""
    try:
        seconds = float(value)
    except (TypeError, ValueError, OverflowError):
        return 0.0
    return seconds if seconds > 0 and isfinite(seconds) else 0.0


def _refusal(endpoint: str, security: Security, answer: HTTPResponse) -> Exception:
    if answer.status >= 500:
        return ConnectionFailedError(f"no token: {endpoint} answered {answer.status}", sent=False)
    body = _body(answer)
    said = ": ".join(
        visible(str(body[name]))[:_SHOWN_MAX]
        for name in ("error", "error_description")
        if body.get(name)
    )
    text = f"no token: {endpoint} refused client {visible(security.client_id or '')}"
    why = f"{said or 'without a reason'} (HTTP {answer.status})"
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
