# SPDX-License-Identifier: Apache-2.0
"""The security of one client: what makes no sense, a TLS context, logins, and one warning."""

import asyncio
import logging
import ssl

import pytest
from tests.certificates import Authority

from kohort.client.network.credentials import Credentials, check_security
from kohort.errors import AuthenticationError, ErrorCode
from kohort.security.settings import NO_SECURITY, Security, Store

SCRAM = Security(
    protocol="SASL_PLAINTEXT", mechanism="SCRAM-SHA-512", username="alice", password="s3cret"
)
PLAIN = Security(protocol="SASL_PLAINTEXT", mechanism="PLAIN", username="alice", password="s3cret")


def tokens(**given):
    return Security(protocol="SASL_SSL", mechanism="OAUTHBEARER", **given)


ENDPOINT = {"client_id": "me", "client_secret": "s3cret"}
GOOD = [
    NO_SECURITY,
    Security(protocol="SSL"),
    SCRAM,
    PLAIN,
    tokens(token=lambda: "abc"),
    tokens(token_endpoint="https://idp.example/token", **ENDPOINT),
    tokens(token_endpoint="http://localhost:80/token", **ENDPOINT),
    tokens(token_endpoint="http://127.0.0.1:80/token", **ENDPOINT),
    tokens(token_endpoint="http://[::1]:80/token", **ENDPOINT),
    tokens(token_endpoint="http://[::1]/token", **ENDPOINT),
    tokens(token_endpoint="HTTPS://IDP.example/token", **ENDPOINT),
]


@pytest.mark.parametrize("security", GOOD, ids=range(len(GOOD)))
def test_what_makes_sense_is_taken(security):
    check_security(security)


@pytest.mark.parametrize(
    ("security", "line"),
    [
        (
            Security(protocol="SASL_SSL"),
            "security.protocol is SASL_SSL, and there is no sasl.mechanism: expected one of PLAIN",
        ),
        (
            Security(protocol="SASL_SSL", mechanism="PLAIN", password="s3cret"),
            "sasl.mechanism is PLAIN, and there is no user name",
        ),
        (
            Security(protocol="SASL_SSL", mechanism="PLAIN", username="alice"),
            "sasl.mechanism is PLAIN, and there is no password",
        ),
        (tokens(), "sasl.mechanism is OAUTHBEARER, and there is no token provider and no token"),
        (
            tokens(token=str, token_endpoint="https://idp.example"),
            "a token provider and a token endpoint are given, expected one of them",
        ),
        (tokens(token_endpoint="https://idp.example"), "there is no client id"),
        (tokens(token_endpoint="https://idp.example", client_id="me"), "there is no client secret"),
        *(
            (tokens(token_endpoint=address, **ENDPOINT), "is no address by https")
            for address in (
                "http://idp.example/token",
                "http://127.0.0.1.example/token",
                "http://evil.example?@localhost/",
                "http://evil.example#@localhost/",
                "https://[x",
                "https://host:port/",
                "https://:443/",
                "https://",
                "idp.example",
                "file:///etc/passwd",
            )
        ),
    ],
)
def test_what_makes_none_is_refused_without_a_secret(security, line):
    with pytest.raises(ValueError, match=r"security|sasl|token") as caught:
        Credentials(security)
    assert line in str(caught.value)
    assert "s3cret" not in str(caught.value)


def test_a_context_is_made_once_for_all_connections():
    credentials = Credentials(Security(protocol="SSL", trust=Store(text=Authority().pem)))

    async def run():
        return await asyncio.gather(*(credentials.context() for _ in range(5)))

    contexts = asyncio.run(run())
    assert len(set(map(id, contexts))) == 1
    assert contexts[0].verify_mode is ssl.CERT_REQUIRED
    assert contexts[0].check_hostname
    assert asyncio.run(credentials.context()) is contexts[0]


def test_the_context_of_the_caller_is_taken_as_it_is():
    context = ssl.create_default_context()
    credentials = Credentials(Security(protocol="SSL", context=context))
    assert asyncio.run(credentials.context()) is context


def test_a_store_that_cannot_be_read_is_named():
    credentials = Credentials(Security(protocol="SSL", trust=Store(path="/nowhere/ca.pem")))
    with pytest.raises(AuthenticationError, match=r"truststore /nowhere/ca\.pem cannot") as caught:
        asyncio.run(credentials.context())
    assert caught.value.code is ErrorCode.INVALID_CONFIG


def test_a_login_names_the_user_or_what_the_token_says():
    assert asyncio.run(Credentials(SCRAM).login()).who == "user alice (SCRAM-SHA-512)"
    login = asyncio.run(Credentials(tokens(token=lambda: "abc")).login())
    assert login.who == "the token (no JWT; OAUTHBEARER)"


def test_a_token_that_cannot_be_sent_is_refused_without_it():
    with pytest.raises(AuthenticationError, match="has a character that no token has") as caught:
        asyncio.run(Credentials(tokens(token=lambda: "s3cret\n")).login())
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    ("security", "host", "warns"),
    [
        (PLAIN, "192.0.2.1", True),
        (PLAIN, "2001:db8::1", True),
        (PLAIN, "127.0.0.1", False),
        (PLAIN, "127.8.8.8", False),
        (PLAIN, "::1", False),
        (SCRAM, "192.0.2.1", False),
        (
            Security(protocol="SASL_PLAINTEXT", mechanism="OAUTHBEARER", token=str),
            "192.0.2.1",
            True,
        ),
        (tokens(token=lambda: "abc"), "192.0.2.1", False),
        (NO_SECURITY, "192.0.2.1", False),
    ],
)
def test_who_tells_a_secret_to_everybody_on_the_way_is_warned_once(security, host, warns, caplog):
    credentials = Credentials(security)
    with caplog.at_level(logging.WARNING):
        credentials.warn_of_readable(host)
        credentials.warn_of_readable(host)
    assert len(caplog.records) == warns
    if warns:
        assert f"is sent to {host} in plain text" in caplog.text
        assert "expected SASL_SSL" in caplog.text
        assert "s3cret" not in caplog.text
