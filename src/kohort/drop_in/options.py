# SPDX-License-Identifier: Apache-2.0
"""The arguments of Kafka's tools, read as their parser reads them.

An option is `--name value` or `--name=value`, also with a single dash; nothing may be shortened.
Options may be repeated. A value is the next word, whatever it looks like, and an optional one is
the next word that looks like no option. Other words are ignored, as the tools do.
"""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from kohort.drop_in.java import JavaError

NONE, REQUIRED, OPTIONAL = "none", "required", "optional"
_INT64_MIN, _INT64_MAX = -(1 << 63), (1 << 63) - 1


class Option(NamedTuple):
    """An option of a tool. `only_with` names the options of which one must be there as well."""

    name: str
    help: str
    value: str = NONE
    shown: str = ""
    only_with: tuple[str, ...] = ()
    needed: bool = False


class Options:
    """The options that were given."""

    def __init__(self, given: dict[str, list[str | None]]) -> None:
        self._given = given

    def has(self, name: str) -> bool:
        return name in self._given

    def any_of(self, *names: str) -> bool:
        return any(map(self.has, names))

    def values(self, name: str) -> list[str]:
        """All values that were given, in order."""
        return [value for value in self._given.get(name, ()) if value is not None]

    def value(self, name: str) -> str | None:
        """The only value. Raises JavaError where several were given."""
        found = self.values(name)
        if len(found) > 1:
            raise JavaError(
                "joptsimple.MultipleArgumentsForOptionException",
                f"Found multiple arguments for option {name}, but you asked for only one",
            )
        return found[0] if found else None

    def number(self, name: str) -> int | None:
        """The only value, a whole number of 64 bits. Raises JavaError."""
        text = self.value(name)
        return None if text is None else number(name, text)


def number(name: str, text: str) -> int:
    """A whole number as Java reads it. Raises JavaError."""
    digits = text[1:] if text[:1] in ("-", "+") else text
    if digits.isdecimal() and len(digits) < 400 and _INT64_MIN <= int(text) <= _INT64_MAX:
        return int(text)
    cause = JavaError("java.lang.NumberFormatException", f'For input string: "{text}"')
    raise JavaError(
        "joptsimple.OptionArgumentConversionException",
        f"Cannot parse argument '{text}' of option {name}",
        JavaError("joptsimple.internal.ReflectionException", cause=cause),
    )


def parse(argv: Sequence[str], known: Collection[Option]) -> Options:
    """Raises JavaError for an option that is unknown, lacks its value, or stands alone where it
    belongs to another one.
    """
    by_name = {option.name: option for option in known}
    given: dict[str, list[str | None]] = {}
    words = list(argv)
    while words:
        word = words.pop(0)
        if word == "--":
            break
        if not _looks_like_an_option(word):
            continue
        name, found, value = word.lstrip("-").partition("=")
        option = by_name.get(name)
        if option is None:
            raise JavaError(
                "joptsimple.UnrecognizedOptionException", f"{name} is not a recognized option"
            )
        given.setdefault(name, []).append(_value(option, value if found else None, words))
    _check(given, by_name)
    return Options(given)


def _value(option: Option, attached: str | None, words: list[str]) -> str | None:
    if option.value == NONE:
        return None
    if attached is not None:  # `--group=` has the empty value, and takes no other word
        return attached
    if option.value == OPTIONAL:
        return words.pop(0) if words and not _looks_like_an_option(words[0]) else None
    if not words:
        raise JavaError(
            "joptsimple.OptionMissingRequiredArgumentException",
            f"Option {option.name} requires an argument",
        )
    return words.pop(0)


def _check(given: Collection[str], by_name: dict[str, Option]) -> None:
    missing = [name for name, option in by_name.items() if option.needed and name not in given]
    if missing and not {"help", "version"} & set(given):
        raise JavaError(
            "joptsimple.MissingRequiredOptionsException",
            f"Missing required option(s) [{', '.join(missing)}]",
        )
    alone = [
        name
        for name in given
        if by_name[name].only_with and not set(by_name[name].only_with) & set(given)
    ]
    if alone:
        raise JavaError(
            "joptsimple.UnavailableOptionException",
            f"Option(s) [{', '.join(alone)}] are unavailable given other options on the command"
            " line",
        )


def _looks_like_an_option(word: str) -> bool:
    return word.startswith("-") and word != "-"
