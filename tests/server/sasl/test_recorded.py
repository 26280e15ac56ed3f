# SPDX-License-Identifier: Apache-2.0
"""Every recorded conversation with a real broker, said again (SEC-30 to SEC-48)."""

import json
import re
from base64 import urlsafe_b64decode
from typing import Any

import pytest
from tests.security.authority import KEY_SET
from tests.security.recorded import conversations
from tests.server.sasl.conversing import ALL, Credentials, SaslClient, world
from tests.world import World

from kohort.security.signed_tokens import read_key_set
from kohort.server.sasl.authentication import SaslListener
from kohort.server.sasl.settings import SaslSettings

RECORDED_AT = 1_795_770_480_000  # about the middle of the recordings
PAUSES = {  # before which step of a conversation time passed, and how much
    "reauth/expired-then-request": {2: 4500},
    "reauth/v0-token-expired-then-request": {3: 4500},
    "reauth/expired-then-api-versions": {2: 4500},
    "reauth/expired-then-handshake": {2: 4500},
    "reauth/ok": {2: 2000, 5: 3000, 6: 1500},
    "reauth/at-900-ms": {2: 900},
    "reauth/at-1100-ms": {2: 1100},
    "oauth/unsecured-reauth-other-sub": {2: 2000},
    "oauth/unsecured-reauth-ok": {2: 1000},
    "oauth/unsecured-lifetime-no-reauth-then-request": {2: 4000},
    "oauth/unsecured-lifetime-short-token-then-request": {2: 3000},
}
OTHER_TIMES = {
    "expired": 1,
    "expired-no-goodbye": 1,
    "issued-in-future": -3600,
    "exp-before-iat": -15,
}
LISTENERS = {
    "SASL": ALL,
    "REAUTH": {**ALL, "connections.max.reauth.ms": "4000"},
    "ANON": {},
    "ONLY512": {"sasl.enabled.mechanisms": "SCRAM-SHA-512"},
    "JWKS": {
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "sasl.oauthbearer.jwks.endpoint.url": "file:///keys.json",
        "sasl.oauthbearer.expected.issuer": "https://issuer.example",
        "sasl.oauthbearer.expected.audience": "kohort",
        "sasl.oauthbearer.clock.skew.seconds": "2",
    },
}
REMOVED = {  # before which step of a conversation the credential of its user was removed
    "scram/credential-removed-between-first-and-final": 2,
    "scram/credential-removed-after-login": 3,
    "scram/credential-removed-then-reauth": 4,
}
# A user that is not there is asked for a proof, and refused then (docs/skipped.md).
ASKED_FOR_A_PROOF = {  # in which step
    "scram/unknown-user-256": 1,
    "scram/unknown-user-512": 1,
    "scram/user-without-this-mechanism": 1,
    "scram/credential-removed-then-reauth": 4,
}


class Chance:
    """Gives the server's part of the nonces that were recorded, in their order."""

    def __init__(self, conversation: dict[str, Any]) -> None:
        self._parts = []
        for step in conversation["steps"]:
            text = step.get("auth_text") or ""
            if text.startswith("r="):
                said = re.search(rb",r=([!-+\--~]+)", bytes.fromhex(step["sent_hex"]))
                assert said is not None
                self._parts.append(text[2:].partition(",")[0].removeprefix(said[1].decode()))

    def __call__(self) -> bytes:
        return bytes(16)

    def next(self) -> str:
        return self._parts.pop(0) if self._parts else "x"


def credentials() -> Credentials:
    known = Credentials()
    for user in ("alice", "bob", "admin"):
        known.add(user, f"{user}-secret")
    known.add("many", "pw", iterations=16_384)
    for user in ("only256", "gone", "turn", "a=b,c"):
        known.add(user, "pw")
    known.add("pencil", "pencil", salt=urlsafe_b64decode("W22ZaJ0SNY7soEsUEjb6gQ=="))
    known.remove("only256", "SCRAM-SHA-512")
    return known


def sasl_listener(
    conversation: dict[str, Any], known: Credentials, monkeypatch: pytest.MonkeyPatch
) -> SaslListener | None:
    """None for a listener without SASL."""
    if conversation["listener"] == "ANON":
        return None
    settings = dict(LISTENERS[conversation["listener"]])
    if "delay.ms is 2000" in conversation["note"]:
        settings["connection.failed.authentication.delay.ms"] = "2000"
    elif "delay.ms is 0" in conversation["note"]:
        settings["connection.failed.authentication.delay.ms"] = "0"
    chance = Chance(conversation)
    monkeypatch.setattr(SaslSettings, "_nonce", lambda _: chance.next())
    read = SaslSettings(settings, known.look_up, known.decoy, chance)
    if read.key_source is not None:
        read.key_source.keys = read_key_set(KEY_SET)
    return read.listener


def time_of(conversation: dict[str, Any]) -> int:
    """When it was recorded, told by its tokens."""
    found = RECORDED_AT
    for step in reversed(conversation["steps"]):
        shown = re.search(
            rb"earer eyJ[^.]*\.(eyJ[^.]*)", sent_in(step) if "sent_hex" in step else b""
        )
        if shown is None:
            continue
        claims = json.loads(urlsafe_b64decode(shown[1] + b"=" * (-len(shown[1]) % 4)))
        lifetime_ms = step.get("response", {}).get("SessionLifetimeMs", 0)
        if lifetime_ms not in (0, 4000):  # what was left of the life of the token
            return int(1000 * claims["exp"]) - lifetime_ms
        shift = next((s for name, s in OTHER_TIMES.items() if name in conversation["name"]), 0)
        found = 1000 * (int(claims.get("iat", RECORDED_AT // 1000)) + shift) + 10
        if shift == 1 and "exp" in claims:
            found = 1000 * (int(claims["exp"]) + 1)
    return found


def sent_in(step: dict[str, Any]) -> bytes:
    """What was sent. The recordings leave out most of a password of one letter."""
    start, dots, _ = step["sent_hex"].partition("...")
    data = bytes.fromhex(start)
    if not dots:
        return data
    size = int(step["request"]["AuthBytes"].partition("(")[2].split()[0].replace(",", ""))
    token = data.index(b"\0alice\0")
    return data[:token] + data[token:].ljust(size, b"x") + b"\0"


def same(sent: bytes, expected: bytes, answer: bytes) -> bool:
    """Whether an answer is the recorded one, as far as that is not about another broker."""
    key = int.from_bytes(sent[:2]) if len(sent) > 8 else -1
    if key in (3, 18):  # Metadata, ApiVersions: the number of the request, and the error
        size = 6 if key == 18 else 4
        return expected[:size] == answer[:size]
    return expected == answer


def play(
    client: SaslClient, conversation: dict[str, Any], here: World, known: Credentials
) -> list[str]:
    """What went otherwise than it was recorded."""
    wrong, name = [], conversation["name"]
    pauses = PAUSES.get(name, {})
    sent = b""
    waiting: list[bytes] = []
    for number, step in enumerate(conversation["steps"]):
        here.advance(pauses.get(number, 0))
        if REMOVED.get(name) == number:
            known.remove("gone")
        if step["what"] == "wait until closed":
            if name.startswith("idle"):
                assert client.connection.idle  # such a connection is closed in time
            elif client.closed != (step["outcome"] == "closed"):
                wrong.append(f"step {number}: {step['outcome']}, closed is {client.closed}")
            continue
        if step["sent_hex"]:
            data = sent_in(step)
            framed = len(data).to_bytes(4) + data if step["size_prefix"] else data
            sent = data if step["size_prefix"] else data[4:]
            if not client.closed:
                waiting += client.say(framed)
        elif waiting:
            sent = b"\0\3" + bytes(8) if "api" not in step else sent
        delay_ms = 0
        if not waiting and client.later:
            delay_ms, waiting = client.pass_delay()
        outcome = step.get("outcome")
        if outcome is None and not waiting:
            wrong.append(f"step {number}: no answer, expected {step['received_hex'][:200]}")
        elif outcome is None:
            answer, expected = waiting.pop(0), bytes.fromhex(step["received_hex"])
            if not same(sent, expected, answer):
                wrong.append(f"step {number}: {answer.hex()}, expected {expected.hex()}")
        elif outcome in ("closed", "BrokenPipeError") and not client.closed:
            wrong.append(f"step {number}: open, expected {outcome}")
        if (delay_ms >= 100) != (step["ms"] >= 100):
            wrong.append(f"step {number}: after {delay_ms} ms, recorded {step['ms']} ms")
    return wrong


@pytest.fixture(scope="module")
def here() -> World:
    return world()


@pytest.mark.parametrize(
    "name",
    conversations(),
)
def test_a_recorded_conversation_goes_as_it_went(
    name: str, here: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    conversation = conversations()[name]
    here.jump(time_of(conversation) - here.now)
    known = credentials()
    client = SaslClient(here, sasl_listener(conversation, known, monkeypatch))
    wrong = play(client, conversation, here, known)
    if name in ASKED_FOR_A_PROOF:
        assert [one.partition(":")[0] for one in wrong[:1]] == [f"step {ASKED_FOR_A_PROOF[name]}"]
        return
    assert wrong == []
    if conversation["principal"] is not None:
        assert client.connection.client.principal == conversation["principal"]
