# SPDX-License-Identifier: Apache-2.0
"""What a connection may say before its client is known, beside what was recorded: attacks, and what
the log and the counters tell (SEC-30 to SEC-48).
"""

import sys
from base64 import urlsafe_b64encode
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from types import FrameType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some
from tests.security.authority import KEY_SET
from tests.security.recorded import conversations
from tests.server.sasl.conversing import ALL, Credentials, SaslClient, listener, world
from tests.world import World

from kohort.errors import WireError
from kohort.security.plain import PlainClient
from kohort.security.sasl import ClientMechanism, SaslError
from kohort.security.scram import ScramClient
from kohort.security.signed_tokens import read_key_set
from kohort.server.network.connection import AuthenticationFailedError
from kohort.server.sasl.authentication import SaslListener
from kohort.server.sasl.settings import SaslSettings
from kohort.wire import codec
from kohort.wire.apis import APIS
from kohort.wire.frames import RequestHeader, encode_request
from kohort.wire.messages.api_versions import ApiVersionsRequest
from kohort.wire.messages.metadata import MetadataRequest
from kohort.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from kohort.wire.messages.sasl_handshake import SaslHandshakeRequest


@pytest.fixture(scope="module")
def here() -> World:
    return world()


def frame(request: Any, version: int) -> bytes:
    api = APIS[request.api_key]
    header = RequestHeader(
        request_api_key=api.key, request_api_version=version, correlation_id=1, client_id="c"
    )
    body = codec.encode(request, version)
    return encode_request(header, body, flexible=api.flexible(version))


def handshake(mechanism: str = "PLAIN", version: int = 1) -> bytes:
    return frame(SaslHandshakeRequest(mechanism=mechanism), version)


def authenticate(token: bytes, version: int = 2) -> bytes:
    return frame(SaslAuthenticateRequest(auth_bytes=token), version)


METADATA = frame(MetadataRequest(topics=[]), 12)
ALICE, WRONG = b"\0alice\0alice-secret", b"\0alice\0wrong"


def answer_in(data: bytes) -> SaslAuthenticateResponse:
    return codec.decode(SaslAuthenticateResponse, 2, data, 5)


def login(client: SaslClient, mechanism: ClientMechanism) -> SaslAuthenticateResponse:
    """Authenticate as a client does; the last answer of the broker."""
    client.say(handshake(mechanism.name))
    token: bytes | None = mechanism.first()
    while token is not None:
        answers = client.say(authenticate(token)) or client.pass_delay()[1]
        answer = answer_in(answers[0])
        if answer.error_code:
            return answer
        token = mechanism.answer(answer.auth_bytes)
    return answer


def scram_listener(**more: str) -> SaslListener:
    known = Credentials()
    known.add("alice", "alice-secret")
    return listener({**ALL, **{name.replace("_", "."): text for name, text in more.items()}}, known)


def test_our_own_client_logs_in(here: World) -> None:
    sasl = scram_listener()
    for mechanism in (
        PlainClient("alice", "alice-secret"),
        ScramClient("SCRAM-SHA-256", "alice", "alice-secret", "C"),
        ScramClient("SCRAM-SHA-512", "alice", "alice-secret", "C"),
    ):
        client = SaslClient(here, sasl)
        assert login(client, mechanism).error_code == 0
        assert client.connection.client.principal == "User:alice"
        assert len(client.say(METADATA)) == 1
        assert client.connection.node is here.dispatchers[0]  # a request costs what it costs
    assert sasl.counters.succeeded == 3


def test_answers_that_are_ready_leave_before_what_follows_ends_the_connection(here: World) -> None:
    client = SaslClient(here, listener(ALL))
    assert len(client.say(handshake() + METADATA[:4] + b"\xff" * (len(METADATA) - 4))) == 1
    assert client.closed


def test_a_frame_may_be_long_once_its_sender_is_known(here: World) -> None:
    sasl = listener({**ALL, "sasl.server.max.receive.size": "100"})
    client = SaslClient(here, sasl)
    client.say(handshake())
    client.say(authenticate(ALICE))
    assert client.connection.request_buffer.limit_bytes == here.config.socket_request_max_bytes
    other = SaslClient(here, sasl)
    assert other.say(bytes.fromhex("00000065")) == []
    assert other.pass_delay() == (100, [])
    assert other.closed
    assert sasl.counters.failed == 1


def test_frames_before_one_that_is_too_long_are_answered(here: World) -> None:
    client = SaslClient(here, listener(ALL))
    assert len(client.say(handshake() + bytes.fromhex("7fffffff"))) == 1
    client.say(b"more")
    assert client.pass_delay() == (100, [])
    assert client.closed


def test_versions_may_be_asked_for_again_only_after_an_error(here: World) -> None:
    hello = frame(ApiVersionsRequest(client_software_name="a", client_software_version="1"), 4)
    limited = World({"unstable.api.versions.enable": "false"}, now=here.now)
    client = SaslClient(limited, listener(ALL))
    unknown = hello[:7] + b"\x09" + hello[8:]
    assert [len(client.say(one)) for one in (unknown, unknown, hello)] == [1, 1, 1]
    client.say(hello)
    assert client.closed
    assert "ApiVersions again before authentication" in str(client.connection.error)


def test_a_refusal_comes_late_and_nothing_is_handled_meanwhile(here: World) -> None:
    client = SaslClient(
        here, listener({**ALL, "connection.failed.authentication.delay.ms": "2000"})
    )
    client.say(handshake())
    assert client.say(authenticate(WRONG) + authenticate(ALICE)) == []
    assert client.say(authenticate(ALICE)) == []
    assert not client.closed
    delay_ms, answers = client.pass_delay()
    assert (delay_ms, len(answers), client.closed) == (2000, 1, True)
    assert answer_in(answers[0]).error_code == 58
    assert client.connection.client.principal == "User:ANONYMOUS"


def test_a_client_that_does_not_wait_for_its_refusal_is_gone(here: World) -> None:
    client = SaslClient(here, listener(ALL))
    client.say(handshake() + authenticate(WRONG))
    client.connection.close()
    assert client.pass_delay() == (100, [])


def error_of(here: World, sasl: SaslListener, mechanism: str, token: bytes) -> str:
    client = SaslClient(here, sasl)
    client.say(handshake(mechanism))
    client.say(authenticate(token))
    if not client.later:
        client.say(authenticate(b"\x01"))
    client.pass_delay()
    assert isinstance(client.connection.error, AuthenticationFailedError)
    return str(client.connection.error)


def test_the_log_says_who_failed_and_why_and_no_secret(here: World) -> None:
    sasl = listener(ALL)
    line = error_of(here, sasl, "PLAIN", b"\0alice\0hunter2")
    assert line == (
        "Failed authentication with /127.0.0.1 (Authentication failed: Invalid username or"
        " password)"
    )
    line = error_of(here, sasl, "SCRAM-SHA-256", b"hunter2")
    assert line.endswith(
        "with SASL mechanism SCRAM-SHA-256: the client's first message is none of SCRAM without"
        " channel binding)"
    )
    line = error_of(here, sasl, "OAUTHBEARER", b"n,,\x01auth=Bearer hunter2\x01\x01")
    assert line.endswith(
        '({"status":"invalid_token"}: a token of 1 parts, expected header, claims and signature)'
    )
    line = error_of(here, sasl, "OAUTHBEARER", b"hunter2")
    assert "hunter2" not in line


def test_a_name_that_a_client_chose_does_not_begin_a_line_of_the_log(here: World) -> None:
    client = SaslClient(here, listener(ALL))
    client.say(handshake("PLAIN\n\x1b[2J" + "x" * 1000))
    client.pass_delay()
    line = str(client.connection.error)
    assert line.isprintable()
    assert len(line) < 300


def test_a_session_that_has_ended_is_counted(here: World) -> None:
    sasl = listener({**ALL, "plain.connections.max.reauth.ms": "4000"})
    client = SaslClient(here, sasl)
    assert login(client, PlainClient("alice", "alice-secret")).session_lifetime_ms == 4000
    here.advance(4001)
    client.say(METADATA)
    assert client.closed
    assert "the session ended 1 ms ago" in str(client.connection.error)
    assert (sasl.counters.succeeded, sasl.counters.expired) == (1, 1)


def test_a_client_authenticates_again_but_not_more_often_than_once_a_second(here: World) -> None:
    sasl = listener({**ALL, "connections.max.reauth.ms": "4000"})
    client = SaslClient(here, sasl)
    alice = PlainClient("alice", "alice-secret")
    login(client, alice)
    assert login(client, alice).error_code == 0  # the first time there is nothing to wait for
    here.advance(999)
    assert client.say(handshake())[0].hex().endswith("002200000000")
    here.advance(1)
    assert login(client, alice).error_code == 0
    assert (sasl.counters.succeeded, sasl.counters.reauthenticated) == (1, 2)
    here.advance(1000)
    assert login(client, PlainClient("bob", "bob-secret")).error_code == 58
    assert client.closed
    assert sasl.counters.reauthentication_failed == 1
    assert str(client.connection.error).startswith("Failed re-authentication with /127.0.0.1")


def test_a_credential_that_was_taken_away_stops_the_next_authentication(here: World) -> None:
    known = Credentials()
    known.add("alice", "alice-secret")
    sasl = listener({**ALL, "connections.max.reauth.ms": "4000"}, known)
    client = SaslClient(here, sasl)
    scram = partial(ScramClient, "SCRAM-SHA-256", "alice", "alice-secret")
    assert login(client, scram("C")).error_code == 0
    known.remove("alice")
    assert len(client.say(METADATA)) == 1  # the session goes on until it ends
    assert login(client, scram("D")).error_code == 58
    assert client.closed
    assert login(SaslClient(here, sasl), scram("E")).error_code == 58


def test_another_mechanism_has_no_lifetime_of_this_one(here: World) -> None:
    sasl = scram_listener(**{"plain.connections.max.reauth.ms": "4000"})
    scram = ScramClient("SCRAM-SHA-256", "alice", "alice-secret", "C")
    assert login(SaslClient(here, sasl), scram).session_lifetime_ms == 0


def test_what_was_said_in_scram_is_of_no_use_again(here: World) -> None:
    sasl = scram_listener()
    first, replayed = SaslClient(here, sasl), SaslClient(here, sasl)
    mechanism = ScramClient("SCRAM-SHA-256", "alice", "alice-secret", "C")
    first.say(handshake(mechanism.name))
    asked = answer_in(first.say(authenticate(mechanism.first()))[0])
    final = mechanism.answer(asked.auth_bytes)
    assert final is not None
    replayed.say(handshake(mechanism.name))
    replayed.say(authenticate(mechanism.first()))
    assert replayed.say(authenticate(final)) == []
    replayed.pass_delay()
    assert replayed.connection.client.principal == "User:ANONYMOUS"
    assert "it may be a replay" in str(replayed.connection.error)


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_user_that_is_not_there_costs_what_one_costs_that_is(here: World, mechanism: str) -> None:
    """Times are not compared: a machine has other work. The same is called for both."""
    sasl = scram_listener()
    calls: dict[str, list[list[str]]] = {"alice": [], "nobod": []}
    for name, seen in calls.items():
        machine = sasl.mechanisms[mechanism]()
        token = f"\0{name}\0wrong".encode()
        if mechanism != "PLAIN":
            asked: list[bytes] = []
            first = f"n,,n={name},r=C".encode()
            seen.append(called(lambda: asked.append(machine.answer(first, here.now))))  # noqa: B023
            nonce = asked[0].partition(b",")[0]
            size = 43 if mechanism.endswith("256") else 86
            token = b"c=biws,%s,p=%s" % (nonce, b"A" * size + b"=" * (-size % 4))
        seen.append(called(lambda: machine.answer(token, here.now)))  # noqa: B023
        assert "compare_digest" in seen[-1]
        assert machine.identity is None
    assert calls["alice"] == calls["nobod"]


def called(action: Callable[[], Any]) -> list[str]:
    """The functions that something calls, those in C too."""
    seen: list[str] = []

    def note(frame: FrameType, event: str, argument: Any) -> None:
        if event == "c_call":
            seen.append(argument.__name__)
        elif event == "call":
            seen.append(frame.f_code.co_name)

    sys.setprofile(note)
    try:
        with suppress(SaslError):
            action()
    finally:
        sys.setprofile(None)
    return seen


def test_tokens_of_another_audience_and_without_a_signature_are_refused(here: World) -> None:
    read = SaslSettings(
        {
            "sasl.enabled.mechanisms": "OAUTHBEARER",
            "sasl.oauthbearer.jwks.endpoint.url": "file:///keys.json",
            "sasl.oauthbearer.expected.audience": "kohort",
        },
        Credentials().look_up,
        Credentials.decoy,
        lambda: bytes(16),
    )
    assert read.key_source is not None
    read.key_source.keys = read_key_set(KEY_SET)
    for name in ("oauth/signed-wrong-audience", "oauth/signed-alg-none", "oauth/signed-alg-hs256"):
        step = conversations()[name]["steps"][1]
        client = SaslClient(here, read.listener)
        client.say(handshake("OAUTHBEARER"))
        (answer,) = client.say(authenticate(bytes.fromhex(step["request"]["AuthBytes"])))
        assert answer_in(answer).auth_bytes == b'{"status":"invalid_token"}'
        assert client.say(METADATA) == []
        client.pass_delay()
        assert client.closed


def test_tokens_cannot_be_tried_without_a_delay(here: World) -> None:
    sasl = listener(ALL)
    client = SaslClient(here, sasl)
    client.say(handshake("OAUTHBEARER"))
    bad = authenticate(b"n,,\x01auth=Bearer eyJhbGciOiJub25lIn0.e30.\x01\x01")
    assert [len(client.say(bad)) for _ in range(5)] == [1, 0, 0, 0, 0]
    assert client.pass_delay()[0] == 100
    assert (client.closed, sasl.counters.failed) == (True, 1)


@pytest.mark.parametrize("ends", ["1e306", "9" * 400, "99999999999999999", "-1e300"])
def test_a_token_that_never_ends_is_refused(here: World, ends: str) -> None:
    sasl = listener(ALL)
    header, claims = (
        urlsafe_b64encode(text.encode()).decode().rstrip("=")
        for text in ('{"alg":"none"}', f'{{"sub":"alice","exp":{ends}}}')
    )
    token = f"n,,\x01auth=Bearer {header}.{claims}.\x01\x01".encode()
    line = error_of(here, sasl, "OAUTHBEARER", token)
    assert "claim `exp` is no time, expected seconds since 1970" in line
    assert (sasl.counters.succeeded, sasl.counters.failed) == (0, 1)


PIECES = [
    *(handshake(name, version) for name in ("PLAIN", "SCRAM-SHA-256", "OAUTHBEARER", "X")
      for version in (0, 1)),
    *(authenticate(token, version) for token in (WRONG, b"", b"\x01", b"n,,n=alice,r=x")
      for version in (0, 1, 2)),
    METADATA,
    frame(ApiVersionsRequest(client_software_name="a", client_software_version="1"), 3),
    bytes.fromhex("00000000"),
    bytes.fromhex("0000000101"),
    len(WRONG).to_bytes(4) + WRONG,
]  # fmt: skip


@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    said=some.lists(
        some.one_of(
            some.sampled_from(PIECES),
            some.binary(max_size=60),
            some.binary(max_size=60).map(lambda data: len(data).to_bytes(4) + data),
            some.tuples(some.sampled_from(PIECES), some.integers(0, 80), some.integers(0, 255)).map(
                lambda one: one[0][: one[1]] + bytes([one[2]]) + one[0][one[1] + 1 :]
            ),
        ),
        max_size=8,
    )
)
def test_whatever_is_said_nobody_gets_in_and_nothing_breaks(here: World, said: list[bytes]) -> None:
    client = SaslClient(here, listener({**ALL, "connections.max.reauth.ms": "4000"}))
    for data in said:
        if not client.closed:
            client.say(data)
        for _, do in client.later:
            do()
        client.later.clear()
    assert client.connection.client.principal == "User:ANONYMOUS"
    assert client.connection.error is None or isinstance(client.connection.error, WireError)
