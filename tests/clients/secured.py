# SPDX-License-Identifier: Apache-2.0
"""A broker with a listener of every security protocol, and what each client needs to use it."""

import json
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from ssl import create_default_context
from time import time
from typing import Any, NamedTuple

import jwt
import pytest
from aiokafka.abc import AbstractTokenProvider as AiokafkaTokens
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from cryptography.hazmat.primitives.asymmetric import ec
from kafka.net.sasl.oauth import AbstractTokenProvider
from tests.certificates import Authority
from tests.server.tls_broker import TlsBroker
from tests.waiting import SOON_S

from kohort.server.broker import Broker

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
WITHOUT_SASL = ("PLAINTEXT", "SSL")
COMBINATIONS = [
    *((listener, "") for listener in WITHOUT_SASL),
    *((name, mechanism) for name in ("SASL_PLAINTEXT", "SASL_SSL") for mechanism in MECHANISMS),
]
"""Every kind of listener with every mechanism that it can have."""

KEY = ec.generate_private_key(ec.SECP256R1())
SIGNER: Any = jwt.get_algorithm_by_name("ES256")
MODULES = "org.apache.kafka.common.security"
UNSECURED = f"{MODULES}.oauthbearer.internals.unsecured.OAuthBearerUnsecured"
NAMES = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL", "SHORT", "SIGNED")
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
            f"{UNSECURED}ValidatorCallbackHandler"
        )
        for name in ("sasl_plaintext", "sasl_ssl", "short")
    },
}


LOGIN_OF_LIBRDKAFKA = {
    "sasl.username": "alice",
    "sasl.password": "alice-secret",
    "enable.sasl.oauthbearer.unsecure.jwt": True,
    "sasl.oauthbearer.config": "principal=alice",
}


def combinations(short: set[tuple[str, str]]) -> pytest.MarkDecorator:
    """A test of a client is done for each combination, in `make test` for those in `short`."""
    marks = {pair: () if pair in short else (pytest.mark.prove,) for pair in COMBINATIONS}
    return pytest.mark.parametrize(
        ("listener", "mechanism"),
        [pytest.param(*pair, marks=marks[pair]) for pair in COMBINATIONS],
    )


class Secured(NamedTuple):
    """A broker, and the certificate of the authority that its clients trust."""

    broker: Broker
    authority: Path

    def bootstrap(self, listener: str) -> str:
        return self.broker.bootstrap_of(listener)


@contextmanager
def secured(folder: Path, settings: Mapping[str, str] | None = None) -> Iterator[Secured]:
    """The broker, with the user alice for every mechanism."""
    authority = Authority()
    authority.write(folder / "ca.pem")
    keystore = authority.sign("localhost").write_pem(folder / "server.pem")
    keys = folder / "keys.json"
    keys.write_text(json.dumps({"keys": [{**SIGNER.to_jwk(KEY.public_key(), True), "kid": "k"}]}))
    own = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(keystore),
        "listener.name.signed.sasl.oauthbearer.jwks.endpoint.url": keys.as_uri(),
    }
    with TlsBroker(SETTINGS | own | dict(settings or {})) as here:
        admin = AdminClient({"bootstrap.servers": here.broker.bootstrap_of("PLAINTEXT")})
        for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
            wanted = UserScramCredentialUpsertion(
                "alice", ScramCredentialInfo(mechanism, 4096), b"alice-secret"
            )
            for done in admin.alter_user_scram_credentials([wanted]).values():
                done.result(SOON_S)
        yield Secured(here.broker, folder / "ca.pem")


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


def protocol_of(listener: str) -> str:
    return listener if listener in NAMES[:4] else "SASL_PLAINTEXT"


def of_confluent(running: Secured, mechanism: str, listener: str = "SASL_PLAINTEXT") -> Any:
    return {
        "bootstrap.servers": running.bootstrap(listener),
        "security.protocol": protocol_of(listener),
        "ssl.ca.location": str(running.authority),
        **(LOGIN_OF_LIBRDKAFKA | {"sasl.mechanism": mechanism} if mechanism else {}),
    }


def _login(mechanism: str, tokens: Any) -> dict[str, Any]:
    """As kafka-python, aiokafka and Kohort name it."""
    if not mechanism:
        return {}
    if mechanism == "OAUTHBEARER":
        return {"sasl_mechanism": mechanism, "sasl_oauth_token_provider": tokens}
    return {
        "sasl_mechanism": mechanism,
        "sasl_plain_username": "alice",
        "sasl_plain_password": "alice-secret",
    }


def of_kafka_python(running: Secured, mechanism: str, listener: str = "SASL_PLAINTEXT") -> Any:
    usual = {
        "bootstrap_servers": running.bootstrap(listener),
        "security_protocol": protocol_of(listener),
        **_login(mechanism, KafkaPythonTokens()),
    }
    return usual | ({"ssl_cafile": str(running.authority)} if "SSL" in listener else {})


def of_aiokafka(running: Secured, mechanism: str, listener: str = "SASL_PLAINTEXT") -> Any:
    return {
        "bootstrap_servers": running.bootstrap(listener),
        "security_protocol": protocol_of(listener),
        "ssl_context": create_default_context(cafile=str(running.authority)),
        **_login(mechanism, OfAiokafka()),
    }


def of_kohort(running: Secured, mechanism: str, listener: str = "SASL_PLAINTEXT") -> Any:
    return of_kafka_python(running, mechanism, listener)


def of_java(running: Secured, mechanism: str, listener: str = "SASL_PLAINTEXT") -> dict[str, str]:
    """Without the address: tools of Java have an option for it."""
    usual = {
        "security.protocol": protocol_of(listener),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(running.authority),
    }
    if not mechanism:
        return usual
    secret = 'username="alice" password="alice-secret"'
    if mechanism == "OAUTHBEARER":
        module = "oauthbearer.OAuthBearerLoginModule"
        secret = 'unsecuredLoginStringClaim_sub="alice"'
        usual["sasl.login.callback.handler.class"] = f"{UNSECURED}LoginCallbackHandler"
    else:
        module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
    jaas = f"{MODULES}.{module} required {secret};"
    return usual | {"sasl.mechanism": mechanism, "sasl.jaas.config": jaas}
