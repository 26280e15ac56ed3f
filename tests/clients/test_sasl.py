# SPDX-License-Identifier: Apache-2.0
"""What a login by SASL may show, and what becomes of a session (SEC-44a, SEC-49)."""

import asyncio
from collections.abc import Callable, Iterator
from time import monotonic, sleep, time
from typing import Any

import jwt
import pytest
from confluent_kafka import KafkaError, Producer
from confluent_kafka.admin import AdminClient
from tests.clients.secured import KEY, Secured, of_confluent, secured, token
from tests.waiting import SOON_S, eventually

import kohort
from kohort.errors import KohortError

pytestmark = [pytest.mark.clients, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    with secured(tmp_path_factory.mktemp("sasl")) as here:
        yield here


def signed(audience: str) -> str:
    claims = {"sub": "alice", "aud": audience, "iat": time(), "exp": time() + 60}
    return jwt.encode(claims, KEY, "ES256", headers={"kid": "k"})


@pytest.mark.parametrize("shown", [lambda: signed("other"), token, lambda: "a.b.c"])
def test_signed_tokens_of_this_audience_alone_are_taken(
    running: Secured, shown: Callable[[], str]
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


def test_a_wrong_password_is_told_in_the_words_of_upstream(running: Secured) -> None:
    told: list[KafkaError] = []
    admin = AdminClient(
        of_confluent(running, "PLAIN") | {"sasl.password": "wrong", "error_cb": told.append}
    )
    eventually(lambda: admin.poll(0.1) or told, "an error")
    assert told[0].code() == KafkaError._AUTHENTICATION
    assert "Authentication failed: Invalid username or password" in told[0].str()


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
def test_sessions_that_end_are_renewed_and_no_record_is_lost(
    running: Secured, mechanism: str
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
