# SPDX-License-Identifier: Apache-2.0
"""What a client needs to connect to a broker under test, in the names that its users know."""

from typing import Any, NamedTuple

from kohort.errors import KohortError
from kohort.security.names import OAUTHBEARER, PLAIN, PLAINTEXT, SSL
from kohort.security.settings import Store
from kohort.security.stores import client_context
from kohort.testing.arguments import check_choice
from kohort.testing.security import JAAS, SASL, TLS, ListenerSecurity, jaas_line

__tracebackhide__ = True
CLIENTS = ("librdkafka", "java", "python")


class Login(NamedTuple):
    """Who a client is, and by which protocol. What is None is chosen."""

    protocol: str
    user: str | None
    password: str | None
    mechanism: str | None


def client_settings(
    client: str, bootstrap: str, login: Login, security: ListenerSecurity | None
) -> dict[str, Any]:
    """See `Broker.client_settings`; `security` is None for a broker of plain text."""
    protocol = login.protocol
    if protocol not in SASL and (login.mechanism, login.password) != (None, None):
        raise KohortError(
            f"a mechanism or a password is given for {protocol}, expected neither: it has no SASL"
        )
    if protocol == PLAINTEXT and login.user is not None:
        raise KohortError(f"user is {login.user!r}, expected none: {PLAINTEXT} knows no users")
    found = _Dialect(client)
    found.add("bootstrap.servers", bootstrap)
    if security is not None:
        found.add("security.protocol", protocol)
        if protocol in TLS:
            _add_tls(found, security, login.user if protocol == SSL else None)
        if protocol in SASL:
            _add_login(found, security, login)
    return found.settings


def _add_tls(found: "_Dialect", security: ListenerSecurity, user: str | None) -> None:
    authority = security.authority
    assert authority is not None
    if security.has_keystore:
        raise KohortError(
            "the settings have a keystore of yours (ssl.keystore.*), expected that you write the"
            " settings of its clients as well"
        )
    identity = None if user is None else authority.client(user)
    if found.client == "python":
        found.settings["ssl_context"] = client_context(
            trust=Store(text=authority.pem),
            identity=None if identity is None else Store(path=identity.keystore_file),
        )
    elif found.client == "java":
        found.add("ssl.truststore.type", "PEM")
        found.add("ssl.truststore.location", authority.ca_file)
        if identity is not None:
            found.add("ssl.keystore.type", "PEM")
            found.add("ssl.keystore.location", identity.keystore_file)
    else:
        found.add("ssl.ca.location", authority.ca_file)
        if identity is not None:
            found.add("ssl.certificate.location", identity.certificate_file)
            found.add("ssl.key.location", identity.key_file)


def _add_login(found: "_Dialect", security: ListenerSecurity, login: Login) -> None:
    offered = security.mechanisms(login.protocol)
    mechanism = login.mechanism
    if mechanism is None:
        mechanism = PLAIN if PLAIN in offered else offered[0]
    check_choice("mechanism", mechanism, offered)
    user = next(iter(security.users)) if login.user is None else login.user
    if mechanism == OAUTHBEARER:
        found.add_unsecured_token(user)
        return
    password = login.password
    if password is None:
        check_choice("user", user, security.users)
        password = security.users[user]
    found.add_password(mechanism, user, password)


class _Dialect:
    """Settings in the names of one kind of clients."""

    def __init__(self, client: str) -> None:
        self.client = client
        self.settings: dict[str, Any] = {}

    def add(self, name: str, value: str) -> None:
        key = name.replace(".", "_") if self.client == "python" else name
        self.settings[key] = value

    def add_password(self, mechanism: str, user: str, password: str) -> None:
        if self.client == "java":
            self.add("sasl.mechanism", mechanism)
            self.add(JAAS, jaas_line(mechanism, username=user, password=password))
        elif self.client == "librdkafka":
            self.add("sasl.mechanisms", mechanism)
            self.add("sasl.username", user)
            self.add("sasl.password", password)
        else:
            self.add("sasl.mechanism", mechanism)
            self.add("sasl.plain.username", user)
            self.add("sasl.plain.password", password)

    def add_unsecured_token(self, user: str) -> None:
        if self.client == "java":
            self.add("sasl.mechanism", OAUTHBEARER)
            self.add(JAAS, jaas_line(OAUTHBEARER, unsecuredLoginStringClaim_sub=user))
        elif self.client == "librdkafka":
            self.add("sasl.mechanisms", OAUTHBEARER)
            self.add("enable.sasl.oauthbearer.unsecure.jwt", "true")
            self.add("sasl.oauthbearer.config", f"principal={user}")
        else:
            raise KohortError(
                "clients in Python take tokens of OAUTHBEARER from a provider of yours"
                " (sasl_oauth_token_provider), expected another mechanism or client here"
            )
