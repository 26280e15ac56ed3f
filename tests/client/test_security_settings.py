# SPDX-License-Identifier: Apache-2.0
"""The dialects of other clients, and the one value that they become."""

import ssl
from pathlib import Path

import pytest

from kohort.client.security_settings import (
    SETTINGS,
    check_settings,
    is_about_security,
    is_secret,
    security_of,
)
from kohort.security.settings import NO_SECURITY, Security, Store

JAVA = "org.apache.kafka.common.security"
SECRET = "hunter2"
PEM = "-----BEGIN CERTIFICATE-----\nhunter2\n-----END CERTIFICATE-----\n"
PASSWORDS = {"mechanism": "SCRAM-SHA-512", "username": "alice", "password": SECRET}


def scram(user="alice", password=SECRET):
    return f'{JAVA}.scram.ScramLoginModule required username="{user}" password="{password}";'


DIALECTS = {
    "java, PEM": (
        {
            "security.protocol": "SASL_SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": "ca.pem",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": "own.pem",
            "ssl.key.password": SECRET,
            "ssl.endpoint.identification.algorithm": "",
            "ssl.enabled.protocols": "TLSv1.2,TLSv1.3",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.jaas.config": scram(),
            "sasl.login.refresh.window.factor": "0.8",
        },
        Security(
            protocol="SASL_SSL",
            trust=Store(path="ca.pem"),
            identity=Store(path="own.pem", password=SECRET),
            check_hostname=False,
            **PASSWORDS,
        ),
    ),
    "java, inline": (
        {
            "security.protocol": "SSL",
            "ssl.truststore.certificates": PEM,
            "ssl.keystore.certificate.chain": PEM,
            "ssl.keystore.key": PEM,
            "ssl.key.password": SECRET,
        },
        Security(
            protocol="SSL",
            trust=Store(text=PEM),
            identity=Store(text=PEM),
            key=Store(text=PEM, password=SECRET),
        ),
    ),
    "java, PKCS#12": (
        {
            "security.protocol": "SSL",
            "ssl.truststore.type": "PKCS12",
            "ssl.truststore.location": "trust.store",
            "ssl.truststore.password": "open",
            "ssl.keystore.location": "own.p12",
            "ssl.keystore.password": SECRET,
            "ssl.key.password": SECRET,
        },
        Security(
            protocol="SSL",
            trust=Store(type="PKCS12", path="trust.store", password="open"),
            identity=Store(type="PKCS12", path="own.p12", password=SECRET),
        ),
    ),
    "java, PKCS#12 by Java's default type": (
        {
            "security.protocol": "SSL",
            "ssl.truststore.type": "JKS",
            "ssl.truststore.location": "trust.p12",
            "ssl.truststore.password": "open",
            "ssl.keystore.location": "own.jks",
            "ssl.keystore.password": SECRET,
        },
        Security(
            protocol="SSL",
            trust=Store(type="JKS", path="trust.p12", password="open"),
            identity=Store(type="JKS", path="own.jks", password=SECRET),
        ),
    ),
    "java, client credentials": (
        {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.jaas.config": f"{JAVA}.oauthbearer.OAuthBearerLoginModule required"
            f'  clientId="me" clientSecret="{SECRET}" scope="kafka" extension_cluster="lkc-1";',
            "sasl.oauthbearer.token.endpoint.url": "https://issuer.example/token",
            "sasl.login.callback.handler.class": f"{JAVA}.oauthbearer.secured"
            ".OAuthBearerLoginCallbackHandler",
        },
        Security(
            protocol="SASL_SSL",
            mechanism="OAUTHBEARER",
            token_endpoint="https://issuer.example/token",
            client_id="me",
            client_secret=SECRET,
            scope="kafka",
            extensions={"cluster": "lkc-1"},
        ),
    ),
    "librdkafka": (
        {
            "security.protocol": "sasl_ssl",
            "ssl.ca.location": "ca.pem",
            "ssl.certificate.location": "own.pem",
            "ssl.key.location": "own.key",
            "ssl.key.password": SECRET,
            "enable.ssl.certificate.verification": "false",
            "sasl.mechanisms": "SCRAM-SHA-512",
            "sasl.username": "alice",
            "sasl.password": SECRET,
        },
        Security(
            protocol="SASL_SSL",
            trust=Store(path="ca.pem"),
            identity=Store(path="own.pem"),
            key=Store(path="own.key", password=SECRET),
            verify=False,
            **PASSWORDS,
        ),
    ),
    "librdkafka, inline": (
        {
            "security.protocol": "ssl",
            "ssl.ca.pem": PEM,
            "ssl.certificate.pem": PEM,
            "ssl.key.pem": PEM,
            "ssl.endpoint.identification.algorithm": "none",
        },
        Security(
            protocol="SSL",
            trust=Store(text=PEM),
            identity=Store(text=PEM),
            key=Store(text=PEM),
            check_hostname=False,
        ),
    ),
    "librdkafka, oidc": (
        {
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": "probe",
            "sasl.mechanisms": "OAUTHBEARER",
            "sasl.oauthbearer.method": "oidc",
            "sasl.oauthbearer.client.id": "me",
            "sasl.oauthbearer.client.secret": SECRET,
            "sasl.oauthbearer.scope": "kafka",
            "sasl.oauthbearer.token.endpoint.url": "https://issuer.example/token",
            "sasl.oauthbearer.extensions": "a=1,b=2",
        },
        Security(
            protocol="SASL_SSL",
            mechanism="OAUTHBEARER",
            token_endpoint="https://issuer.example/token",
            client_id="me",
            client_secret=SECRET,
            scope="kafka",
            extensions={"a": "1", "b": "2"},
        ),
    ),
    "kafka-python": (
        {
            "security_protocol": "SASL_SSL",
            "ssl_context": None,
            "ssl_cafile": "ca.pem",
            "ssl_certfile": "own.pem",
            "ssl_keyfile": "own.key",
            "ssl_password": SECRET,
            "ssl_check_hostname": False,
            "sasl_mechanism": "SCRAM-SHA-512",
            "sasl_plain_username": "alice",
            "sasl_plain_password": SECRET,
        },
        Security(
            protocol="SASL_SSL",
            trust=Store(path="ca.pem"),
            identity=Store(path="own.pem"),
            key=Store(path="own.key", password=SECRET),
            check_hostname=False,
            **PASSWORDS,
        ),
    ),
    "nothing": ({"ssl_cafile": None, "sasl.username": ""}, NO_SECURITY),
}


@pytest.mark.parametrize(("given", "expected"), DIALECTS.values(), ids=DIALECTS)
def test_each_dialect_becomes_one_value(given, expected):
    assert security_of(given) == expected


def test_names_count_the_same_with_dots_and_with_underscores():
    given, expected = DIALECTS["java, PEM"]
    assert security_of({name.replace(".", "_"): value for name, value in given.items()}) == expected


def test_every_name_stands_in_the_table_once():
    plain = [name.replace(".", "_") for name in SETTINGS]
    assert len(set(plain)) == len(plain)
    assert all(is_about_security(name) for name in SETTINGS)
    assert is_about_security("ssl.no.such")
    assert not is_about_security("client.id")


def test_a_context_of_the_caller_is_passed_on():
    context = ssl.create_default_context()
    given = {"security_protocol": "SSL", "ssl_context": context}
    assert security_of(given).context is context


class Provider:
    async def token(self):
        return "a.b.c"

    def extensions(self):
        return {"logicalCluster": "lkc-1"}


def test_a_token_provider_is_an_object_or_a_callable():
    common = {"security_protocol": "SASL_SSL", "sasl_mechanism": "OAUTHBEARER"}
    provider = Provider()
    found = security_of({**common, "sasl_oauth_token_provider": provider})
    assert found.token == provider.token
    assert found.extensions == {"logicalCluster": "lkc-1"}
    assert security_of({**common, "sasl_oauth_token_provider": lambda: "t"}).token() == "t"
    assert security_of({**common, "oauth_cb": lambda _config: ("t", 1.0)}).token() == "t"


@pytest.mark.parametrize(
    "given",
    [
        {
            "sasl.jaas.config": f"{JAVA}.oauthbearer.OAuthBearerLoginModule required"
            ' unsecuredLoginStringClaim_sub="alice" unsecuredLoginLifetimeSeconds="60";'
        },
        {
            "enable.sasl.oauthbearer.unsecure.jwt": "true",
            "sasl.oauthbearer.config": "principal=alice lifeSeconds=60",
        },
    ],
)
def test_tokens_for_tests_are_made_here(given):
    jwt = pytest.importorskip("jwt")
    common = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER"}
    token = security_of({**common, **given}).token()
    claims = jwt.decode(token, options={"verify_signature": False})
    assert (claims["sub"], claims["exp"] - claims["iat"]) == ("alice", 60)
    assert jwt.get_unverified_header(token) == {"alg": "none"}
    assert token.endswith(".")


def test_the_first_layer_counts_where_it_says_anything():
    near = {"sasl.password": "near", "ssl.ca.pem": PEM}
    far = {
        "security.protocol": "SASL_SSL",
        "ssl.truststore.location": "far.p12",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "alice",
        "sasl.password": "far",
    }
    found = security_of(near, far)
    assert (found.username, found.password, found.trust) == ("alice", "near", Store(text=PEM))


@pytest.mark.parametrize(
    ("near", "expected"),
    [
        ({"security.protocol": "PLAINTEXT"}, NO_SECURITY),
        ({"security.protocol": "SSL"}, Security(protocol="SSL", trust=Store(path="ca.pem"))),
        (
            {"sasl.mechanism": "PLAIN", "sasl.username": "bob", "sasl.password": "b"},
            Security(
                protocol="SASL_SSL",
                trust=Store(path="ca.pem"),
                mechanism="PLAIN",
                username="bob",
                password="b",
            ),
        ),
    ],
)
def test_a_later_layer_does_not_contradict_an_earlier_one(near, expected):
    far = {**DIALECTS["java, client credentials"][0], "ssl.ca.location": "ca.pem"}
    assert security_of(near, far) == expected


def test_variables_of_the_environment_are_a_dialect_too():
    given = {
        "KOHORT_SECURITY_PROTOCOL": "SASL_SSL",
        "KOHORT_SSL_CA_LOCATION": "ca.pem",
        "KOHORT_SASL_MECHANISM": "SCRAM-SHA-512",
        "KOHORT_SASL_USERNAME": "alice",
        "KOHORT_SASL_PASSWORD": SECRET,
    }
    assert security_of(given) == Security(
        protocol="SASL_SSL", trust=Store(path="ca.pem"), **PASSWORDS
    )
    with pytest.raises(ValueError, match="KOHORT_SASL_MECHANISM is GSSAPI"):
        check_settings({"KOHORT_SASL_MECHANISM": "GSSAPI"})


def test_what_a_layer_lacks_may_be_in_another_one():
    check_settings({"sasl.username": "alice"})


@pytest.mark.parametrize("name", ["sasl.password", "KOHORT_SSL_KEY_PASSWORD", "sasl.jaas.config"])
def test_a_secret_is_known_by_its_name(name):
    assert is_secret(name)
    assert not is_secret("sasl.username")


SASL = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}
USER = {**SASL, "sasl.username": "alice", "sasl.password": SECRET}
TLS = {"security.protocol": "SSL"}
OAUTH = {"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"}
REFUSED = {
    "unknown": ({"ssl.ca.loaction": "x"}, "ssl.ca.loaction", "did you mean 'ssl.ca.location'"),
    "protocol": ({"security.protocol": "TLS"}, "security.protocol is 'TLS'", "SASL_SSL"),
    "no text": ({**USER, "sasl.password": 5}, "sasl.password is of type int", "expected a text"),
    "store": ({**TLS, "ssl.truststore.type": "JCEKS"}, "ssl.truststore.type is 'JCEKS'", "PKCS12"),
    "no pem": ({**TLS, "ssl.keystore.key": SECRET}, "ssl.keystore.key is not PEM", "BEGIN"),
    "kerberos": ({"sasl.mechanism": "GSSAPI"}, "sasl.mechanism is GSSAPI", "SCRAM-SHA-512"),
    "kerberos name": ({"sasl_kerberos_service_name": "k"}, "sasl_kerberos_service_name", "GSSAPI"),
    "aws": ({"sasl.mechanism": "AWS_MSK_IAM"}, "sasl.mechanism is AWS_MSK_IAM", "token provider"),
    "aws module": (
        {"sasl.jaas.config": "software.amazon.msk.auth.iam.IAMLoginModule required;"},
        "sasl.jaas.config has IAMLoginModule",
        "aws-msk-iam-sasl-signer-python",
    ),
    "aws class": (
        {"sasl.login.callback.handler.class": "software.amazon.IAMClientCallbackHandler"},
        "sasl.login.callback.handler.class",
        "no class of Java",
    ),
    "module": (
        {"sasl.jaas.config": f'com.example.Login required password="{SECRET}";'},
        "sasl.jaas.config has login module 'com.example.Login'",
        "ScramLoginModule",
    ),
    "jaas": (
        {"sasl.jaas.config": f'{JAVA}.plain.PlainLoginModule required password="{SECRET}"'},
        "sasl.jaas.config",
        "semicolon",
    ),
    "jaas option": (
        {"sasl.jaas.config": f'{JAVA}.plain.PlainLoginModule required pasword="{SECRET}";'},
        "'pasword'",
        "username, password",
    ),
    "delegation": (
        {"sasl.jaas.config": f'{JAVA}.scram.ScramLoginModule required tokenauth="true";'},
        "tokenauth",
        "delegation tokens",
    ),
    "other module": (
        {**SASL, "sasl.jaas.config": scram()},
        "sasl.mechanism is PLAIN",
        "sasl.jaas.config has ScramLoginModule, which is for SCRAM-SHA-256 or SCRAM-SHA-512",
    ),
    "two users": (
        {
            **SASL,
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": "b",
            "sasl.jaas.config": scram(),
        },
        "sasl.username and sasl.jaas.config contradict",
        "give one",
    ),
    "two passwords": ({**USER, "sasl_plain_password": "x"}, "sasl.password", "contradict"),
    "two mechanisms": ({**USER, "sasl.mechanisms": "OAUTHBEARER"}, "sasl.mechanisms", "contradict"),
    "sasl on plain": (
        {"sasl.username": "alice"},
        "sasl.username is given, but security.protocol is PLAINTEXT, its default",
        "SASL_SSL",
    ),
    "sasl on ssl": ({**USER, **TLS}, "security.protocol is SSL:", "SASL_SSL or SASL_PLAINTEXT"),
    "tls on plain": ({**USER, "ssl_cafile": "ca.pem"}, "ssl_cafile is given", "SSL or SASL_SSL"),
    "no mechanism": ({"security.protocol": "SASL_SSL"}, "sasl.mechanism is missing", "PLAIN"),
    "no password": ({**SASL, "sasl.username": "alice"}, "no password", "sasl.password"),
    "no token": (OAUTH, "OAUTHBEARER", "sasl.oauthbearer.token.endpoint.url"),
    "no client": (
        {
            **OAUTH,
            "sasl.oauthbearer.token.endpoint.url": "https://x",
            "sasl.oauthbearer.client.id": "a",
        },
        "sasl.oauthbearer.token.endpoint.url",
        "sasl.oauthbearer.client.secret",
    ),
    "user and token": ({**OAUTH, "sasl.username": "alice"}, "sasl.username", "OAUTHBEARER"),
    "token and PLAIN": ({**USER, "sasl.oauthbearer.scope": "x"}, "scope", "PLAIN"),
    "provider": ({**OAUTH, "sasl_oauth_token_provider": SECRET}, "of type str", "callable"),
    "no principal": ({**OAUTH, "sasl.oauthbearer.config": "scope=x"}, "config", "principal=USER"),
    "not asked": ({**OAUTH, "sasl.oauthbearer.config": "principal=a"}, "config", "unsecure.jwt"),
    "context and file": (
        {**TLS, "ssl_context": ssl.create_default_context(), "ssl_cafile": "ca.pem"},
        "ssl_context and ssl_cafile",
        "the context",
    ),
    "no context": ({**TLS, "ssl_context": True}, "ssl_context is of type bool", "ssl.SSLContext"),
    "key alone": ({**TLS, "ssl_keyfile": "own.key"}, "ssl_keyfile", "certificate"),
    "key beside PKCS#12": (
        {**TLS, "ssl.keystore.location": "own.p12", "ssl.key.location": "own.key"},
        "ssl.key.location",
        "PKCS#12",
    ),
    "key beside JKS": (
        {**TLS, "ssl.keystore.location": "own.jks", "ssl.key.location": "own.key"},
        "ssl.key.location",
        "PKCS#12",
    ),
    "two store passwords": (
        {
            **TLS,
            "ssl.keystore.location": "own.p12",
            "ssl.keystore.password": SECRET,
            "ssl.key.password": "x",
        },
        "ssl.keystore.password and ssl.key.password differ",
        "one password",
    ),
    "only 1.3": ({**TLS, "ssl.enabled.protocols": "TLSv1.3"}, "ssl.enabled.protocols", "context"),
    "flag": ({**TLS, "ssl_check_hostname": "yes"}, "ssl_check_hostname is 'yes'", "true or false"),
    "algorithm": ({"ssl.endpoint.identification.algorithm": "ldap"}, "'ldap'", "https"),
}


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("KOHORT_SASL_FOO", ""),
        ("KOHORT_SASL_MECHANSIM", ", did you mean 'KOHORT_SASL_MECHANISM'?"),
        ("sasl.protocol", ""),
    ],
)
def test_a_suggestion_is_of_the_same_family_and_spelled_alike(name, hint):
    with pytest.raises(ValueError, match="unknown setting") as refused:
        security_of({name: "x"})
    assert str(refused.value) == f"unknown setting {name!r}{hint}"


@pytest.mark.parametrize(("given", "what", "expected"), REFUSED.values(), ids=REFUSED)
def test_what_is_not_followed_is_refused_in_one_line(given, what, expected):
    with pytest.raises(ValueError, match=r"\A[^\n]+\Z") as refusal:
        security_of(given)
    text = str(refusal.value)
    assert what in text
    assert expected in text
    assert SECRET not in text


@pytest.mark.parametrize("name", SETTINGS)
def test_every_setting_is_documented(name):
    page = (Path(__file__).parents[2] / "docs" / "security.md").read_text(encoding="utf-8")
    assert f"`{name}`" in page
