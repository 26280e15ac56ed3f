# SPDX-License-Identifier: Apache-2.0
"""The keys of an authority on a server of HTTP, which may be no such server."""

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest

from kohort.security.sasl import SaslError
from kohort.server.sasl.key_server import read_url

KEY_SET = b'{"keys": []}'


@pytest.fixture
def server() -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path == "/nonsense":
                self.wfile.write(b"no HTTP at all\r\n\r\n")
                return
            if self.path.startswith("/to?"):
                self.send_response(302)
                self.send_header("Location", self.path.removeprefix("/to?"))
                self.end_headers()
                return
            self.send_response(200 if self.path == "/keys" else 404)
            self.end_headers()
            self.wfile.write(KEY_SET)

        def log_message(self, *_: object) -> None:
            pass

    http = HTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{http.server_address[1]}"
    http.shutdown()
    thread.join()
    http.server_close()


def test_keys_are_read_as_far_as_the_limit(server: str) -> None:
    assert read_url(f"{server}/keys", 1000) == KEY_SET
    assert read_url(f"{server}/keys", 3) == KEY_SET[:4]


@pytest.mark.parametrize("path", ["other", "nonsense"])
def test_a_server_that_has_none_is_refused(server: str, path: str) -> None:
    with pytest.raises(SaslError, match=r"HTTP Error 404|no HTTP at all"):
        read_url(f"{server}/{path}", 1000)


def test_a_server_that_is_not_there_is_refused() -> None:
    with pytest.raises(SaslError, match="refused"):
        read_url("http://127.0.0.1:1/keys", 1000)


def test_keys_may_be_elsewhere_on_the_server(server: str) -> None:
    assert read_url(f"{server}/to?/keys", 1000) == KEY_SET


@pytest.mark.parametrize("target", ["http://localhost:{port}/keys", "ftp://127.0.0.1:{port}/keys"])
def test_keys_are_not_fetched_from_another_server_without_tls(server: str, target: str) -> None:
    other = target.format(port=server.rpartition(":")[2])
    with pytest.raises(SaslError, match="leads to another server without TLS, expected https"):
        read_url(f"{server}/to?{other}", 1000)


def test_a_proxy_does_not_read_what_comes_without_tls(
    server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It could give out keys of its own."""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    assert read_url(f"{server}/keys", 1000) == KEY_SET
