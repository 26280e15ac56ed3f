# SPDX-License-Identifier: Apache-2.0
"""`sasl.jaas.config`: a login module of Java and its options, read as upstream reads it.

    org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="p";

Here it only carries values: the name of the module says which mechanism they are for.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

from kohort.errors import KohortError

_CONTROL_FLAGS = ("required", "requisite", "sufficient", "optional")
_TOKEN = re.compile(
    r"""\s*(?:
        (?P<quoted>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
        | (?P<sign>[=;])
        | (?P<word>[^\s"'=;]+)
    )""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPED = re.compile(r"\\(?:([0-3][0-7]{0,2}|[4-7][0-7]?)|(.))", re.DOTALL)
_LETTERS = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


class JaasError(KohortError, ValueError):
    """The text is no such line. The message quotes no value of it: there are passwords in it."""


class LoginModule(NamedTuple):
    """The class of a login module and its options. The options have secrets, and are not shown."""

    name: str
    options: Mapping[str, str]

    def __repr__(self) -> str:
        return f"LoginModule({self.name!r}, {len(self.options)} options)"


def read_jaas(text: str) -> LoginModule:
    """The one login module of a text. Raises JaasError."""
    kinds, tokens = _tokens(text)
    if len(tokens) < 3 or kinds[0] != "word" or kinds[1] != "word":
        raise JaasError("expected a login module, a control flag, options, and a semicolon")
    name, flag = tokens[:2]
    if flag.lower() not in _CONTROL_FLAGS:
        raise JaasError(f"login module {name} has no control flag, expected `required` behind it")
    options: dict[str, str] = {}
    at = 2
    while at < len(tokens) and (kinds[at], tokens[at]) != ("sign", ";"):
        signs = kinds[at : at + 3]
        if len(signs) < 3 or signs[0] == "sign" or tokens[at + 1] != "=" or signs[2] == "sign":
            raise JaasError(
                f"option {len(options) + 1} of {name} is not key=value, or the semicolon at the end"
                " is missing"
            )
        options[tokens[at]] = tokens[at + 2]
        at += 3
    if at >= len(tokens):
        raise JaasError(f"login module {name} does not end, expected a semicolon")
    if at + 1 < len(tokens):
        raise JaasError(f"more follows behind login module {name}, expected one login module")
    return LoginModule(name, options)


def _tokens(text: str) -> tuple[list[str], list[str]]:
    kinds: list[str] = []
    tokens: list[str] = []
    at, end = 0, len(text.rstrip())
    while at < end:
        found = _TOKEN.match(text, at)
        if found is None:
            raise JaasError(f"a quote opens at {at} and does not close")
        kind = found.lastgroup or ""
        token = found[kind]
        kinds.append(kind)
        tokens.append(_ESCAPED.sub(_unescaped, token[1:-1]) if kind == "quoted" else token)
        at = found.end()
    return kinds, tokens


def _unescaped(match: re.Match[str]) -> str:
    """As Java's StreamTokenizer has it: octal digits, letters of C, and every other as it is."""
    octal, character = match.groups()
    return chr(int(octal, 8)) if octal else _LETTERS.get(character, character)
