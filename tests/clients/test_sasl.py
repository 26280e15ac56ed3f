"""Real clients authenticate by SASL, on the listeners with it (SEC-44a, SEC-49)."""

import asyncio
import json
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator
from pathlib import Path
from ssl import create_default_context
from time import monotonic, sleep, time
from typing import Any, NamedTuple

import jwt
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.abc import AbstractTokenProvider as AiokafkaTokens
from confluent_kafka import Consumer, KafkaError, Producer
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from cryptography.hazmat.primitives.asymmetric import ec
from kafka import KafkaConsumer, KafkaProducer
from kafka.net.sasl.oauth import AbstractTokenProvider
from tests.certificates import Authority
from tests.peers.kafka import run_tool, unavailable
from tests.server.tls_broker import TlsBroker
from tests.waiting import SOON_S, eventually

import kohort
from kohort.errors import KohortError
from kohort.server.broker import Broker

pytestmark = [pytest.mark.clients, pytest.mark.timeout(300)]

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
KEY = ec.generate_private_key(ec.SECP256R1())
SIGNER: Any = jwt.get_algorithm_by_name("ES256")
on_every_listener = pytest.mark.parametrize(
    ("listener", "mechanism"),
    [*(("SASL_PLAINTEXT", name) for name in MECHANISMS), ("SASL_SSL", "SCRAM-SHA-512")],
)
MODULES = "org.apache.kafka.common.security"
NAMES = ("PLAINTEXT", "SASL_PLAINTEXT", "SASL_SSL", "SHORT", "SIGNED")
SETTINGS = {
    "listeners": ",".join(f"{name}://127.0.0.1:0" for name in NAMES),
    "listener.security.protocol.map": "SHORT:SASL_PLAINTEXT,SIGNED:SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": ",".join(MECHANISMS),
    "sasl.jaas.config": f'{MODULES}.plain.PlainLoginModule required user_alice="alice-secret";',
    "group.initial.rebalance.delay.ms": "0",
    "listener.name.signed.sasl.enabled.mechanisms": "OAUTHBEARER",
    "listener.name.signed.sasl.oauthbearer.expected.audience": "kohort",
    "listener.name.short.connections.max.reauth.ms": "1500",
    **{
        f"listener.name.{name}.oauthbearer.sasl.server.callback.handler.class": (
            f"{MODULES}.oauthbearer.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
        )
        for name in ("sasl_plaintext", "sasl_ssl", "short")
    },
}


class Running(NamedTuple):
    """A broker, and the certificate of the authority that its clients trust."""

    broker: Broker
    authority: Path

    def bootstrap(self, listener: str) -> str:
        return self.broker.bootstrap_of(listener)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder, authority = tmp_path_factory.mktemp("sasl"), Authority()
    authority.write(folder / "ca.pem")
    keystore = authority.sign("localhost").write_pem(folder / "server.pem")
    keys = folder / "keys.json"
    keys.write_text(json.dumps({"keys": [{**SIGNER.to_jwk(KEY.public_key(), True), "kid": "k"}]}))
    own = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(keystore),
        "listener.name.signed.sasl.oauthbearer.jwks.endpoint.url": keys.as_uri(),
    }
    with TlsBroker(SETTINGS | own) as here:
        admin = AdminClient({"bootstrap.servers": here.broker.bootstrap_of("PLAINTEXT")})
        for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
            wanted = UserScramCredentialUpsertion(
                "alice", ScramCredentialInfo(mechanism, 4096), b"alice-secret"
            )
            for done in admin.alter_user_scram_credentials([wanted]).values():
                done.result(SOON_S)
        yield Running(here.broker, folder / "ca.pem")


def token(life_seconds: float = 300) -> str:
    """One that nobody has signed."""
    now = time()
    parts = '{"alg":"none"}', f'{{"sub":"alice","iat":{now - 1},"exp":{now + life_seconds}}}'
    return ".".join(urlsafe_b64encode(one.encode()).decode().rstrip("=") for one in parts) + "."


class KafkaPythonTokens(AbstractTokenProvider):  # type: ignore[misc]
    def token(self) -> str:
        return token()


class OfAiokafka(AiokafkaTokens):  # type: ignore[misc]
    async def token(self) -> str:
        return token()


def of_confluent(running: Running, mechanism: str, listener: str = "SASL_PLAINTEXT") -> Any:
    return {
        "bootstrap.servers": running.bootstrap(listener),
        "security.protocol": "SASL_SSL" if listener == "SASL_SSL" else "SASL_PLAINTEXT",
        "ssl.ca.location": str(running.authority),
        "sasl.mechanism": mechanism,
        "sasl.username": "alice",
        "sasl.password": "alice-secret",
        "enable.sasl.oauthbearer.unsecure.jwt": True,
        "sasl.oauthbearer.config": "principal=alice",
    }


def of_python(running: Running, mechanism: str, listener: str = "SASL_PLAINTEXT") -> Any:
    return {
        "bootstrap_servers": running.bootstrap(listener),
        "security_protocol": listener,
        "sasl_mechanism": mechanism,
        "sasl_plain_username": "alice",
        "sasl_plain_password": "alice-secret",
        "sasl_oauth_token_provider": KafkaPythonTokens() if mechanism == "OAUTHBEARER" else None,
    }


@on_every_listener
def test_librdkafka(running: Running, listener: str, mechanism: str) -> None:
    topic = f"librdkafka-{listener}-{mechanism}"
    options = of_confluent(running, mechanism, listener)
    failed: list[Any] = []
    producer = Producer(options)
    producer.produce(topic, b"value", on_delivery=lambda error, _: error and failed.append(error))
    assert producer.flush(SOON_S) == 0
    assert failed == []
    consumer = Consumer(
        options | {"group.id": topic, "auto.offset.reset": "earliest", "group.protocol": "consumer"}
    )
    consumer.subscribe([topic])
    eventually(lambda: (record := consumer.poll(1)) and record.value() == b"value", "a record")
    consumer.close()


@on_every_listener
def test_kafka_python(running: Running, listener: str, mechanism: str) -> None:
    topic = f"kafka-python-{listener}-{mechanism}"
    options = of_python(running, mechanism, listener) | {"ssl_cafile": str(running.authority)}
    producer = KafkaProducer(**options)
    producer.send(topic, b"value").get(SOON_S)
    producer.close()
    consumer = KafkaConsumer(topic, group_id=topic, auto_offset_reset="earliest", **options)
    assert next(consumer).value == b"value"
    consumer.close()


@on_every_listener
def test_aiokafka(running: Running, listener: str, mechanism: str) -> None:
    topic = f"aiokafka-{listener}-{mechanism}"
    options = of_python(running, mechanism, listener)
    options["ssl_context"] = create_default_context(cafile=str(running.authority))
    options["sasl_oauth_token_provider"] = OfAiokafka() if mechanism == "OAUTHBEARER" else None

    async def go() -> bytes:
        async with AIOKafkaProducer(**options) as producer:
            await producer.send_and_wait(topic, b"value")
        async with AIOKafkaConsumer(
            topic, group_id=topic, auto_offset_reset="earliest", **options
        ) as consumer:
            value: bytes = (await consumer.getone()).value
            return value

    assert asyncio.run(go()) == b"value"


@on_every_listener
def test_kohort(running: Running, listener: str, mechanism: str) -> None:
    topic = f"kohort-{listener}-{mechanism}"
    options: Any = of_python(running, mechanism, listener)
    if mechanism == "OAUTHBEARER":
        del options["sasl_plain_username"], options["sasl_plain_password"]
    if listener == "SASL_SSL":
        options["ssl_cafile"] = str(running.authority)

    async def go() -> bytes | None:
        async with kohort.Producer(**options) as producer:
            await producer.send_and_wait(topic, b"value")
        async with kohort.Consumer(
            topic,
            group_id=topic,
            auto_offset_reset="earliest",
            **options,
        ) as consumer:
            async for record in consumer:
                return record.value
        return None

    assert asyncio.run(go()) == b"value"


def signed(audience: str) -> str:
    claims = {"sub": "alice", "aud": audience, "iat": time(), "exp": time() + 60}
    return jwt.encode(claims, KEY, "ES256", headers={"kid": "k"})


@pytest.mark.parametrize("shown", [lambda: signed("other"), token, lambda: "a.b.c"])
def test_signed_tokens_of_this_audience_alone_are_taken(
    running: Running, shown: Callable[[], str]
) -> None:
    bootstrap = running.bootstrap("SIGNED")

    async def topics(give: Callable[[], str]) -> Any:
        async with kohort.AdminClient(
            bootstrap,
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="OAUTHBEARER",
            sasl_oauth_token_provider=give,
        ) as admin:
            return await admin.list_topics()

    assert asyncio.run(topics(lambda: signed("kohort"))) is not None
    with pytest.raises(KohortError, match="invalid_token"):
        asyncio.run(topics(shown))


def test_a_wrong_password_is_told_in_the_words_of_upstream(running: Running) -> None:
    told: list[KafkaError] = []
    admin = AdminClient(
        of_confluent(running, "PLAIN") | {"sasl.password": "wrong", "error_cb": told.append}
    )
    eventually(lambda: admin.poll(0.1) or told, "an error")
    assert told[0].code() == KafkaError._AUTHENTICATION
    assert "Authentication failed: Invalid username or password" in told[0].str()


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
def test_sessions_that_end_are_renewed_and_no_record_is_lost(
    running: Running, mechanism: str
) -> None:
    topic, options = f"renewed-{mechanism}", of_confluent(running, mechanism, "SHORT")
    counts = running.broker.traffic.authentications
    before, failed = counts.reauthenticated, counts.expired + counts.reauthentication_failed
    lost: list[Any] = []
    producer = Producer(options)
    ends = monotonic() + 4
    sent = 0
    while monotonic() < ends:
        producer.produce(topic, b"%d" % sent, on_delivery=lambda error, _: error and lost.append(1))
        sent += 1
        producer.poll(0)
        sleep(0.02)
    assert producer.flush(SOON_S) == 0
    assert lost == []
    assert counts.reauthenticated - before >= 2
    assert counts.expired + counts.reauthentication_failed == failed


@pytest.mark.java
@on_every_listener
def test_java(running: Running, listener: str, mechanism: str, tmp_path: Path) -> None:
    if reason := unavailable():
        pytest.skip(reason)
    module = {
        "PLAIN": f"{MODULES}.plain.PlainLoginModule required",
        "OAUTHBEARER": f"{MODULES}.oauthbearer.OAuthBearerLoginModule required"
        ' unsecuredLoginStringClaim_sub="alice"',
    }.get(mechanism, f"{MODULES}.scram.ScramLoginModule required")
    config = tmp_path / "client.properties"
    config.write_text(
        f"security.protocol={listener}\nsasl.mechanism={mechanism}\n"
        f"ssl.truststore.type=PEM\nssl.truststore.location={running.authority}\n"
        f'sasl.jaas.config={module} username="alice" password="alice-secret";\n'
        + (
            "sasl.login.callback.handler.class=org.apache.kafka.common.security.oauthbearer."
            "internals.unsecured.OAuthBearerUnsecuredLoginCallbackHandler\n"
            if mechanism == "OAUTHBEARER"
            else ""
        )
    )
    command = "org.apache.kafka.tools.TopicCommand"
    where = ("--bootstrap-server", running.bootstrap(listener), "--command-config", str(config))
    made = run_tool(command, *where, "--create", "--topic", f"java-{listener}-{mechanism}")
    assert f"Created topic java-{listener}-{mechanism}" in made.stdout, made.stderr
