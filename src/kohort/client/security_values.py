# SPDX-License-Identifier: Apache-2.0
"""How the value of a setting about security is read, whatever dialect it is written in.

A reader takes the setting's name and value and returns what they mean: names of `Security`'s
fields, and of parts of its stores, with their values. Raises ValueError, which shows a value only
where that is no secret.
"""

import base64
import os
from collections.abc import Callable, Mapping
from ssl import SSLContext
from typing import Any

from msgspec.json import encode

from kohort.escaping import visible
from kohort.security.jaas import JaasError, LoginModule, read_jaas
from kohort.security.names import (
    MECHANISMS,
    OAUTHBEARER,
    PLAIN,
    PROTOCOLS,
    SCRAM_SHA_256,
    SCRAM_SHA_512,
    TLS_VERSIONS,
)
from kohort.security.settings import TokenProvider

Reader = Callable[[str, Any], dict[str, Any]]

LOGIN_MODULES = {
    "PlainLoginModule": (PLAIN,),
    "ScramLoginModule": (SCRAM_SHA_256, SCRAM_SHA_512),
    "OAuthBearerLoginModule": (OAUTHBEARER,),
}
NO_KERBEROS = f"Kohort has no GSSAPI, expected one of {', '.join(MECHANISMS)}"
_NO_CLASS = (
    "Kohort runs no class of Java, expected OAUTHBEARER with a token provider "
    "(sasl_oauth_token_provider); AWS has one in the package aws-msk-iam-sasl-signer-python"
)
_LOGIN_HANDLERS = ("OAuthBearerLoginCallbackHandler", "OAuthBearerUnsecuredLoginCallbackHandler")
_FLAGS = {"true": True, "false": False}
_UNSECURED = "unsecuredLogin"
_UNSECURED_CLAIM = f"{_UNSECURED}StringClaim_"
_UNSECURED_LIFETIME = f"{_UNSECURED}LifetimeSeconds"
_EXTENSION = "extension_"
_TOKEN_SECONDS = 3600
_CREDENTIALS = {"clientId": "client_id", "clientSecret": "client_secret", "scope": "scope"}


def text(meaning: str) -> Reader:
    """A text, which no error shows."""
    return lambda name, value: {meaning: _text(name, value)}


def path(store: str) -> Reader:
    """A file of certificates whose type is said elsewhere, or seen from its name."""
    return lambda name, value: {store: ("path", _path(name, value))}


def pem_path(store: str) -> Reader:
    """A file in PEM."""
    return lambda name, value: {store: ("path", _path(name, value)), f"{store}_type": "PEM"}


def pem_text(store: str) -> Reader:
    """PEM itself."""

    def reader(name: str, value: Any) -> dict[str, Any]:
        content = _text(name, value)
        if "-----BEGIN " not in content:
            raise ValueError(f"{name} is not PEM, expected a text with -----BEGIN in it")
        return {store: ("text", content), f"{store}_type": "PEM"}

    return reader


def authorities(name: str, value: Any) -> dict[str, Any]:
    """The word of librdkafka for the authorities of the system is `probe`."""
    return {} if value == "probe" else pem_path("trust")(name, value)


def store_type(store: str) -> Reader:
    """PEM or PKCS12; or JKS, by which Java opens PKCS#12 as well. What the file is shows when it is
    opened.
    """

    def reader(name: str, value: Any) -> dict[str, Any]:
        found = _text(name, value).upper()
        if found not in ("PEM", "PKCS12", "JKS"):
            raise ValueError(f"{name} is {_shown(value)}, expected PEM or PKCS12")
        return {f"{store}_type": found}

    return reader


def type_of_file(path: str) -> str:
    """The type of a store of Java whose type is not given. Java's default is JKS, which opens
    PKCS#12 as well; here a store is a PEM unless its name says something else.
    """
    ending = os.path.splitext(path)[1].lower()  # noqa: PTH122  (pathlib is slow to import)
    if ending == ".jks":
        return "JKS"
    return "PKCS12" if ending in (".p12", ".pfx", ".pkcs12") else "PEM"


def protocol(name: str, value: Any) -> dict[str, Any]:
    """In any case, as librdkafka writes it small."""
    found = _text(name, value).upper()
    if found not in PROTOCOLS:
        raise ValueError(f"{name} is {_shown(value)}, expected one of {', '.join(PROTOCOLS)}")
    return {"protocol": found}


def host_check(name: str, value: Any) -> dict[str, Any]:
    """`https` checks host names; nothing, or librdkafka's `none`, does not."""
    if not isinstance(value, str) or value.lower() not in ("https", "", "none"):
        raise ValueError(f"{name} is {_shown(value)}, expected https, or nothing for no check")
    return {"check_hostname": value.lower() == "https"}


def flag(meaning: str) -> Reader:
    """True or false, or these words."""

    def reader(name: str, value: Any) -> dict[str, Any]:
        found = _FLAGS.get(value.lower()) if isinstance(value, str) else value
        if not isinstance(found, bool):
            raise ValueError(f"{name} is {_shown(value)}, expected true or false")  # noqa: TRY004  (a value, as all)
        return {meaning: found}

    return reader


def context(name: str, value: Any) -> dict[str, Any]:
    """A context of the caller's own."""
    if not isinstance(value, SSLContext):
        raise ValueError(f"{name} is of type {type(value).__name__}, expected an ssl.SSLContext")  # noqa: TRY004  (a value, as all)
    return {"context": value}


def mechanism(name: str, value: Any) -> dict[str, Any]:
    """One that Kohort has."""
    found = _text(name, value).upper()
    if found == "GSSAPI":
        raise ValueError(f"{name} is GSSAPI: {NO_KERBEROS}")
    if found == "AWS_MSK_IAM":
        raise ValueError(f"{name} is AWS_MSK_IAM: {_NO_CLASS}")
    if found not in MECHANISMS:
        raise ValueError(f"{name} is {_shown(value)}, expected one of {', '.join(MECHANISMS)}")
    return {"mechanism": found}


def tls_versions(name: str, value: Any) -> dict[str, Any]:
    """Fewer versions than both would be a wish that is not followed."""
    found = {part.strip() for part in _text(name, value).split(",")}
    both = {"TLSv1.2", "TLSv1.3"}
    if not found <= {"TLS", *TLS_VERSIONS} or ("enabled" in name and found != both):
        raise ValueError(
            f"{name} is {_shown(value)}: Kohort speaks TLSv1.2 and TLSv1.3, and an ssl_context of"
            " your own can speak less"
        )
    return {}


def nothing(_name: str, _value: Any) -> dict[str, Any]:
    """A setting of how Java does something that Kohort does by itself."""
    return {}


def jaas(name: str, value: Any) -> dict[str, Any]:
    """`sasl.jaas.config`: a login module and its options."""
    try:
        module = read_jaas(_text(name, value))
    except JaasError as error:
        raise ValueError(f"{name}: {error}") from None
    short = module.name.rpartition(".")[2]
    if short == "Krb5LoginModule":
        raise ValueError(f"{name} has {short}: {NO_KERBEROS}")
    if short == "IAMLoginModule":
        raise ValueError(f"{name} has {short}: {_NO_CLASS}")
    if short not in LOGIN_MODULES:
        expected = ", ".join(LOGIN_MODULES)
        raise ValueError(f"{name} has login module {_shown(module.name)}, expected {expected}")
    read = _token_options if short == "OAuthBearerLoginModule" else _password_options
    return {"login_module": short, **read(name, module)}


def _password_options(name: str, module: LoginModule) -> dict[str, Any]:
    if module.options.get("tokenauth", "false").lower() != "false":
        raise ValueError(f"{name} has tokenauth: Kohort has no delegation tokens")
    known = ("username", "password", "tokenauth")
    for option in module.options:
        if option not in known:
            raise _unknown_option(name, option, "username, password")
    return {
        option: text for option, text in module.options.items() if text and option != "tokenauth"
    }


def _token_options(name: str, module: LoginModule) -> dict[str, Any]:
    meant: dict[str, Any] = {}
    claims: dict[str, Any] = {}
    lifetime_s = _TOKEN_SECONDS
    extensions: dict[str, str] = {}
    for option, value in module.options.items():
        if option in _CREDENTIALS:
            meant |= {_CREDENTIALS[option]: value} if value else {}
        elif option.startswith(_EXTENSION):
            extensions[option.removeprefix(_EXTENSION)] = value
        elif option.startswith(_UNSECURED_CLAIM):
            claims[option.removeprefix(_UNSECURED_CLAIM)] = value
        elif option == _UNSECURED_LIFETIME:
            lifetime_s = _seconds(f"{option} in {name}", value)
        else:
            known = f"{', '.join(_CREDENTIALS)}, {_EXTENSION}*, {_UNSECURED_CLAIM}*"
            raise _unknown_option(name, option, f"{known}, {_UNSECURED_LIFETIME}")
    if claims:
        if not claims.get("sub"):
            raise ValueError(f"{name} has claims without {_UNSECURED_CLAIM}sub, expected the user")
        meant["token"] = unsecured_tokens(claims, lifetime_s)
    if extensions:
        meant["extensions"] = extensions
    return meant


def _unknown_option(name: str, option: str, expected: str) -> ValueError:
    return ValueError(f"{name} has the unknown option {_shown(option)}, expected {expected}")


def login_handler(name: str, value: Any) -> dict[str, Any]:
    """A class of Java: those of Kafka do what Kohort does."""
    if _text(name, value).rpartition(".")[2] not in _LOGIN_HANDLERS:
        raise ValueError(f"{name} is {_shown(value)}: {_NO_CLASS}")
    return {}


def token_provider(name: str, value: Any) -> dict[str, Any]:
    """An object with `token()`, and perhaps `extensions()`, or a callable that gives a token."""
    token = getattr(value, "token", value)
    if not callable(token):
        raise ValueError(  # noqa: TRY004  (a value, as all)
            f"{name} is of type {type(value).__name__}, expected a callable or an object with "
            "token()"
        )
    more = getattr(value, "extensions", None)
    given = more() if callable(more) else {}
    if not isinstance(given or {}, Mapping):
        kind = type(given).__name__
        raise ValueError(f"{name}.extensions() is of type {kind}, expected a mapping")  # noqa: TRY004  (a value, as all)
    return {"token": token, **({"extensions": dict(given)} if given else {})}


def token_callback(name: str, value: Any) -> dict[str, Any]:
    """The one of confluent-kafka takes a text of settings, and gives a token and its end."""
    if not callable(value):
        raise ValueError(f"{name} is of type {type(value).__name__}, expected a callable")  # noqa: TRY004  (a value, as all)
    return {"token": lambda: value("")[0]}


def extensions(name: str, value: Any) -> dict[str, Any]:
    """`key=value,key=value`, as librdkafka has it."""
    return {"extensions": _pairs(name, _text(name, value), ",")}


def oauth_method(name: str, value: Any) -> dict[str, Any]:
    """Which way librdkafka gets its tokens: the other settings say so, too."""
    if _text(name, value).lower() not in ("default", "oidc"):
        raise ValueError(f"{name} is {_shown(value)}, expected default or oidc")
    return {}


def unsecured_config(name: str, value: Any) -> dict[str, Any]:
    """`principal=alice lifeSeconds=60`: librdkafka's tokens that nobody has signed."""
    given = _pairs(name, _text(name, value), None)
    user = given.pop("principal", "")
    lifetime_s = _seconds(f"lifeSeconds in {name}", given.pop("lifeSeconds", str(_TOKEN_SECONDS)))
    if not user or given:
        raise ValueError(f"{name} has other words, expected principal=USER lifeSeconds=SECONDS")
    return {"unsecured_config": unsecured_tokens({"sub": user}, lifetime_s)}


def unsecured_tokens(claims: Mapping[str, Any], lifetime_s: int) -> TokenProvider:
    """Tokens that nobody has signed, for tests: JWS with `alg` none (RFC 7515, A.5)."""

    def token() -> str:
        # Here alone, as asyncio comes with it: a shell that completes a word does not wait for it.
        from kohort.client.network.environment import environment  # noqa: PLC0415

        now_s = int(environment().clock.time())
        payload = {**claims, "iat": now_s, "exp": now_s + lifetime_s}
        return f"{_part({'alg': 'none'})}.{_part(payload)}."

    return token


def _part(content: Mapping[str, Any]) -> str:
    return base64.urlsafe_b64encode(encode(content)).rstrip(b"=").decode()


def _pairs(name: str, given: str, separator: str | None) -> dict[str, str]:
    pairs = [part.partition("=") for part in given.split(separator)]
    if not all(key.strip() and found for key, found, _ in pairs):
        raise ValueError(f"{name} is not a list of key=value")
    return {key.strip(): value for key, _, value in pairs}


def _seconds(name: str, value: str) -> int:
    if not (value.isascii() and value.isdigit() and 0 < int(value) <= 10**9):
        raise ValueError(f"{name} is {_shown(value)}, expected a number of seconds")
    return int(value)


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{name} is of type {type(value).__name__}, expected a text")  # noqa: TRY004  (a value, as all)
    return value


def _path(name: str, value: Any) -> str:
    return _text(name, os.fspath(value) if isinstance(value, os.PathLike) else value)


def _shown(value: Any) -> str:
    shown = visible(repr(value))
    return shown if len(shown) <= 60 else f"{shown[:57]}..."
