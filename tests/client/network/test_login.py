# SPDX-License-Identifier: Apache-2.0
"""Logins on a connection: their order, what is refused, servers that cheat, renewals (KIP-368)."""

import asyncio
import re
import threading
from typing import Any

import pytest
from tests.client.scripted import CLOSE, ReceivedRequest, ScriptedCluster, asynchronous, in_turn
from tests.security.recorded import logins

from kohort.client.network import login as module
from kohort.client.network.address import Address
from kohort.client.network.cluster import Cluster
from kohort.client.network.connection import Connection
from kohort.client.network.connection_errors import ConnectionFailedError, RequestTimeoutError
from kohort.client.network.credentials import Login
from kohort.client.network.environment import ENVIRONMENT, Environment
from kohort.client.network.login import authenticate, session_share
from kohort.errors import AuthenticationError, ErrorCode
from kohort.security.scram import ScramClient
from kohort.security.settings import Security
from kohort.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from kohort.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from kohort.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

PLAIN = Security(
    protocol="SASL_PLAINTEXT", mechanism="PLAIN", username="alice", password="alice-secret"
)
REQUESTS = {
    one.__name__: one for one in (SaslHandshakeRequest, SaslAuthenticateRequest, ListGroupsRequest)
}
HERE = Address("broker.example", 9092)


def tokens(provider: Any) -> Security:
    return Security(protocol="SASL_PLAINTEXT", mechanism="OAUTHBEARER", token=provider)


def answers(*, lifetime_ms: int = 0, **more: Any) -> dict[type, Any]:
    """A broker that takes every PLAIN login."""
    return {
        SaslHandshakeRequest: lambda _: SaslHandshakeResponse(mechanisms=["PLAIN"]),
        SaslAuthenticateRequest: lambda _: SaslAuthenticateResponse(
            session_lifetime_ms=lifetime_ms
        ),
        ListGroupsRequest: lambda _: ListGroupsResponse(),
    } | {REQUESTS[name]: answer for name, answer in more.items()}


def soon(seconds: float = 5.0) -> float:
    return asyncio.get_running_loop().time() + seconds


async def ask(cluster: Cluster) -> Any:
    connection = await cluster.any_connection(soon())
    return await connection.ask(ListGroupsRequest(), deadline=soon())


@asynchronous
async def test_a_client_logs_in_between_the_versions_and_the_first_request():
    """SEC-30: ApiVersions, SaslHandshake v1, SaslAuthenticate in its newest version."""
    async with ScriptedCluster(answers=answers()) as scripted:
        cluster = scripted.cluster(PLAIN)
        await ask(cluster)
        await ask(cluster)
        await cluster.close()
    asked = [(one.name, one.version) for one in scripted.asked[1:4]]
    assert asked == [("SaslHandshake", 1), ("SaslAuthenticate", 2), ("ListGroups", 5)]
    assert scripted.asked[1].request.mechanism == "PLAIN"
    assert scripted.asked[2].request.auth_bytes == b"\0alice\0alice-secret"
    assert len(scripted.asked) == 5


REFUSED = {
    "mechanism": (
        {"SaslHandshakeRequest": SaslHandshakeResponse(error_code=33, mechanisms=["X-2", "X-1"])},
        ErrorCode.UNSUPPORTED_SASL_MECHANISM,
        "does not offer PLAIN: expected sasl.mechanism to be one of X-1, X-2$",
    ),
    "no SASL": (
        {"SaslHandshakeRequest": SaslHandshakeResponse(error_code=34)},
        ErrorCode.SECURITY_PROTOCOL_MISMATCH,
        "has no SASL, and security.protocol is SASL_PLAINTEXT: expected PLAINTEXT, or the port",
    ),
    "another code": (
        {"SaslHandshakeRequest": SaslHandshakeResponse(error_code=-1)},
        ErrorCode.UNKNOWN_SERVER_ERROR,
        "refused SaslHandshake: UNKNOWN_SERVER_ERROR$",
    ),
    "password": (
        {
            "SaslAuthenticateRequest": SaslAuthenticateResponse(
                error_code=58, error_message="Authentication failed: Invalid username or password"
            )
        },
        ErrorCode.SASL_AUTHENTICATION_FAILED,
        r"refused user alice \(PLAIN\): Authentication failed: Invalid username or password$",
    ),
    "a text for terminals": (
        {
            "SaslAuthenticateRequest": SaslAuthenticateResponse(
                error_code=58, error_message="no\x1b[2J"
            )
        },
        ErrorCode.SASL_AUTHENTICATION_FAILED,
        r"refused user alice \(PLAIN\): no\\x1b\[2J$",
    ),
    "no end": (
        {"SaslAuthenticateRequest": SaslAuthenticateResponse(auth_bytes=b"go on")},
        ErrorCode.SASL_AUTHENTICATION_FAILED,
        "PLAIN: the server goes on with 5 bytes, expected none$",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
@asynchronous
async def test_what_a_broker_refuses_is_one_line_and_is_not_tried_again(case):
    given, code, line = REFUSED[case]
    fixed = {name: lambda _, answer=answer: answer for name, answer in given.items()}
    async with ScriptedCluster(answers=answers(**fixed)) as scripted:
        cluster = scripted.cluster(PLAIN)
        with pytest.raises(AuthenticationError) as caught:
            await cluster.reach(soon())
        await cluster.close()
    assert caught.value.code is code
    assert re.search(line, caught.value.message)
    assert caught.value.message.startswith(scripted.bootstrap)
    assert "alice-secret" not in str(caught.value)
    assert len(scripted.sent("SaslHandshake")) == 1


@asynchronous
async def test_a_token_that_is_refused_for_ever_comes_to_an_end():
    """The client says goodbye to a refusal, and a broker must not ask for that again and again."""
    refusal = SaslAuthenticateResponse(auth_bytes=b'{"status":"invalid_token"}')
    given = answers(SaslAuthenticateRequest=lambda _: refusal)
    async with ScriptedCluster(answers=given) as scripted:
        cluster = scripted.cluster(tokens(lambda: "abc"))
        with pytest.raises(AuthenticationError, match="does not come to an end, expected 4 steps"):
            await cluster.reach(soon())
        await cluster.close()
    assert [one.request.auth_bytes for one in scripted.sent("SaslAuthenticate")][1:] == [b"\1"] * 3


@asynchronous
async def test_a_broker_that_closes_while_it_is_told_who_we_are_may_come_back():
    steps = in_turn(CLOSE, SaslAuthenticateResponse())
    async with ScriptedCluster(answers=answers(SaslAuthenticateRequest=steps)) as scripted:
        cluster = scripted.cluster(PLAIN)
        await cluster.reach(soon())
        await cluster.close()
    assert len(scripted.sent("SaslAuthenticate")) == 2


@asynchronous
async def test_a_login_has_the_time_of_the_connection():
    async with ScriptedCluster(answers=answers(SaslAuthenticateRequest=lambda _: None)) as scripted:
        cluster = scripted.cluster(PLAIN)
        with pytest.raises(RequestTimeoutError, match="did not answer SaslAuthenticate in time"):
            await cluster.connection(cluster._bootstrap[0], soon(0.1))
        await cluster.close()


@asynchronous
async def test_a_provider_that_never_gives_a_token_has_it_too():
    async with ScriptedCluster(answers=answers()) as scripted:
        cluster = scripted.cluster(tokens(asyncio.Event().wait))
        with pytest.raises(RequestTimeoutError, match="there was no token in time"):
            await cluster.connection(cluster._bootstrap[0], soon(0.1))
        await cluster.close()


# Servers of SCRAM that cheat

SERVERS = sorted(name for name in logins() if name.startswith("server/") and "aiokafka" in name)
FAIR = {"none", "iterations-16385", "extension"}
UNSIGNED = {"empty-salt"}  # its signature is of another salt


@pytest.mark.parametrize("name", SERVERS)
def test_a_server_that_cheats_is_refused(name):
    """SEC-44b: what such a server said to a real client, and our client takes none of it."""
    recorded = logins()[name]
    sent = [
        bytes.fromhex(frame["request"]["AuthBytes"])
        for frame in recorded["frames"]
        if frame.get("api") == "SaslAuthenticate"
    ]
    said = [frame["text"] for frame in recorded["frames"] if frame["direction"] == "broker"]
    nonce = re.search(rb"r=([^,]+)", sent[0])[1].decode()
    machine = ScramClient("SCRAM-SHA-256", "alice", "alice-secret", nonce)
    security = Security(protocol="SASL_PLAINTEXT", mechanism="SCRAM-SHA-256")
    replies = iter(said)

    async def answer(request: Any) -> Any:
        if isinstance(request, SaslHandshakeRequest):
            return SaslHandshakeResponse()
        return SaslAuthenticateResponse(auth_bytes=next(replies, "").encode())

    def run() -> float:
        return asyncio.run(authenticate(answer, Login(machine, "alice"), HERE, security))

    case = name.split("/")[1]
    if case in FAIR:
        assert run() == 0
        return
    with pytest.raises(AuthenticationError, match=r"broker\.example:9092: SCRAM-SHA-256: ") as told:
        run()
    assert "alice-secret" not in str(told.value)


def test_all_recorded_servers_are_played():
    assert len(SERVERS) >= 15
    assert {f"server/{case}/aiokafka" for case in FAIR | {"wrong-signature"}} <= set(SERVERS)


def test_the_hash_of_a_password_does_not_hold_the_loop():
    """A server may ask for so many iterations that it takes half a second."""
    threads: list[str] = []

    class Slow:
        name = "SCRAM-SHA-256"

        def first(self) -> bytes:
            return b"first"

        def answer(self, _challenge: bytes) -> None:
            threads.append(threading.current_thread().name)

    async def answer(request: Any) -> Any:
        handshake = isinstance(request, SaslHandshakeRequest)
        return SaslHandshakeResponse() if handshake else SaslAuthenticateResponse()

    asyncio.run(authenticate(answer, Login(Slow(), ""), HERE, PLAIN))
    assert threads == ["SCRAM"]


# Renewals


def test_a_session_is_renewed_at_a_random_share_of_it():
    assert session_share(0.0) == 0.85
    assert session_share(1.0) == pytest.approx(0.95)


@asynchronous
async def test_a_session_is_renewed_between_requests_and_none_fails(monkeypatch):
    """SEC-47: between the handshake and its success a broker takes nothing else."""
    monkeypatch.setattr(module, "session_share", lambda _: 0.03)
    async with ScriptedCluster(answers=answers(lifetime_ms=3000)) as scripted:
        cluster = scripted.cluster(PLAIN)
        end = soon(1.0)
        asking = [0]

        async def go_on() -> None:
            connection = await cluster.any_connection(soon())
            while asyncio.get_running_loop().time() < end:
                await connection.ask(ListGroupsRequest(), deadline=soon())
                asking[0] += 1

        await asyncio.gather(*(go_on() for _ in range(5)))
        await cluster.close()
    names = [one.name for one in scripted.asked]
    begun = [at for at, name in enumerate(names) if name == "SaslHandshake"]
    assert 2 <= len(begun) <= 13  # one and about eleven more, fewer on a machine that is busy
    assert all(names[at + 1 : at + 2] in (["SaslAuthenticate"], []) for at in begun)
    assert names.count("ApiVersions") == 1
    assert asking[0] > len(begun)


@asynchronous
async def test_what_waits_for_an_answer_is_answered_before_the_session_is_renewed(monkeypatch):
    monkeypatch.setattr(module, "session_share", lambda _: 0.02)
    release = asyncio.Event()

    async def late(_asked: ReceivedRequest) -> Any:
        await release.wait()
        return ListGroupsResponse()

    given = answers(lifetime_ms=5000, ListGroupsRequest=late)
    async with ScriptedCluster(answers=given) as scripted:
        cluster = scripted.cluster(PLAIN)
        first = asyncio.create_task(ask(cluster))
        while not scripted.sent("ListGroups"):  # noqa: ASYNC110  (a table)
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.2)
        second = asyncio.create_task(ask(cluster))
        await asyncio.sleep(0.05)
        assert len(scripted.sent("SaslHandshake")) == 1
        assert len(scripted.sent("ListGroups")) == 1  # the second waits for the session
        release.set()
        await asyncio.gather(first, second)
        await cluster.close()
    names = [one.name for one in scripted.asked]
    assert names[3:7] == ["ListGroups", "SaslHandshake", "SaslAuthenticate", "ListGroups"]


@asynchronous
async def test_a_request_that_is_parked_does_not_hold_others_beyond_the_session(caplog):
    given = answers(lifetime_ms=200, ListGroupsRequest=lambda _: None)
    async with ScriptedCluster(answers=given) as scripted:
        cluster = scripted.cluster(PLAIN)
        connection = await cluster.any_connection(soon())
        parked = asyncio.create_task(connection.ask(ListGroupsRequest(), deadline=soon(30)))
        await asyncio.sleep(0.19)
        line = "could not be renewed: .* answers no request before the session ends"
        with pytest.raises(ConnectionFailedError, match=line):
            await connection.ask(ListGroupsRequest(), deadline=soon(2))
        with pytest.raises(ConnectionFailedError, match=line):
            await parked
        await cluster.close()
    assert re.search(line, caplog.text)


@asynchronous
async def test_a_request_without_an_answer_waits_for_the_session_too():
    release = asyncio.Event()
    steps = [SaslAuthenticateResponse(session_lifetime_ms=50)]

    async def authenticate_(_asked: ReceivedRequest) -> Any:
        if steps:
            return steps.pop()
        await release.wait()
        return SaslAuthenticateResponse()

    given = answers(SaslAuthenticateRequest=authenticate_)
    async with ScriptedCluster(answers=given) as scripted:
        cluster = scripted.cluster(PLAIN)
        connection = await cluster.any_connection(soon())
        await asyncio.sleep(0.1)
        telling = asyncio.create_task(connection.tell(ListGroupsRequest()))
        await asyncio.sleep(0.05)
        assert not telling.done()
        release.set()
        await telling
        await cluster.close()


@asynchronous
async def test_a_password_that_is_wrong_by_now_ends_the_connection_with_the_reason(caplog):
    refusal = SaslAuthenticateResponse(error_code=58, error_message="Authentication failed")
    steps = in_turn(SaslAuthenticateResponse(session_lifetime_ms=50), refusal)
    async with ScriptedCluster(answers=answers(SaslAuthenticateRequest=steps)) as scripted:
        cluster = scripted.cluster(PLAIN)
        connection = await cluster.any_connection(soon())
        await asyncio.sleep(0.15)
        assert not connection.is_open
        line = r"could not be renewed: .* refused user alice \(PLAIN\): Authentication failed"
        for _ in range(2):
            with pytest.raises(AuthenticationError, match=line):
                await connection.ask(ListGroupsRequest(), deadline=soon())
        await cluster.close()
    assert re.search(line, caplog.text)
    assert "alice-secret" not in caplog.text


@asynchronous
async def test_a_token_that_cannot_be_had_at_the_moment_is_asked_for_again(monkeypatch, caplog):
    monkeypatch.setattr(module, "_PAUSE_S", 0.01)
    given = []

    def provide() -> str:
        given.append("")
        if len(given) in (2, 3):
            raise ConnectionFailedError("no token: the endpoint is away", sent=False)
        return "abc"

    async with ScriptedCluster(answers=answers(lifetime_ms=2000)) as scripted:
        cluster = scripted.cluster(tokens(provide))
        connection = await cluster.any_connection(soon())
        await asyncio.sleep(2.2)
        await connection.ask(ListGroupsRequest(), deadline=soon())
        await cluster.close()
    assert len(given) == 4
    assert "the endpoint is away" in caplog.text
    assert len(scripted.sent("SaslHandshake")) == 2


@asynchronous
async def test_a_connection_that_is_closed_renews_nothing():
    async with ScriptedCluster(answers=answers(lifetime_ms=100)) as scripted:
        cluster = scripted.cluster(PLAIN)
        await ask(cluster)
        await cluster.close()
        await asyncio.sleep(0.2)
    assert len(scripted.sent("SaslHandshake")) == 1


def test_each_login_has_a_nonce_of_its_own():
    nonces = iter(["first-nonce-of-the-client", "second-nonce-of-the-client"])
    sent = []

    def keep(asked: ReceivedRequest) -> Any:
        sent.append(asked.request.auth_bytes)
        return SaslAuthenticateResponse(error_code=58)

    security = Security(
        protocol="SASL_PLAINTEXT", mechanism="SCRAM-SHA-256", username="u", password="p"
    )

    async def run() -> None:
        ENVIRONMENT.set(Environment(new_nonce=lambda: next(nonces)))
        given = answers(SaslAuthenticateRequest=keep)
        async with ScriptedCluster(answers=given) as scripted:
            cluster = scripted.cluster(security)
            for _ in range(2):
                with pytest.raises(AuthenticationError):
                    await cluster.reach(soon())
            await cluster.close()

    asyncio.run(run())
    assert sent == [b"n,,n=u,r=first-nonce-of-the-client", b"n,,n=u,r=second-nonce-of-the-client"]


def test_a_connection_without_sasl_has_no_session():
    async def run() -> None:
        async with ScriptedCluster(answers=answers()) as scripted:
            connection = await Connection.open(
                Address("127.0.0.1", scripted.nodes[0].port), client_id="t", deadline=soon()
            )
            assert connection._session is None
            await connection.close()
        assert scripted.sent("SaslHandshake") == []

    asyncio.run(run())
