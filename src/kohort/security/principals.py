# SPDX-License-Identifier: Apache-2.0
"""From the subject of a certificate to a principal: `ssl.principal.mapping.rules` (KIP-371).

A rule is `DEFAULT` or `RULE:pattern/replacement/`, with an L or a U behind it for small or capital
letters. Patterns are Java's: what Python has no word for is refused as the settings are read.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

from kohort.errors import KohortError

_RULE = r"(DEFAULT)|RULE:((\\.|[^\\/])*)/((\\.|[^\\/])*)/([LU]?).*?|(.*?)"
_SPLITTER = re.compile(rf"\s*({_RULE})\s*(,\s*|$)")
_PARSER = re.compile(_RULE)
_NAMED_GROUP = re.compile(r"\(\?<(?=[A-Za-z])")
_REFERENCE = re.compile(r"\\(.)|\$([0-9]+)|\$\{([A-Za-z][A-Za-z0-9]*)\}|([\\$])", re.DOTALL)
_CASES: dict[str, Callable[[str], str]] = {"": str, "L": str.lower, "U": str.upper}


class MappingRuleError(KohortError, ValueError):
    """The text is no list of rules."""


class NoMatchingRuleError(KohortError):
    """No rule is for this name: its certificate proves nobody."""


class _Rule(NamedTuple):
    pattern: re.Pattern[str]
    replacement: str
    case: str

    def apply(self, name: str) -> str | None:
        if self.pattern.fullmatch(name) is None:
            return None
        return _CASES[self.case](self.pattern.sub(self._replaced, name))

    def _replaced(self, match: re.Match[str]) -> str:
        groups = self.pattern.groups

        def part(reference: re.Match[str]) -> str:
            escaped, digits, group, _ = reference.groups()
            if escaped is not None:
                return str(escaped)
            if group is not None:
                return match[group] or ""
            for end in range(len(digits), 0, -1):
                if digits[0] != "0" and int(digits[:end]) <= groups:
                    return (match[int(digits[:end])] or "") + digits[end:]
            return match[0] + digits[1:] if digits[0] == "0" else f"${digits}"

        return _REFERENCE.sub(part, self.replacement)


class PrincipalMapping:
    """The rules of one listener. `str` of it is their text."""

    def __init__(self, text: str) -> None:
        """Raises MappingRuleError."""
        self._text = text
        self._rules: list[_Rule | None] = []  # None is DEFAULT
        for found in _SPLITTER.finditer(text.strip()):
            rule = found[1]
            if rule:
                self._rules.append(_parsed(rule))

    def __str__(self) -> str:
        return self._text

    def principal(self, subject: str) -> str:
        """The name of the user that a subject stands for. Raises NoMatchingRuleError."""
        for rule in self._rules:
            name = subject if rule is None else rule.apply(subject)
            if name is not None:
                return name
        raise NoMatchingRuleError(
            f"no rule of ssl.principal.mapping.rules applies to {subject!r}, expected one of"
            f" {self._text!r} to match it"
        )


def _parsed(text: str) -> _Rule | None:
    found = _PARSER.match(text)
    if found is None or found.end() != len(text):
        raise MappingRuleError(
            f"ssl.principal.mapping.rules has {text!r}, expected DEFAULT or"
            " RULE:pattern/replacement/, with L or U behind it for small or capital letters"
        )
    if found[1] is not None:
        return None
    try:
        pattern = re.compile(_NAMED_GROUP.sub("(?P<", found[2]), re.ASCII)  # as in Java
    except re.error as error:
        raise MappingRuleError(
            f"ssl.principal.mapping.rules has {text!r}, whose pattern is not understood: {error}"
        ) from None
    named = {reference[3] for reference in _REFERENCE.finditer(found[4]) if reference[3]}
    missing = named - pattern.groupindex.keys()
    if missing:
        raise MappingRuleError(
            f"ssl.principal.mapping.rules has {text!r}, whose replacement names group"
            f" {min(missing)!r}, expected one that the pattern has"
        )
    return _Rule(pattern, found[4], found[6])
