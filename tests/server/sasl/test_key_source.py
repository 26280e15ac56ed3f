"""The keys of an authority, from a file and from a server, read again when they change."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.observer import RecordingObserver
from tests.security.authority import EC, KEY_SET, RSA
from tests.waiting import SOON_S

from kohort.config.settings import ConfigError
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
