# SPDX-License-Identifier: Apache-2.0
"""Azurite and fake-gcs-server behind servers that can be told to answer badly."""

import base64
import hmac
import json
from http.client import HTTPConnection
from urllib.parse import quote, unquote, urlencode

from tests.pipeline.stores.emulators import Emulator, azurite, fake_gcs
from tests.pipeline.stores.faulty import Faulty

NAME = "tables"
ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""Which Azurite has for everybody."""
KEYS = {"AZURE_STORAGE_ACCOUNT_KEY": KEY, "GOOGLE_BEARER_TOKEN": "nobodys"}
"""What is asked with these never leaves this machine."""
_NOT_PASSED_ON = {"connection", "transfer-encoding", "content-length", "keep-alive"}


class Cloud(Faulty):
    """What is asked is told as it is sent."""

    writing = swapping = "PUT"
    conditions: tuple[str, ...]
    before = f"/{NAME}/"

    def __init__(self, command) -> None:
        self._emulator = Emulator(command)
        super().__init__(self._forward)
        self.url = f"http://{self.address}"

    @property
    def lives(self) -> bool:
        return self._emulator.lives

    def be_blind(self, environ, start):
        for name in self.conditions:
            environ.pop(name, None)
        return self._app(environ, start)

    def remove(self, objects, key):
        """What is swapped goes."""
        objects.delete([key], "")

    def is_flip(self, place, asked, path):
        """Whether it makes a manifest count."""
        return (asked, path) == ("PUT", f"{self.before}{place.key}/manifest.json")

    def is_listing(self, asked, path):
        """Whether it asks for the files of a folder."""
        return asked not in ("GET", "HEAD") or f"{path}/" == self.before

    def close(self) -> None:
        super().close()
        self._emulator.close()

    def _ask(self, method, uri, body=b"", headers=None):
        connection = HTTPConnection("127.0.0.1", self._emulator.port, timeout=60)
        connection.request(method, uri, body, headers or {})
        answer = connection.getresponse()
        data = answer.read()
        connection.close()
        told = [one for one in answer.getheaders() if one[0].lower() not in _NOT_PASSED_ON]
        length = answer.getheader("Content-Length") if method == "HEAD" else str(len(data))
        return f"{answer.status} {answer.reason}", [*told, ("Content-Length", length or "0")], data

    def _forward(self, environ, start):
        status, headers, data = self._ask(
            environ["REQUEST_METHOD"], environ["REQUEST_URI"], _body(environ), _headers(environ)
        )
        start(status, headers)
        return [data]


class Azure(Cloud):
    start = f"abfss://{NAME}@{ACCOUNT}.dfs.core.windows.net/"
    conditions = ("HTTP_IF_MATCH", "HTTP_IF_NONE_MATCH")
    before = f"/{ACCOUNT}/{NAME}/"

    def __init__(self) -> None:
        super().__init__(azurite())
        self.environ = {"AZURE_STORAGE_ENDPOINT": f"{self.url}/{ACCOUNT}"}
        uri = f"/{ACCOUNT}/{NAME}?restype=container&{shared_access()}"  # obstore makes none
        status, *_ = self._ask("PUT", uri)
        assert status.startswith("201"), status

    def be_blind(self, environ, start):
        """What the key has signed has the conditions in it."""
        if environ.pop("HTTP_AUTHORIZATION", None):
            mark = "&" if "?" in environ["REQUEST_URI"] else "?"
            environ["REQUEST_URI"] += f"{mark}{shared_access()}"
        return super().be_blind(environ, start)


class Google(Cloud):
    """fake-gcs-server knows a put with a condition in its JSON API only, so it is asked by that."""

    start = f"gs://{NAME}/"
    conditions = ("HTTP_X_GOOG_IF_GENERATION_MATCH",)

    def __init__(self) -> None:
        super().__init__(fake_gcs())
        self.environ = {"GOOGLE_BASE_URL": self.url}
        self._ask("POST", "/storage/v1/b", json.dumps({"name": NAME}).encode())

    def _forward(self, environ, start):
        if environ["REQUEST_METHOD"] != "PUT":
            environ["HTTP_HOST"] = "storage.googleapis.com"
            return super()._forward(environ, start)
        bucket, _, key = environ["REQUEST_URI"].lstrip("/").partition("/")
        match = environ.get("HTTP_X_GOOG_IF_GENERATION_MATCH")
        condition = "" if match is None else f"&ifGenerationMatch={match}"
        name = quote(unquote(key), safe="")
        uri = f"/upload/storage/v1/b/{bucket}/o?uploadType=media&name={name}{condition}"
        kind = {"Content-Type": environ.get("CONTENT_TYPE") or "application/octet-stream"}
        status, _, data = self._ask("POST", uri, _body(environ), kind)
        told = json.loads(data) if status.startswith("200") else {}
        headers = [("ETag", f'"{told.get("etag")}"'), ("x-goog-generation", told.get("generation"))]
        start(status, [*(headers if told else ()), ("Content-Length", "0")])
        return [b""]


def shared_access() -> str:
    """A signature of the account for all that may be asked: it covers no condition."""
    said = {"sp": "rwdlac", "ss": "b", "srt": "sco", "st": "", "se": "2100-01-01T00:00:00Z"}
    said |= {"sip": "", "spr": "", "sv": "2020-10-02"}
    text = "".join(f"{one}\n" for one in (ACCOUNT, *said.values()))
    signed = hmac.digest(base64.b64decode(KEY), text.encode(), "sha256")
    told = {name: value for name, value in said.items() if value}
    return urlencode({**told, "sig": base64.b64encode(signed)})


def _body(environ) -> bytes:
    return environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))


def _headers(environ) -> dict[str, str]:
    names = [one for one in environ if one.startswith("HTTP_")]
    found = {one.removeprefix("HTTP_").replace("_", "-"): environ[one] for one in names}
    for name in ("CONTENT_TYPE", "CONTENT_LENGTH"):
        if environ.get(name):
            found[name.replace("_", "-")] = environ[name]
    return found
