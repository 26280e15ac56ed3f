# SPDX-License-Identifier: Apache-2.0
"""Settings of other clients become one `Security`: Java, librdkafka, kafka-python, aiokafka.

`SETTINGS` has every name once, with what it means. A name counts the same with dots, with
underscores, and as a variable of the environment (`KOHORT_SASL_USERNAME`). Two names that mean the
same and say something else are refused, as is all that Kohort does not follow. No secret is in an
error.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from kohort.client import security_values as read
from kohort.security.names import MECHANISMS, OAUTHBEARER, PLAINTEXT
from kohort.security.settings import Security, Store

Meanings = dict[str, Any]
Reader = Callable[[str, Any], Meanings]

SETTINGS: dict[str, Reader] = {
    "security.protocol": read.protocol,
    # Whom the client trusts. A store of Java may be PEM or PKCS#12, all others are PEM.
    "ssl.truststore.location": read.path("trust"),
    "ssl.truststore.certificates": read.pem_text("trust"),
    "ssl.truststore.type": read.store_type("trust"),
    "ssl.truststore.password": read.text("trust_password"),
    "ssl.ca.location": read.authorities,
    "ssl.ca.pem": read.pem_text("trust"),
    "ssl_cafile": read.pem_path("trust"),
    "ssl_context": read.context,
    "ssl.endpoint.identification.algorithm": read.host_check,
    "ssl_check_hostname": read.flag("check_hostname"),
    "enable.ssl.certificate.verification": read.flag("verify"),
    # Its own certificate and key.
    "ssl.keystore.location": read.path("identity"),
    "ssl.keystore.certificate.chain": read.pem_text("identity"),
    "ssl.keystore.type": read.store_type("identity"),
    "ssl.keystore.password": read.text("identity_password"),
    "ssl.certificate.location": read.pem_path("identity"),
    "ssl.certificate.pem": read.pem_text("identity"),
    "ssl_certfile": read.pem_path("identity"),
    "ssl.keystore.key": read.pem_text("key"),
    "ssl.key.location": read.pem_path("key"),
    "ssl.key.pem": read.pem_text("key"),
    "ssl_keyfile": read.pem_path("key"),
    "ssl.key.password": read.text("key_password"),
    "ssl_password": read.text("key_password"),
    # Who it is.
    "sasl.mechanism": read.mechanism,
    "sasl.mechanisms": read.mechanism,
    "sasl.jaas.config": read.jaas,
    "sasl.username": read.text("username"),
    "sasl.password": read.text("password"),
    "sasl_plain_username": read.text("username"),
    "sasl_plain_password": read.text("password"),
    # Tokens.
    "sasl_oauth_token_provider": read.token_provider,
    "oauth_cb": read.token_callback,
    "sasl.oauthbearer.token.endpoint.url": read.text("token_endpoint"),
    "sasl.oauthbearer.client.id": read.text("client_id"),
    "sasl.oauthbearer.client.secret": read.text("client_secret"),
    "sasl.oauthbearer.client.credentials.client.id": read.text("client_id"),
    "sasl.oauthbearer.client.credentials.client.secret": read.text("client_secret"),
    "sasl.oauthbearer.scope": read.text("scope"),
    "sasl.oauthbearer.extensions": read.extensions,
    "sasl.oauthbearer.method": read.oauth_method,
    "sasl.oauthbearer.config": read.unsecured_config,
    "enable.sasl.oauthbearer.unsecure.jwt": read.flag("unsecured"),
    "sasl.login.callback.handler.class": read.login_handler,
    # What Kohort does anyway.
    "ssl.protocol": read.tls_versions,
    "ssl.enabled.protocols": read.tls_versions,
    **dict.fromkeys(
        (
            "sasl.login.refresh.window.factor",
            "sasl.login.refresh.window.jitter",
            "sasl.login.refresh.min.period.seconds",
            "sasl.login.refresh.buffer.seconds",
            "ssl.keymanager.algorithm",
            "ssl.trustmanager.algorithm",
        ),
        read.nothing,
    ),
}
VARIABLES = "KOHORT_"
_READERS = {name.replace(".", "_"): reader for name, reader in SETTINGS.items()}
_SECRETS = ("sasl_jaas_config", "ssl_keystore_key", "ssl_key_pem")
_PREFIXES = ("ssl_", "sasl_", "security_", "enable_ssl_", "enable_sasl_")
_KERBEROS = "sasl_kerberos_"

_TLS = ("context", "trust", "trust_password", "identity", "identity_password", "key")
_PASSWORDS = ("username", "password")
_TOKENS = ("token", "token_endpoint", "client_id", "client_secret", "scope", "extensions")
_SASL = ("mechanism", "login_module", *_PASSWORDS, *_TOKENS, "unsecured", "unsecured_config")


class _Meaning(NamedTuple):
    value: Any
    name: str
    """The setting that says so, as it was written."""
    layer: int


def is_about_security(name: str) -> bool:
    """Whether `security_of` takes this setting, or refuses it with a reason."""
    plain = _plain(name)
    return plain in _READERS or plain.startswith(_PREFIXES)


def variables() -> Iterator[str]:
    """All settings, as they are called in the environment."""
    return (f"{VARIABLES}{plain.upper()}" for plain in _READERS)


def is_secret(name: str) -> bool:
    """Whether this setting has a value that nobody else may see."""
    plain = _plain(name)
    return plain.endswith(("password", "secret")) or plain in _SECRETS


def check_settings(settings: Mapping[str, Any]) -> None:
    """Raises ValueError for what is wrong with these alone; others may have what is missing."""
    _meanings(settings, 0)


def security_of(*layers: Mapping[str, Any]) -> Security:
    """What settings of any dialect mean together.

    Of several layers the first counts where it says anything, as a command line counts before the
    environment: a later one has no say in what is not for the protocol and the mechanism that an
    earlier one names. A value that is None or empty says nothing. Files are not opened here.

    Raises:
        ValueError: for a name that is unknown, a value that makes no sense, settings that
            contradict each other, and settings that are missing. It names the setting.
    """
    meant: dict[str, _Meaning] = {}
    for number, layer in enumerate(layers):
        for meaning, found in _meanings(layer, number).items():
            meant.setdefault(meaning, found)
    _drop_overruled(meant)
    _check_protocol(meant)
    _check_stores(meant)
    _use_unsecured(meant)
    _check_mechanism(meant)
    value = {name: found.value for name, found in meant.items()}
    key = _store(value, "key", "PEM", value.get("key_password"))
    is_pem = value.get("identity_type", "PEM") == "PEM"
    identity_password = None if is_pem else value.get("identity_password")
    if key is None and identity_password is None:
        identity_password = value.get("key_password")
    plain = ("protocol", "context", "check_hostname", "verify", "mechanism", *_PASSWORDS, *_TOKENS)
    return Security(
        trust=_store(value, "trust", "PEM", value.get("trust_password")),
        identity=_store(value, "identity", "PEM", identity_password),
        key=key,
        **{name: value[name] for name in plain if name in value},
    )


def _plain(name: str) -> str:
    if name.startswith(VARIABLES):
        return name.removeprefix(VARIABLES).lower()
    return name.replace(".", "_")


def _meanings(layer: Mapping[str, Any], number: int) -> dict[str, _Meaning]:
    """What one layer says. Raises ValueError where it says two things."""
    meant: dict[str, _Meaning] = {}
    for name, given in layer.items():
        reader = _reader(name)
        if given is None or (given == "" and reader is not read.host_check):
            continue
        for meaning, value in reader(name, given).items():
            before = meant.setdefault(meaning, _Meaning(value, name, number))
            if before.value != value:
                raise ValueError(f"{before.name} and {name} contradict each other: give one")
    for store in ("trust", "identity"):
        if store in meant and f"{store}_type" not in meant:
            (_, path), name, _ = meant[store]
            meant[f"{store}_type"] = _Meaning(read.type_of_file(path), name, number)
    return meant


def _reader(name: str) -> Reader:
    plain = _plain(name)
    reader = _READERS.get(plain)
    if reader is not None:
        return reader
    if plain.startswith(_KERBEROS):
        raise ValueError(f"{name} is for Kerberos: {read.NO_KERBEROS}")
    family = next(prefix for prefix in _PREFIXES if plain.startswith(prefix))
    from difflib import get_close_matches  # noqa: PLC0415  (a hint is seldom)

    near = get_close_matches(plain, [one for one in _READERS if one.startswith(family)], n=1)
    if not near:
        raise ValueError(f"unknown setting {name!r}")
    spelled = next(one for one in SETTINGS if one.replace(".", "_") == near[0])
    meant = f"{VARIABLES}{near[0].upper()}" if name.startswith(VARIABLES) else spelled
    raise ValueError(f"unknown setting {name!r}, did you mean {meant!r}?")


def _first(meant: Mapping[str, _Meaning], meanings: Iterable[str]) -> str | None:
    """The name of a setting that has one of these meanings."""
    return next((meant[one].name for one in meanings if one in meant), None)


def _drop_overruled(meant: dict[str, _Meaning]) -> None:
    """A later layer does not contradict the protocol and the mechanism of an earlier one."""
    protocol, mechanism = meant.get("protocol"), meant.get("mechanism")
    dropped: list[tuple[_Meaning, Iterable[str]]] = []
    if protocol is not None:
        dropped += [(protocol, _TLS)] if "SSL" not in protocol.value else []
        dropped += [(protocol, _SASL)] if "SASL" not in protocol.value else []
    if mechanism is not None:
        is_token = mechanism.value == OAUTHBEARER
        dropped.append((mechanism, _PASSWORDS if is_token else _TOKENS))
        module = meant.get("login_module")
        if module is not None and mechanism.value not in read.LOGIN_MODULES[module.value]:
            dropped.append((mechanism, ("login_module",)))
    for ruling, meanings in dropped:
        for meaning in meanings:
            if meaning in meant and meant[meaning].layer > ruling.layer:
                del meant[meaning]


def _check_protocol(meant: dict[str, _Meaning]) -> None:
    protocol = meant["protocol"].value if "protocol" in meant else PLAINTEXT
    given = "" if "protocol" in meant else ", its default"
    for meanings, wanted in ((_TLS, "SSL"), (_SASL, "SASL_")):
        name = _first(meant, meanings)
        if name is not None and wanted not in protocol:
            expected = "SSL or SASL_SSL" if meanings is _TLS else "SASL_SSL or SASL_PLAINTEXT"
            raise ValueError(
                f"{name} is given, but security.protocol is {protocol}{given}: expected {expected}"
            )


def _check_stores(meant: dict[str, _Meaning]) -> None:
    own = ("trust", "identity", "key")
    if "context" in meant and (name := _first(meant, own)):
        raise ValueError(f"{meant['context'].name} and {name} are given: the context has it all")
    if "key" in meant and "identity" not in meant:
        raise ValueError(
            f"{meant['key'].name} is a key without a certificate, expected ssl.certificate.location"
            " too"
        )
    passwords = {
        meant[name].value for name in ("identity_password", "key_password") if name in meant
    }
    if "identity_type" in meant and meant["identity_type"].value != "PEM":
        if "key" in meant:
            raise ValueError(
                f"{meant['key'].name} and {meant['identity'].name} are given: a PKCS#12 store has"
                " its key in it"
            )
        if len(passwords) > 1:
            raise ValueError(
                f"{meant['identity_password'].name} and {meant['key_password'].name} differ: a"
                " PKCS#12 store has one password"
            )


def _use_unsecured(meant: dict[str, _Meaning]) -> None:
    """Tokens for tests need two settings of librdkafka."""
    asked, config = meant.get("unsecured"), meant.get("unsecured_config")
    if asked is not None and asked.value:
        if config is None:
            raise ValueError(f"{asked.name} needs sasl.oauthbearer.config, such as principal=alice")
        meant.setdefault("token", config)
    elif config is not None:
        raise ValueError(f"{config.name} needs enable.sasl.oauthbearer.unsecure.jwt=true")


def _check_mechanism(meant: dict[str, _Meaning]) -> None:
    """Raises ValueError for a mechanism without what it needs, or with what is for another one."""
    if "protocol" not in meant or "SASL" not in meant["protocol"].value:
        return
    found = meant.get("mechanism")
    if found is None:
        raise ValueError(f"sasl.mechanism is missing, expected one of {', '.join(MECHANISMS)}")
    mechanism, module = found.value, meant.get("login_module")
    if module is not None and mechanism not in read.LOGIN_MODULES[module.value]:
        fitting = " or ".join(read.LOGIN_MODULES[module.value])
        raise ValueError(
            f"{found.name} is {mechanism}, but {module.name} has {module.value}, which is for"
            f" {fitting}"
        )
    other = _first(meant, _PASSWORDS if mechanism == OAUTHBEARER else _TOKENS)
    if other is not None:
        raise ValueError(f"{other} is not for {found.name}={mechanism}")
    if mechanism != OAUTHBEARER:
        for meaning, what in (("username", "user"), ("password", "password")):
            if meaning not in meant:
                raise ValueError(
                    f"{found.name} is {mechanism}, but no {what} is given: expected"
                    f" sasl.{meaning}, sasl_plain_{meaning}, or {meaning}= in sasl.jaas.config"
                )
    elif "token" in meant:
        if "token_endpoint" in meant:
            raise ValueError(
                f"{meant['token'].name} and {meant['token_endpoint'].name} are given: tokens come"
                " from one of them"
            )
    elif "token_endpoint" not in meant:
        raise ValueError(
            f"{found.name} is {mechanism}, but nothing gives a token: expected"
            " sasl.oauthbearer.token.endpoint.url, or sasl_oauth_token_provider"
        )
    else:
        for meaning, name in (("client_id", "id"), ("client_secret", "secret")):
            if meaning not in meant:
                raise ValueError(
                    f"{meant['token_endpoint'].name} needs credentials: expected"
                    f" sasl.oauthbearer.client.{name}"
                )


def _store(value: Meanings, name: str, usual: str, password: str | None) -> Store | None:
    if name not in value:
        return None
    kind, content = value[name]
    return Store(type=value.get(f"{name}_type", usual), password=password, **{kind: content})
