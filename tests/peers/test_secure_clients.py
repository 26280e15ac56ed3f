# SPDX-License-Identifier: Apache-2.0
"""Our clients on every listener of a real Kafka: they get in, or are told at once why not."""

import asyncio
import base64
import json
import re
import time
from typing import Any

import pytest
from tests.client.scripted import asynchronous
from tests.peers.kafka import unavailable
from tests.peers.secure_kafka import password_of, secure_kafka

from kohort import (
    AdminClient,
    ApiError,
    AuthenticationError,
    Consumer,
    ErrorCode,
    NewTopic,
    Producer,
)
from kohort.client.network import login

pytestmark = [pytest.mark.java, pytest.mark.timeout(600)]

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
SOON_S = 5.0  # a broker refuses after 0.1 to 0.3 s, and machines are loaded; a time-out is 30 s
PUBLISHED_S = 60.0  # until a broker has a token that the controller has made


@pytest.fixture(scope="module")
def kafka(tmp_path_factory):
    if reason := unavailable():
        pytest.skip(reason)
    with secure_kafka(tmp_path_factory.mktemp("secure")) as running:
        asyncio.run(make_topic(running))
        yield running


async def make_topic(kafka) -> None:
    async with AdminClient(kafka.addresses["PLAINTEXT"]) as admin:
        (await admin.create_topics([NewTopic("n1", 2)])).all()


def token(subject: str, life_s: float = 3600) -> str:
    """Unsecured, as this broker takes it."""
    now = time.time()
    parts = {"alg": "none"}, {"sub": subject, "iat": now - 60, "exp": now + life_s}
    coded = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode() for part in parts]
    return ".".join(part.rstrip("=") for part in coded) + "."


async def token_of_bob() -> str:
    return token("bob")


def sasl(mechanism: str, user: str = "bob", *, protocol: str = "SASL_PLAINTEXT", **more: Any):
    given = {"security_protocol": protocol, "sasl_mechanism": mechanism}
    if mechanism == "OAUTHBEARER":
        given["sasl_oauth_token_provider"] = lambda: token(user)
    else:
        given["sasl_plain_username"] = user
        given["sasl_plain_password"] = password_of(user)
    return given | more


def tls(kafka, **more: Any):
    return {"security_protocol": "SSL", "ssl_cafile": str(kafka.ca), **more}


async def round_trip(address: str, given: dict[str, Any]) -> None:
    """A record goes in and comes out, in a group."""
    async with Producer(bootstrap_servers=address, **given) as producer:
        delivered = await producer.send_and_wait("n1", b"a record")
    place = (delivered.topic, delivered.partition)
    async with Consumer(bootstrap_servers=address, group_id="readers", **given) as consumer:
        await consumer.assign([place])
        consumer.seek(place, delivered.offset)
        (records,) = (await consumer.getmany(timeout_ms=30_000)).values()
        assert records[0].value == b"a record"
        await consumer.commit()
    async with AdminClient(address, **given) as admin:
        assert len(await admin.describe_cluster()) == 1


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "SASL_SSL"])
@asynchronous
async def test_every_mechanism_gets_in(kafka, protocol, mechanism):
    more = {"ssl_cafile": str(kafka.ca)} if protocol == "SASL_SSL" else {}
    address = kafka.addresses["SASLSSL" if more else "SASL"]
    await round_trip(address, sasl(mechanism, protocol=protocol, **more))


@asynchronous
async def test_certificates_get_in(kafka):
    await round_trip(kafka.addresses["MUTUAL"], tls(kafka, ssl_certfile=str(kafka.alice)))
    async with AdminClient(kafka.addresses["SSL"], **tls(kafka)) as admin:
        assert len(await admin.describe_cluster()) == 1
    unchecked = tls(kafka, ssl_check_hostname=False)
    async with AdminClient(kafka.addresses["ELSEWHERE"], **unchecked) as admin:
        assert len(await admin.describe_cluster()) == 1


@asynchronous
async def test_the_dialects_of_other_clients_get_in(kafka):
    java = {
        "bootstrap.servers": kafka.addresses["SASLSSL"],
        "security.protocol": "SASL_SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(kafka.ca),
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required "
        f'username="bob" password="{password_of("bob")}";',
    }
    librdkafka = {
        "bootstrap.servers": kafka.addresses["SASLSSL"],
        "security.protocol": "sasl_ssl",
        "ssl.ca.location": str(kafka.ca),
        "sasl.mechanisms": "PLAIN",
        "sasl.username": "bob",
        "sasl.password": password_of("bob"),
    }
    for given in (java, librdkafka):
        async with AdminClient(given) as admin:
            assert len(await admin.describe_cluster()) == 1


WRONG = {
    "TLS here": ("SSL", lambda _: {}, r"speaks TLS, and security\.protocol is PLAINTEXT"),
    "plain text there": ("PLAINTEXT", tls, r"speaks plain text, and security\.protocol is SSL"),
    "SASL in plain text there": ("SASL", tls, r"speaks plain text, and security\.protocol is SSL"),
    "wants SASL": (
        *("SASL", lambda _: {}),
        r"wants SASL, .* expected SASL_PLAINTEXT with one of its mechanisms \(OAUTHBEARER, PLAIN, ",
    ),
    "wants SASL over TLS": (
        *("SASLSSL", tls),
        r"wants SASL, .* expected SASL_SSL with one of its mechanisms \(OAUTHBEARER, PLAIN, SCRAM",
    ),
    "wants no SASL": (
        *("PLAINTEXT", lambda _: sasl("PLAIN")),
        r"has no SASL, and security\.protocol is SASL_PLAINTEXT: expected PLAINTEXT",
    ),
    "SASL where TLS is": (
        *("SASLSSL", lambda _: sasl("PLAIN")),
        r"speaks TLS, and security\.protocol is SASL_PLAINTEXT: expected SASL_SSL",
    ),
    "authority": (
        *("SSL", lambda kafka: tls(kafka, ssl_cafile=str(kafka.other_ca))),
        r"authority that is not trusted \(CN=Kohort Test CA,O=Kohort\): expected one of ssl_cafile",
    ),
    "expired": ("EXPIRED", tls, r"its certificate has expired, on 20\d\d-"),
    "name": (
        *("ELSEWHERE", tls),
        r"is for 10\.0\.0\.1, a\.example, b\.example, and not for localhost",
    ),
    "no client certificate": (
        *("MUTUAL", tls),
        r"requires a client certificate, and none is given.*alert bad_certificate",
    ),
    "a client certificate of another authority": (
        *("MUTUAL", lambda kafka: tls(kafka, ssl_certfile=str(kafka.other_alice))),
        r"client's certificate is of an authority that it does not trust.*certificate_unknown",
    ),
    "password": (
        *("SASL", lambda _: sasl("PLAIN", sasl_plain_password="wrong")),
        r"refused user bob \(PLAIN\): Authentication failed: Invalid username or password$",
    ),
    "password of SCRAM": (
        *("SASL", lambda _: sasl("SCRAM-SHA-512", sasl_plain_password="wrong")),
        r"refused user bob \(SCRAM-SHA-512\): Authentication failed during authentication due to",
    ),
    "user": (
        *("SASL", lambda _: sasl("SCRAM-SHA-256", "nobody")),
        r"refused user nobody \(SCRAM-SHA-256\): Authentication failed during authentication",
    ),
    "mechanism": (
        *("ONLY512", lambda _: sasl("PLAIN")),
        r"does not offer PLAIN: expected sasl\.mechanism to be one of SCRAM-SHA-512$",
    ),
    "token": (
        *("SASL", lambda _: sasl("OAUTHBEARER", sasl_oauth_token_provider=lambda: token("a", -9))),
        r"refused the token \(sub a, ended 9 s ago; OAUTHBEARER\): \{\"status\":\"invalid_token",
    ),
}


@pytest.mark.parametrize("case", WRONG)
@pytest.mark.parametrize("client", ["admin", "consumer", "group", "producer"])
@asynchronous
async def test_what_is_wrong_is_said_by_the_first_call_and_at_once(kafka, client, case):
    """What others say, and after how long: SEC-44c, and the table of clients of the oracle."""
    listener, settings, line = WRONG[case]
    address, given = kafka.addresses[listener], settings(kafka)
    begun = time.monotonic()
    with pytest.raises(ApiError, match=line) as caught:
        await first_call(client, address, given)
    assert time.monotonic() - begun < SOON_S
    assert isinstance(caught.value, AuthenticationError)
    assert "\n" not in str(caught.value)
    assert password_of("bob") not in str(caught.value)


async def first_call(client: str, address: str, given: dict[str, Any]) -> None:
    if client == "admin":
        async with AdminClient(address, timeout=30, **given) as admin:
            await admin.list_groups()
    elif client == "producer":
        async with Producer(bootstrap_servers=address, **given) as producer:
            await producer.send_and_wait("n1", b"a record")
    elif client == "group":
        async with Consumer("n1", bootstrap_servers=address, group_id="g", **given) as consumer:
            await consumer.getmany(timeout_ms=30_000)
    else:
        async with Consumer(bootstrap_servers=address, **given) as consumer:
            await consumer.assign([("n1", 0)])
            await consumer.getmany(timeout_ms=30_000)


DENIED = {
    "group": (
        *("group", ErrorCode.GROUP_AUTHORIZATION_FAILED),
        r"User:alice is not authorized for group g$",
    ),
    "consumer": (
        *("consumer", ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        r"n1:0: User:alice is not authorized for topic n1$",
    ),
    "producer": (
        *("producer", ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        r"n1: User:alice is not authorized for topic n1$",
    ),
}


@pytest.mark.parametrize("case", DENIED)
@asynchronous
async def test_who_has_no_right_is_told_who_and_to_what(kafka, case):
    client, code, line = DENIED[case]
    begun = time.monotonic()
    with pytest.raises(ApiError, match=line) as caught:
        await first_call(client, kafka.addresses["SASL"], sasl("PLAIN", "alice"))
    assert caught.value.code is code
    assert time.monotonic() - begun < SOON_S


@asynchronous
async def test_an_admin_without_rights_is_told_for_each_thing(kafka):
    given = sasl("OAUTHBEARER", "alice")
    async with AdminClient(kafka.addresses["SASL"], **given) as admin:
        outcomes = {
            "topic n1": await admin.describe_topics(["n1"]),
            "topic new": await admin.create_topics([NewTopic("new")]),
            "group g": await admin.describe_groups(["g"]),
        }
    for thing, outcome in outcomes.items():
        with pytest.raises(ApiError, match=f"User:alice is not authorized for {thing}$"):
            outcome.all()


@asynchronous
async def test_a_delegation_token_is_made_renewed_and_ended(kafka):
    address = kafka.addresses["SASL"]
    async with AdminClient(address, **sasl("PLAIN", "bob")) as admin:
        token = await admin.create_delegation_token("User:alice", max_lifetime_ms=600_000)
        assert (token.owner, token.requester) == ("User:bob", "User:bob")
        assert token.max_timestamp_ms == token.issue_timestamp_ms + 600_000
        async with asyncio.timeout(PUBLISHED_S):
            while not (found := await admin.describe_delegation_tokens("User:bob")):  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        assert found == (token,)
        assert await admin.describe_delegation_tokens("User:carol") == ()
        of_alice = await admin.create_delegation_token(owner="User:alice")
        assert (of_alice.owner, of_alice.requester) == ("User:alice", "User:bob")
        code = ErrorCode.DELEGATION_TOKEN_NOT_FOUND  # until the broker has heard of it
        async with asyncio.timeout(PUBLISHED_S):
            while code is ErrorCode.DELEGATION_TOKEN_NOT_FOUND:
                with pytest.raises(ApiError) as refusal:
                    await admin.expire_delegation_token(of_alice.hmac)
                code = refusal.value.code
        assert code is ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH  # who asked is not the owner
    async with AdminClient(address, **sasl("PLAIN", "alice")) as renewer:
        end = await renewer.renew_delegation_token(token.hmac, renew_period_ms=60_000)
        assert end < token.expiry_timestamp_ms
        with pytest.raises(ApiError) as refusal:
            await renewer.create_delegation_token(owner="User:bob")
        assert refusal.value.code is ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
        await renewer.expire_delegation_token(of_alice.hmac)
    async with AdminClient(address, **sasl("PLAIN", "bob")) as admin:
        await admin.expire_delegation_token(token.hmac)
        async with asyncio.timeout(PUBLISHED_S):
            while await admin.describe_delegation_tokens():  # noqa: ASYNC110  (nobody tells)
                await asyncio.sleep(0.05)
        with pytest.raises(ApiError) as refusal:
            await admin.renew_delegation_token(token.hmac)
        assert refusal.value.code is ErrorCode.DELEGATION_TOKEN_NOT_FOUND


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-512", "OAUTHBEARER"])
@asynchronous
async def test_sessions_are_renewed_under_load_and_nothing_fails(kafka, mechanism, monkeypatch):
    """SEC-49: connections.max.reauth.ms is 4000, and a broker closes whoever asks after that."""
    logins = []
    authenticate = login.authenticate

    async def counted(*args: Any) -> float:
        logins.append(args[2])
        return await authenticate(*args)

    monkeypatch.setattr(login, "authenticate", counted)
    common = {"bootstrap_servers": kafka.addresses["REAUTH"], **sasl(mechanism)}
    got: list[bytes] = []
    sent = 0
    async with (
        Producer(linger_ms=0, **common) as producer,
        Consumer(
            "n1", group_id=f"renewed by {mechanism}", auto_offset_reset="earliest", **common
        ) as consumer,
    ):

        async def consume() -> None:
            async for record in consumer:
                if record.key == mechanism.encode():
                    got.append(record.value)  # noqa: PERF401  (it is looked at meanwhile)

        reading = asyncio.create_task(consume())
        end = time.monotonic() + 13
        while time.monotonic() < end:
            await producer.send_and_wait("n1", b"%d" % sent, key=mechanism.encode())
            sent += 1
            await asyncio.sleep(0.005)
        async with asyncio.timeout(30):
            while len(got) < sent and not reading.done():  # noqa: ASYNC110  (nobody tells)
                await asyncio.sleep(0.01)
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
    assert sent > 100
    assert got == [b"%d" % number for number in range(sent)]
    assert len(logins) >= 12, "four connections, 13 s, renewed after 3.4 to 3.8 s"
    log = kafka.kafka.log.read_text(errors="replace")
    assert not re.search(r"expired|Failed re-?authentication", log, re.IGNORECASE)
