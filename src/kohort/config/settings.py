# SPDX-License-Identifier: Apache-2.0
"""What a setting is: a name, a kind, a default, bounds, and how its text becomes a value.

A refusal names the setting, the value and the valid range: its reader may have nothing else.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from math import isnan
from typing import Any

from kohort.errors import KohortError

INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1

Value = bool | int | float | str | tuple[str, ...] | None


class ConfigError(KohortError, ValueError):
    """A setting that is unknown, unreadable, out of its range, or at odds with another one."""


class Kind(IntEnum):
    """The type of a setting, numbered as DescribeConfigs v3 sends it."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    PASSWORD = 9


_WIDTHS = {Kind.INT: 2**31, Kind.SHORT: 2**15, Kind.LONG: 2**63}


@dataclass(frozen=True, slots=True)
class Setting:
    """One row of the table of settings. A default of None: unless set, another setting decides."""

    name: str
    kind: Kind
    default: Value
    doc: str
    least: float | None = None
    most: float | None = None
    choices: tuple[str, ...] = ()

    def parse(self, text: str) -> Value:
        """The value that the text stands for, checked. Raises ConfigError."""
        text = text.strip()
        match self.kind:
            case Kind.STRING | Kind.PASSWORD:
                return self._chosen(text)
            case Kind.LIST:
                entries = dict.fromkeys(entry.strip() for entry in text.split(",") if entry.strip())
                return tuple(self._chosen(entry) for entry in entries)
            case Kind.BOOLEAN:
                if text.lower() not in ("true", "false"):
                    raise self.refusal(text)
                return text.lower() == "true"
            case Kind.DOUBLE:
                return self._bounded(text, _number(float, text))
            case _:
                value = _number(int, text)
                width = _WIDTHS[self.kind]
                if value is not None and not -width <= value < width:
                    raise self.refusal(text)
                return self._bounded(text, value)

    def parse_or_default(self, text: str | None) -> Value:
        """The value of a text, or the default where none is given. Raises ConfigError."""
        return self.default if text is None else self.parse(text)

    def refusal(self, text: str) -> ConfigError:
        return ConfigError(f"{self.name} is {text!r}, expected {self.range}")

    @property
    def range(self) -> str:
        """The valid values, in words that end a sentence."""
        if self.choices:
            many = "a list out of" if self.kind is Kind.LIST else "one of"
            return f"{many} {', '.join(self.choices)}"
        match self.kind:
            case Kind.BOOLEAN:
                return "true or false"
            case Kind.STRING | Kind.PASSWORD:
                return "a text"
            case Kind.LIST:
                return "a list of names with commas between them"
            case Kind.DOUBLE:
                number = "a number"
            case _:
                number = "an integer"
        if self.least is not None and self.most is not None:
            return f"{number} from {self.least} to {self.most}"
        if self.least is not None:
            return f"{number} of at least {self.least}"
        width = _WIDTHS.get(self.kind)
        return number if width is None else f"{number} from {-width} to {width - 1}"

    def _chosen(self, text: str) -> str:
        if self.choices and text not in self.choices:
            raise self.refusal(text)
        return text

    def _bounded(self, text: str, value: float | None) -> float:
        if value is None or isnan(value):
            raise self.refusal(text)
        if self.least is not None and value < self.least:
            raise self.refusal(text)
        if self.most is not None and value > self.most:
            raise self.refusal(text)
        return value


def plain(settings: Mapping[str, str | float]) -> dict[str, str]:
    """The texts of settings that may have numbers and booleans. Raises ConfigError for others."""
    for name, value in settings.items():
        if not isinstance(value, str | bool | int | float):
            raise ConfigError(f"{name} is {value!r}, expected a text, a number or a boolean")
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in settings.items()
    }


def text_of(value: Value) -> str | None:
    """The value as DescribeConfigs shows it and as `parse` reads it back."""
    match value:
        case None:
            return None
        case bool():
            return "true" if value else "false"
        case tuple():
            return ",".join(value)
        case _:
            return str(value)


def declared(kind: Kind, default: Value, doc: str, **bounds: Any) -> Any:
    """A field of a settings class: what `Setting` needs beside the field's own name."""
    shown = kind is not Kind.PASSWORD
    return field(default=default, repr=shown, metadata={"kind": kind, "doc": doc, **bounds})


def boolean(default: bool, doc: str) -> Any:  # noqa: FBT001  (reads as `boolean(True, …)` in a table)
    return declared(Kind.BOOLEAN, default, doc)


def string(default: str | None, doc: str, *, choices: tuple[str, ...] = ()) -> Any:
    return declared(Kind.STRING, default, doc, choices=choices)


def password(doc: str) -> Any:
    """A secret: it is in no answer, no `repr` and no error."""
    return declared(Kind.PASSWORD, None, doc)


def integer(
    default: int | None, doc: str, *, least: int | None = None, most: int | None = None
) -> Any:
    return declared(Kind.INT, default, doc, least=least, most=most)


def short(default: int, doc: str, *, least: int | None = None, most: int | None = None) -> Any:
    return declared(Kind.SHORT, default, doc, least=least, most=most)


def long(default: int | None, doc: str, *, least: int | None = None) -> Any:
    return declared(Kind.LONG, default, doc, least=least)


def double(
    default: float, doc: str, *, least: float | None = None, most: float | None = None
) -> Any:
    return declared(Kind.DOUBLE, default, doc, least=least, most=most)


def listing(default: tuple[str, ...], doc: str, *, choices: tuple[str, ...] = ()) -> Any:
    return declared(Kind.LIST, default, doc, choices=choices)


def _number(kind: type[int] | type[float], text: str) -> float | None:
    try:
        # Python would read 1_000 as well.
        return None if "_" in text else kind(text)
    except ValueError:
        return None
