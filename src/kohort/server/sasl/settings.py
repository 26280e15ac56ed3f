# SPDX-License-Identifier: Apache-2.0
"""How the clients of a listener authenticate, read from its settings.

The settings of a listener are a flat mapping, without the `listener.name.<name>.` in front. Those
of a mechanism have its name in front, as `scram-sha-256.sasl.jaas.config`; they win over those
without it.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from kohort.config import BROKER_SETTINGS, ConfigError
from kohort.security.jaas import JaasError, LoginModule, read_jaas
from kohort.security.names import MECHANISMS, OAUTHBEARER, PLAIN
from kohort.security.oauthbearer import CheckToken, OAuthBearerServer
from kohort.security.plain import PlainServer
from kohort.security.sasl import ServerMechanism
from kohort.security.scram_server import Decoy, ScramServer, StoredCredential
from kohort.security.signed_tokens import SignedTokens
from kohort.security.unsecured_tokens import UnsecuredTokens
from kohort.server.sasl.authentication import SaslListener
from kohort.server.sasl.key_source import KeySource

JAAS = "sasl.jaas.config"
HANDLER = "sasl.server.callback.handler.class"
ENABLED = "sasl.enabled.mechanisms"
KEYS_URL = "sasl.oauthbearer.jwks.endpoint.url"
MODULES = {PLAIN: "PlainLoginModule", OAUTHBEARER: "OAuthBearerLoginModule"}
UNSECURED = "OAuthBearerUnsecuredValidatorCallbackHandler"
SIGNED = "OAuthBearerValidatorCallbackHandler"
_USER = "user_"

LookUp = Callable[[str, str], StoredCredential | None]
"""Finds the credential of a user, by user and mechanism."""

MakeDecoy = Callable[[str], Decoy]
"""Makes the salts and iterations of a mechanism for users that do not exist."""


class SaslSettings:
    """The listener, what has to be fetched for it, and what is to be said of it at the start.

    Raises ConfigError for what is wrong: one line, without a secret.
    """

    def __init__(
        self,
        settings: Mapping[str, str],
        look_up: LookUp,
        decoy: MakeDecoy,
        new_id: Callable[[], bytes],
    ) -> None:
        """`new_id` gives 16 bytes that nobody can guess."""
        self.key_source: KeySource | None = None
        self.warnings: list[str] = []
        self._settings = settings
        self._look_up = look_up
        self._new_id = new_id
        self._decoy = decoy
        names = self._value("", ENABLED)
        for name in names or ("",):
            if name not in MECHANISMS:
                has = f"has {name!r}"
                if self._text("", ENABLED) is None:
                    has = f"is not set, and its default {name} is not available"
                raise ConfigError(f"{ENABLED} {has}, expected some of {', '.join(MECHANISMS)}")
        self.listener = SaslListener(
            {name: self._maker(name) for name in names},
            {name: self._value(name, "connections.max.reauth.ms") for name in names},
            self._value("", "sasl.server.max.receive.size"),
            self._value("", "connection.failed.authentication.delay.ms"),
        )

    def _maker(self, name: str) -> Callable[[], ServerMechanism]:
        module = self._login_module(name)
        if name == OAUTHBEARER:
            return partial(OAuthBearerServer, self._token_check(module))
        handler = self._settings.get(f"{name.lower()}.{HANDLER}")
        if handler:
            raise ConfigError(f"{HANDLER} of {name} is {handler!r}, and Kohort runs no Java class")
        if name == PLAIN:
            users = {} if module is None else module.options
            passwords = {
                option.removeprefix(_USER): password
                for option, password in users.items()
                if option.startswith(_USER)
            }
            if not passwords:
                raise ConfigError(
                    f"PLAIN has no users, expected {JAAS} with a PlainLoginModule and options"
                    ' user_<name>="<password>"'
                )
            return lambda: PlainServer(passwords)  # it is shown without them
        look_up = partial(self._look_up_of, name)
        return lambda: ScramServer(name, look_up, self._nonce(), self._decoy(name))

    def _nonce(self) -> str:
        return self._new_id().hex()

    def _look_up_of(self, mechanism: str, user: str) -> StoredCredential | None:
        return self._look_up(user, mechanism)

    def _token_check(self, module: LoginModule | None) -> CheckToken:
        options = {} if module is None else module.options
        handler = (self._text(OAUTHBEARER, HANDLER) or "").rpartition(".")[2]
        if handler not in ("", SIGNED, UNSECURED):
            raise ConfigError(
                f"{HANDLER} of OAUTHBEARER is {handler!r}, expected {SIGNED} or {UNSECURED}"
            )
        url = self._text(OAUTHBEARER, KEYS_URL)
        is_unsecured = handler == UNSECURED or any(one.startswith("unsecured") for one in options)
        if url is None and handler != SIGNED and is_unsecured:
            self.warnings.append(
                "OAUTHBEARER takes tokens that nobody has signed: whoever reaches the listener can"
                " be anybody. This is for tests"
            )
            return self._unsecured(options).check
        if url is None:
            raise ConfigError(
                f"OAUTHBEARER has no keys to check tokens with, expected {KEYS_URL}"
                f" (or, for tests, {HANDLER}={UNSECURED})"
            )
        return self._signed(url).check

    @staticmethod
    def _unsecured(options: Mapping[str, str]) -> UnsecuredTokens:
        skew = options.get("unsecuredValidatorAllowableClockSkewMs", "0")
        if not (skew.isascii() and skew.isdigit()):
            raise ConfigError(
                f"unsecuredValidatorAllowableClockSkewMs is {skew!r}, expected milliseconds"
            )
        return UnsecuredTokens(
            options.get("unsecuredValidatorPrincipalClaimName") or "sub",
            options.get("unsecuredValidatorScopeClaimName") or "scope",
            options.get("unsecuredValidatorRequiredScope", "").split(),
            int(skew),
        )

    def _signed(self, url: str) -> SignedTokens:
        name = OAUTHBEARER
        source = self.key_source = KeySource(
            url,
            refresh_ms=self._value(name, "sasl.oauthbearer.jwks.endpoint.refresh.ms"),
            backoff_ms=self._value(name, "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms"),
            backoff_max_ms=self._value(name, "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms"),
        )
        self.warnings += source.warnings
        return SignedTokens(
            lambda: source.keys,
            source.want,
            self._value(name, "sasl.oauthbearer.expected.issuer"),
            self._value(name, "sasl.oauthbearer.expected.audience"),
            1000 * self._value(name, "sasl.oauthbearer.clock.skew.seconds"),
            self._value(name, "sasl.oauthbearer.scope.claim.name"),
            self._value(name, "sasl.oauthbearer.sub.claim.name"),
        )

    def _login_module(self, name: str) -> LoginModule | None:
        """The login module of a mechanism; None where the settings have one of another."""
        own = f"{name.lower()}.{JAAS}"
        text = self._text(name, JAAS)
        if text is None:
            return None
        try:
            module = read_jaas(text)
        except JaasError as error:
            raise ConfigError(f"{own if own in self._settings else JAAS}: {error}") from None
        expected = MODULES.get(name, "ScramLoginModule")
        if module.name.rpartition(".")[2] == expected:
            return module
        if own in self._settings:
            raise ConfigError(f"{own} has {module.name}, expected {expected}")
        return None

    def _text(self, mechanism: str, name: str) -> str | None:
        text = self._settings.get(f"{mechanism.lower()}.{name}", self._settings.get(name))
        return text or None

    def _value(self, mechanism: str, name: str) -> Any:
        """A setting, as it is where it is not given. Raises ConfigError."""
        return BROKER_SETTINGS[name].parse_or_default(self._text(mechanism, name))
