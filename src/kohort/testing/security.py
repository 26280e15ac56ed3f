# SPDX-License-Identifier: Apache-2.0
"""TLS and SASL of a broker under test: what its listeners ask of clients.

`kohort.testing` itself has a listener of its own, with a user whom nobody else knows and who may do
everything. So whatever a test demands of its clients, the calls of the broker go on.
"""

from collections.abc import Iterable, Mapping, Sequence
from random import SystemRandom
from typing import TYPE_CHECKING, Any

from kohort.config import BrokerConfig
from kohort.config.listeners import client_listeners, listener_text
from kohort.errors import KohortError
from kohort.security.names import (
    MECHANISMS,
    OAUTHBEARER,
    PLAIN,
    PROTOCOLS,
    SASL_PLAINTEXT,
    SASL_SSL,
    SSL,
)
from kohort.security.settings import Security
from kohort.server.secure_listeners import check_security
from kohort.testing.arguments import check_mapping

if TYPE_CHECKING:
    from kohort.testing.authority import Authority

__tracebackhide__ = True
OWN_LISTENER = "TESTING"
OWN_USER = "kohort.testing"
USERS = {"alice": "alice-secret"}  # where a test names none
_OFFERED = (PLAIN, "SCRAM-SHA-256", "SCRAM-SHA-512")
_SCRAM = "SCRAM-"
TLS, SASL = (SSL, SASL_SSL), (SASL_PLAINTEXT, SASL_SSL)
_KEYSTORE, _TRUSTSTORE, JAAS = "ssl.keystore.", "ssl.truststore.", "sasl.jaas.config"
_ENABLED, _CLIENT_AUTH = "sasl.enabled.mechanisms", "ssl.client.auth"
_MAP, _SUPER = "listener.security.protocol.map", "super.users"
_MODULES = "org.apache.kafka.common.security"
_LOGIN_MODULES = {
    PLAIN: f"{_MODULES}.plain.PlainLoginModule",
    OAUTHBEARER: f"{_MODULES}.oauthbearer.OAuthBearerLoginModule",
}
_SCRAM_MODULE = f"{_MODULES}.scram.ScramLoginModule"
_CHANCE = SystemRandom()  # nobody has seeded it


class ListenerSecurity:
    """The listeners of a broker under test, one for each protocol and named as that, and the
    broker's own. `settings` are the broker's, with those that were given.
    """

    def __init__(
        self,
        security: str | Sequence[str],
        users: Mapping[str, str] | None,
        given: Mapping[str, str],
    ) -> None:
        """Raises KohortError for a wrong argument, and where certificates are wanted and cannot be
        made.
        """
        self.protocols = _checked_protocols(security)
        self.users = _checked_users(users, self.protocols)
        self.listeners = (*self.protocols, OWN_LISTENER)
        self.own = Security(
            protocol=SASL_PLAINTEXT,
            mechanism=PLAIN,
            username=OWN_USER,
            password=f"{_CHANCE.getrandbits(128):032x}",
        )
        self.authority: Authority | None = None
        self.has_keystore = _names(given, _KEYSTORE)  # of the test's own
        self.settings = dict(given)
        self._add_own_listener()
        if any(protocol in TLS for protocol in self.protocols):
            self._add_certificates()
        for protocol in self.protocols:
            if protocol in SASL:
                self._add_mechanisms(protocol)

    def __repr__(self) -> str:
        return f"<security of {', '.join(self.protocols)}>"

    def check(self) -> None:
        """Raises ConfigError for settings with which no broker would start."""
        listeners = ",".join(listener_text("127.0.0.1", 0, name) for name in self.listeners)
        config = BrokerConfig.of({**self.settings, "listeners": listeners})
        check_security(config, client_listeners(config), None)

    def _add_own_listener(self) -> None:
        own = f"listener.name.{OWN_LISTENER.lower()}."
        before = self.settings.get(_MAP)
        self.settings |= {
            _MAP: ",".join([*([before] if before else []), f"{OWN_LISTENER}:{SASL_PLAINTEXT}"]),
            f"{own}{_ENABLED}": PLAIN,
            f"{own}plain.{JAAS}": _users_of_plain({OWN_USER: self.own.password or ""}),
        }
        if self.settings.get("authorizer.class.name"):
            others = self.settings.get(_SUPER)
            self.settings[_SUPER] = ";".join([*([others] if others else []), f"User:{OWN_USER}"])

    def _add_certificates(self) -> None:
        from kohort.testing.authority import Authority  # noqa: PLC0415  (an extra makes them)

        authority = self.authority = Authority()
        if not self.has_keystore:
            identity = authority.server()
            self.settings["ssl.keystore.key"] = identity.key
            self.settings["ssl.keystore.certificate.chain"] = identity.certificate
        if not _names(self.settings, _TRUSTSTORE):
            self.settings["ssl.truststore.certificates"] = authority.pem
        if SSL in self.protocols and not _names(self.settings, _CLIENT_AUTH):
            self.settings[f"listener.name.{SSL.lower()}.{_CLIENT_AUTH}"] = "requested"

    def _add_mechanisms(self, protocol: str) -> None:
        self.settings.setdefault(_ENABLED, ",".join(_OFFERED))
        prefix = f"listener.name.{protocol.lower()}."
        lines = {
            PLAIN: _users_of_plain(self.users),
            OAUTHBEARER: jaas_line(OAUTHBEARER, unsecuredLoginStringClaim_sub=OWN_USER),
        }
        for mechanism in self.mechanisms(protocol):
            own = f"{prefix}{mechanism.lower()}.{JAAS}"
            names = (JAAS, f"{prefix}{JAAS}", own)
            if mechanism in lines and not any(name in self.settings for name in names):
                self.settings[own] = lines[mechanism]

    def mechanisms(self, protocol: str) -> tuple[str, ...]:
        """Those that a listener offers."""
        own = f"listener.name.{protocol.lower()}.{_ENABLED}"
        text = self.settings.get(own, self.settings.get(_ENABLED, ""))
        return tuple(name.strip() for name in text.split(",") if name.strip())

    @property
    def scram_mechanisms(self) -> list[str]:
        """Those for which users are to be made once the broker runs."""
        offered = [
            name
            for protocol in self.protocols
            if protocol in SASL
            for name in self.mechanisms(protocol)
        ]
        return [name for name in MECHANISMS if name.startswith(_SCRAM) and name in offered]

    def close(self) -> None:
        """Remove the files of certificates."""
        if self.authority is not None:
            self.authority.close()


def _checked_protocols(security: Any) -> tuple[str, ...]:
    several = not isinstance(security, str) and isinstance(security, Iterable)
    protocols: tuple[Any, ...] = tuple(security) if several else (security,)
    known = [protocol for protocol in PROTOCOLS if protocol in protocols]
    if not protocols or len(known) < len(protocols):
        raise KohortError(
            f"security is {security!r}, expected one of {', '.join(PROTOCOLS)}, or several of them"
            " in a list"
        )
    return protocols


def _checked_users(users: object, protocols: Sequence[str]) -> dict[str, str]:
    """The users and their passwords. No message has a password in it."""
    if not any(protocol in SASL for protocol in protocols):
        if users is not None:
            raise KohortError(
                f"users stand beside security {', '.join(protocols)}, expected one with SASL"
            )
        return {}
    if users is None:
        return dict(USERS)
    if not isinstance(users, Mapping):
        raise KohortError(f"users is a {type(users).__name__}, expected a dict")
    check_mapping("users", dict.fromkeys(users))
    if not users:
        raise KohortError("users is empty, expected one at least, or None for the user alice")
    for name, password in users.items():
        if name == OWN_USER or not name or not name.isprintable():
            raise KohortError(
                f"users has the name {name!r}, expected a printable one that is not {OWN_USER}"
            )
        if not isinstance(password, str) or not password or not password.isprintable():
            raise KohortError(f"the password of {name} is none, expected a printable text")
    return dict(users)


def _names(settings: Mapping[str, str], own: str) -> bool:
    """Whether they have a setting that begins so, for all listeners or for one."""
    return any(name.startswith(own) or f".{own}" in name for name in settings)


def _users_of_plain(users: Mapping[str, str]) -> str:
    return jaas_line(PLAIN, **{f"user_{name}": password for name, password in users.items()})


def jaas_line(mechanism: str, **options: str) -> str:
    """A line of JAAS."""
    shown = "".join(
        f" {name if name.isascii() and name.isidentifier() else _quoted(name)}={_quoted(text)}"
        for name, text in options.items()
    )
    return f"{_LOGIN_MODULES.get(mechanism, _SCRAM_MODULE)} required{shown};"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
