# SPDX-License-Identifier: Apache-2.0
"""The keys of an authority, from a file and from a server, read again when they change."""

import asyncio
import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.observer import RecordingObserver
from tests.security.authority import EC, KEY_SET, RSA
from tests.waiting import SOON_S

from kohort.config.settings import ConfigError
from kohort.security.sasl import SaslError
from kohort.server.sasl import key_server, key_source
from kohort.server.sasl.key_source import KeySource


def source(url: str, refresh_ms: int = 3_600_000) -> KeySource:
    return KeySource(url, refresh_ms=refresh_ms, backoff_ms=10, backoff_max_ms=20)


async def until(holds: Callable[[], Any]) -> None:
    deadline = asyncio.get_running_loop().time() + SOON_S
    while not holds():
        assert asyncio.get_running_loop().time() < deadline
        await asyncio.sleep(0.01)


def ids(source: KeySource) -> list[str | None]:
    return [key.id for key in source.keys]


@pytest.mark.asyncio
async def test_keys_of_a_file_are_read_again(tmp_path: Path) -> None:
    file, told = tmp_path / "keys of x.json", RecordingObserver()
    file.write_bytes(KEY_SET)
    keys = source(file.as_uri(), refresh_ms=20)
    await keys.start(told)
    await until(lambda: ids(keys) == ["k1", "k2"])
    file.write_text("{")
    await until(lambda: told.warnings)
    assert "the keys that were read before stay in use" in told.warnings[0]
    assert len(keys.keys) == 2
    file.write_text(json.dumps({"keys": [EC]}))
    await until(lambda: ids(keys) == ["k2"])
    keys.stop()


@pytest.mark.asyncio
async def test_a_key_that_is_not_known_is_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(key_source, "LEAST_WANTED_SECONDS", 0.05)
    file = tmp_path / "keys.json"
    file.write_text(json.dumps({"keys": [RSA]}))
    keys = source(file.as_uri())
    keys.want()  # nothing has begun yet
    await keys.start(RecordingObserver())
    file.write_bytes(KEY_SET)
    keys.want()
    await until(lambda: ids(keys) == ["k1", "k2"])
    keys.stop()
    keys.want()


@pytest.mark.asyncio
async def test_what_cannot_be_read_is_refused_at_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigError, match=r"keys at file:.* cannot be read: .*No such file"):
        await source((tmp_path / "none.json").as_uri()).start(RecordingObserver())
    file = tmp_path / "keys.json"
    file.write_bytes(b"[]")
    with pytest.raises(ConfigError, match="no JSON Web Key Set"):
        await source(file.as_uri()).start(RecordingObserver())
    monkeypatch.setattr(key_source, "LONGEST_BYTES", 1)
    with pytest.raises(ConfigError, match="more than 1 bytes"):
        await source(file.as_uri()).start(RecordingObserver())


@pytest.mark.asyncio
async def test_keys_of_a_server_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_server, "read_url", lambda _url, _limit: KEY_SET)
    keys = source("https://keys.example/keys")
    await keys.start(RecordingObserver())
    assert [key.id for key in keys.keys] == ["k1", "k2"]
    keys.stop()


class KeyServer:
    """What a server of keys answers, one reading after the other; the last again and again."""

    def __init__(self, *answers: Callable[[], bytes]) -> None:
        self.answers = list(answers)
        self.readings = 0

    def __call__(self, _url: str, _limit: int) -> bytes:
        self.readings += 1
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return answer()


def nonsense() -> bytes:
    raise RuntimeError("secret of the server")


@pytest.mark.asyncio
async def test_keys_are_read_on_after_an_answer_that_breaks_the_reader(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server, told = (
        KeyServer(lambda: json.dumps({"keys": [RSA]}).encode(), nonsense),
        (RecordingObserver()),
    )
    monkeypatch.setattr(key_server, "read_url", server)
    keys = source("https://keys.example/keys", refresh_ms=10)
    await keys.start(told)
    await until(lambda: told.warnings)
    assert "cannot be read: RuntimeError; the keys that were" in told.warnings[0]
    server.answers = [lambda: KEY_SET]
    await until(lambda: ids(keys) == ["k1", "k2"])
    keys.stop()


@pytest.mark.asyncio
async def test_tokens_with_unknown_keys_do_not_put_a_reading_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = KeyServer(lambda: KEY_SET)
    monkeypatch.setattr(key_server, "read_url", server)
    keys = source("https://keys.example/keys", refresh_ms=50)
    await keys.start(RecordingObserver())

    def read_again() -> bool:
        keys.want()
        return server.readings > 2

    await until(read_again)
    keys.stop()


@pytest.mark.asyncio
async def test_nobody_waits_for_a_server_that_does_not_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_source, "LONGEST_SECONDS", 0.05)
    over, told = threading.Event(), RecordingObserver()

    def slow() -> bytes:
        assert over.wait(SOON_S)
        return KEY_SET

    server = KeyServer(lambda: json.dumps({"keys": [EC]}).encode(), slow)
    monkeypatch.setattr(key_server, "read_url", server)
    keys = source("https://keys.example/keys", refresh_ms=10)
    await keys.start(told)
    await until(lambda: len(told.warnings) > 1)
    assert "cannot be read: not within 0.05 s" in told.warnings[0]
    assert "cannot be read: an earlier reading has not ended" in told.warnings[1]
    assert server.readings == 2
    reading = [thread for thread in threading.enumerate() if thread.name == "kohort-keys"]
    assert [thread.daemon for thread in reading] == [True]
    over.set()
    await until(lambda: ids(keys) == ["k1", "k2"])
    keys.stop()


@pytest.mark.asyncio
async def test_a_source_that_is_stopped_while_it_starts_reads_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = KeyServer(lambda: KEY_SET)
    monkeypatch.setattr(key_server, "read_url", server)
    keys = source("https://keys.example/keys", refresh_ms=1)
    starting = asyncio.ensure_future(keys.start(RecordingObserver()))
    await asyncio.sleep(0)
    keys.stop()
    await starting
    await asyncio.sleep(0.05)
    assert server.readings == 1


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("https://[x", "no URL"),
        ("https:///keys", "no host"),
        ("https://host:port/keys", "no URL"),
        ("http://hunter2:hunter2@host/keys?hunter2", "has a user, expected none"),
        ("ftp://hunter2@host/hunter2", "'ftp://host', expected file:, https: or http:"),
        ("/tmp/keys.json", "expected file:, https: or http:"),
    ],
)
def test_a_url_of_no_use_is_refused_without_its_secrets(url: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason) as caught:
        source(url)
    assert "hunter2" not in str(caught.value)


@pytest.mark.asyncio
async def test_the_log_names_the_server_of_keys_and_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(key_server, "read_url", nonsense_with_url)
    with pytest.raises(ConfigError, match=r"keys at https://keys.example:8443 cannot be read: 5"):
        await source("https://keys.example:8443/a/hunter2?key=hunter2").start(RecordingObserver())


def nonsense_with_url(_url: str, _limit: int) -> bytes:
    raise SaslError("5")


@pytest.mark.parametrize(
    ("url", "warned"),
    [
        ("http://keys.example/keys", True),
        ("http://127.1.2.3/keys", False),
        ("http://[::1]:80/keys", False),
        ("http://localhost/keys", False),
        ("https://keys.example/keys", False),
        ("file:///keys.json", False),
    ],
)
def test_keys_that_come_without_tls_from_afar_are_warned_of(url: str, *, warned: bool) -> None:
    warnings = source(url).warnings
    assert len(warnings) == warned
    assert all("http://keys.example, without TLS" in warning for warning in warnings)
