# SPDX-License-Identifier: Apache-2.0
"""A token endpoint: what is sent, every answer, and that the secret goes nowhere else."""

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from tests.certificates import Authority
from tests.ports import free_port

from kohort.client.network.connection_errors import ConnectionFailedError
from kohort.client.network.token_endpoint import request_token
from kohort.errors import AuthenticationError, ErrorCode
from kohort.security.oauthbearer import AccessToken
from kohort.security.settings import Security, Store
from kohort.security.stores import server_context

SECRET = "s3cret:of %"


@contextmanager
def endpoint(
    status: int = 200, body: Any = b"", headers: dict[str, str] | None = None, tls: Any = None
) -> Iterator[tuple[str, list[Any]]]:
    """Its address, and what it was asked."""
    asked: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            size = int(self.headers["Content-Length"])
            asked.append((self.path, dict(self.headers), self.rfile.read(size).decode()))
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(status)
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        scheme = "https" if tls else "http"
        yield f"{scheme}://127.0.0.1:{server.server_port}/token", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def security(address: str, **more: Any) -> Security:
    return Security(
        mechanism="OAUTHBEARER",
        token_endpoint=address,
        client_id="kohort",
        client_secret=SECRET,
        **more,
    )


def test_client_credentials_are_shown_and_a_token_comes_back():
    body = {"access_token": "abc", "expires_in": 300, "token_type": "Bearer"}
    with endpoint(body=body) as (address, asked):
        token = request_token(security(address, scope="kafka read"))
    assert token == AccessToken("abc", 300.0)
    ((path, headers, form),) = asked
    assert (path, form) == ("/token", "grant_type=client_credentials&scope=kafka+read")
    scheme, coded = headers["Authorization"].split()
    assert (scheme, base64.b64decode(coded)) == ("Basic", b"kohort:s3cret%3Aof+%25")
    assert "abc" not in repr(token)


@pytest.mark.parametrize(
    "expires",
    [None, "soon", -3, int("9" * 400), float("inf"), float("nan")],
    ids=["none", "text", "past", "huge", "infinite", "nan"],
)
def test_a_token_without_an_end_is_not_kept(expires):
    with endpoint(body={"access_token": "abc", "expires_in": expires}) as (address, _):
        assert request_token(security(address)) == AccessToken("abc", 0.0)


REFUSALS = [
    (
        *(401, {"error": "invalid_client", "error_description": "Invalid\nclient secret"}),
        r"refused client kohort: invalid_client: Invalid\\nclient secret \(HTTP 401\)$",
    ),
    (400, {"error": "invalid_scope"}, r"refused client kohort: invalid_scope \(HTTP 400\)$"),
    (403, b"<html>", r"refused client kohort: without a reason \(HTTP 403\)$"),
    (200, {"token": "abc"}, "has no access_token, expected one in JSON$"),
    (200, b"[]", "has no access_token"),
    (200, b"no JSON", "has no access_token"),
    (200, b"[" * 100_000, "has no access_token"),
    (400, b"[" * 100_000, r"without a reason \(HTTP 400\)$"),
]


@pytest.mark.parametrize(("status", "body", "line"), REFUSALS)
def test_a_refusal_says_why_and_has_no_secret(status, body, line):
    with (
        endpoint(status, body) as (address, _),
        pytest.raises(AuthenticationError, match=line) as caught,
    ):
        request_token(security(address))
    assert caught.value.code is ErrorCode.SASL_AUTHENTICATION_FAILED
    assert f"no token: {'the answer of ' if status == 200 else ''}http://127.0.0.1" in str(
        caught.value
    )
    assert "s3cret" not in str(caught.value)


def test_an_endpoint_that_fails_may_come_back():
    with (
        endpoint(503) as (address, _),
        pytest.raises(ConnectionFailedError, match=r"/token answered 503$"),
    ):
        request_token(security(address))
    with pytest.raises(ConnectionFailedError, match=r"cannot be reached: .*refused"):
        request_token(security(f"http://127.0.0.1:{free_port()}/token"))


@pytest.mark.parametrize("status", [200, 400])
def test_an_answer_that_breaks_off_may_be_whole_the_next_time(status):
    with (
        endpoint(status, b"64\r\n{", headers={"Transfer-Encoding": "chunked"}) as (address, _),
        pytest.raises(ConnectionFailedError, match=r"/token cannot be reached: IncompleteRead"),
    ):
        request_token(security(address))


def test_the_secret_goes_through_no_proxy_where_nothing_hides_it(monkeypatch):
    with (
        endpoint(body={"access_token": "stolen"}) as (proxy, seen),
        endpoint(body={"access_token": "abc"}) as (address, asked),
    ):
        monkeypatch.setenv("http_proxy", proxy)
        for name in ("no_proxy", "NO_PROXY"):
            monkeypatch.delenv(name, raising=False)
        assert request_token(security(address)).text == "abc"
    assert (len(seen), len(asked)) == (0, 1)


def test_the_secret_follows_no_redirect():
    with endpoint(body={"access_token": "stolen"}) as (elsewhere, asked):
        to = {"Location": elsewhere}
        for status in (301, 302, 307, 308):
            with (
                endpoint(status, headers=to) as (address, _),
                pytest.raises(AuthenticationError, match=f"HTTP {status}"),
            ):
                request_token(security(address))
    assert asked == []


def test_the_endpoint_is_trusted_by_the_authorities_of_the_client(tmp_path):
    authority, other = Authority(), Authority("Another CA")
    identity = authority.sign("idp").write_pem(tmp_path / "idp.pem")
    tls = server_context(Store(path=str(identity)))
    with endpoint(body={"access_token": "abc"}, tls=tls) as (address, asked):
        trust = Store(text=authority.pem)
        assert request_token(security(address, trust=trust)).text == "abc"
        with pytest.raises(
            AuthenticationError, match=r"certificate of https://.* is not trusted: "
        ):
            request_token(security(address, trust=Store(text=other.pem)))
    assert len(asked) == 1


def test_what_may_be_a_secret_in_the_address_is_not_shown():
    port = free_port()
    with pytest.raises(ConnectionFailedError) as caught:
        request_token(security(f"http://user:hidden@127.0.0.1:{port}/token?key=hidden"))
    assert "hidden" not in str(caught.value)
    assert f"http://127.0.0.1:{port}/token" in str(caught.value)
