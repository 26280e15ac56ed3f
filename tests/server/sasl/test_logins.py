# SPDX-License-Identifier: Apache-2.0
"""What Java, librdkafka, kafka-python and aiokafka sent to log in, sent to us (SEC-44a)."""

import json
import re
from base64 import urlsafe_b64decode

import pytest
from tests.security.recorded import logins
from tests.server.sasl.conversing import ALL, Credentials, SaslClient, world
from tests.world import World

from kohort.server.sasl.settings import SaslSettings

SASL = (17, 36)


@pytest.fixture(scope="module")
def here() -> World:
    return world()


def nonce_of(frames: list[tuple[bytes, bytes]]) -> str:
    """The server's part of the nonce, where there is one."""
    for sent, received in frames:
        said, asked = re.search(rb",r=([!-+\--~]+)", sent), re.search(rb"r=([!-+\--~]+)", received)
        if said and asked:
            return asked[1].removeprefix(said[1]).decode()
    return ""


def time_of(frames: list[tuple[bytes, bytes]]) -> int:
    """When a token was shown, told by what was left of its life."""
    for sent, received in frames:
        token = re.search(rb"Bearer eyJ[^.]*\.(eyJ[^.]*)", sent)
        if token is not None:
            ends = json.loads(urlsafe_b64decode(token[1] + b"=" * (-len(token[1]) % 4)))["exp"]
            left = received[-9:-1] if sent[3] == 2 else received[-8:]
            return round(1000 * ends) - int.from_bytes(left)
    return 0


@pytest.mark.parametrize("name", [name for name in logins() if name.startswith("login/")])
def test_a_real_client_gets_in(name: str, here: World, monkeypatch: pytest.MonkeyPatch) -> None:
    hexes = [bytes.fromhex(frame["hex"]) for frame in logins()[name]["frames"]]
    frames = list(zip(hexes[::2], hexes[1::2], strict=True))
    here.jump((time_of(frames) or here.now) - here.now)
    monkeypatch.setattr(SaslSettings, "_nonce", lambda _: nonce_of(frames))
    known = Credentials()
    known.add("alice", "alice-secret")
    read = SaslSettings(ALL, known.look_up, known.decoy, lambda: bytes(16))
    client = SaslClient(here, read.listener)
    for sent, received in frames:
        (answer,) = client.say(len(sent).to_bytes(4) + sent)
        if int.from_bytes(sent[:2]) in SASL:
            assert answer == received
    assert client.connection.client.principal == "User:alice"
