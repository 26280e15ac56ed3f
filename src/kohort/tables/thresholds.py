# SPDX-License-Identifier: Apache-2.0
"""Which rules `pipeline check` applies, and from which value on each of them warns.

Out of a TOML file, whose tables are rules, and of options, which win over it. A rule that has no
thresholds is not applied.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from kohort.errors import KohortError
from kohort.pipeline.format.catalog import did_you_mean
from kohort.user_files import settings_text


class State(IntEnum):
    """How a thing is; the numbers are the exit status that Nagios knows."""

    OK = 0
    WARNING = 1
    CRITICAL = 2
    UNKNOWN = 3

    @property
    def severity(self) -> int:
        """Larger is worse: what is not known may be fine, what warns is not."""
        return (State.OK, State.UNKNOWN, State.WARNING, State.CRITICAL).index(self)


def worst(states: "list[State]") -> State:
    """The worst of these; of none, OK."""
    return max(states, key=lambda state: state.severity, default=State.OK)


@dataclass(frozen=True)
class Limit:
    """From which value on a rule warns, and is critical; None: never."""

    warning: float | None = None
    critical: float | None = None

    def state(self, value: float, *, below: bool = False) -> State:
        """What a value is. With `below` small ones are bad."""
        for state, bound in ((State.CRITICAL, self.critical), (State.WARNING, self.warning)):
            if bound is not None and (value <= bound if below else value >= bound):
                return state
        return State.OK


RULES = {
    "lag_records": "records",
    "lag_seconds": "seconds",
    "status": "",
    "rebalances": "rebalances",
    "expiring": "seconds",
    "age": "seconds",
}
"""Every rule, and what its values are."""
DURATIONS = ("lag_seconds", "expiring", "age")
BELOW = ("expiring",)
"""Rules whose small values are bad."""
ON_STATUS = Limit(1, 2)
"""Of the rule `status`, whose values are 1 for WARN and 2 for what is worse."""
DEFAULTS: Mapping[str, Limit] = {
    "status": ON_STATUS,
    "rebalances": Limit(10, 30),
    "age": Limit(2 * 3600, 24 * 3600),
}
_UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86_400}
_OWN = {"rebalances": ("window",), "status": ("judge", "grace")}
_JUDGES = ("kohort", "burrow")


class RulesError(KohortError):
    """Rules that cannot be meant; the text is one sentence that names the place."""


@dataclass(frozen=True)
class Groups:
    """What is otherwise for groups whose names match a pattern; None switches a rule off."""

    pattern: str
    ignore: bool = False
    limits: Mapping[str, Limit | None] = field(default_factory=dict)


@dataclass(frozen=True)
class Rules:
    """What to check."""

    limits: Mapping[str, Limit] = field(default_factory=lambda: dict(DEFAULTS))
    window_s: float = 3600.0
    """The span in which rebalances are counted."""
    judge: str = "kohort"
    """Whose rules `status` goes by: `kohort` or `burrow`."""
    groups: tuple[Groups, ...] = ()
    grace_s: float = 300.0
    """For how long a group may have no members, as while it is deployed, before that is critical.
    """

    def limit_or_none(self, rule: str, group: str | None = None) -> Limit | None:
        """The thresholds of a rule for a group: the first pattern that matches and names the rule
        wins. None: it is not applied.
        """
        if group is not None:
            for groups in self.groups:
                if fnmatchcase(group, groups.pattern):
                    if groups.ignore:
                        return None
                    if rule in groups.limits:
                        return groups.limits[rule]
        return self.limits.get(rule)

    def with_(self, given: Mapping[str, Limit | None]) -> "Rules":
        """The same with other thresholds for all groups that no pattern names."""
        limits = {**self.limits, **given}
        return replace(
            self, limits={name: limit for name, limit in limits.items() if limit is not None}
        )


def load(path: Path) -> Rules:
    """The rules of a file. Raises RulesError."""
    try:
        found = tomllib.loads(settings_text(str(path)))
    except OSError as error:
        raise RulesError(f"{path} cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise RulesError(f"{path} is not TOML: {error}") from error
    try:
        return parse(found)
    except RulesError as error:
        raise RulesError(f"{path}: {error}") from error


def parse(document: Mapping[str, Any]) -> Rules:
    """The rules of a document. Raises RulesError."""
    rules = Rules()
    _check_names("it", document, (*RULES, "groups"))
    own: dict[str, Any] = {
        f"{rule}.{name}": document[rule][name]
        for rule, names in _OWN.items()
        for name in names
        if isinstance(document.get(rule), dict) and name in document[rule]
    }
    for place, value in own.items():
        if place == "rebalances.window":
            rules = replace(rules, window_s=seconds(place, value))
        elif place == "status.grace":
            rules = replace(rules, grace_s=seconds(place, value))
        elif value not in _JUDGES:
            raise RulesError(f"{place} is {value!r}, expected {' or '.join(_JUDGES)}")
        else:
            rules = replace(rules, judge=value)
    limits = {name: _limit(name, name, raw) for name, raw in document.items() if name in RULES}
    by_pattern = document.get("groups", {})
    if not isinstance(by_pattern, dict):
        raise RulesError(f'groups is {by_pattern!r}, expected a table such as [groups."billing-*"]')
    groups = tuple(_groups(pattern, raw) for pattern, raw in by_pattern.items())
    return replace(rules.with_(limits), groups=groups)


def of_text(rule: str, text: str) -> Limit | None:
    """Thresholds as an option has them: `WARNING,CRITICAL`, either may be empty, or `off`."""
    if text == "off":
        return None
    if rule == "status":
        if text != "on":
            raise RulesError(f"status is {text!r}, expected on or off")
        return ON_STATUS
    warning, comma, critical = (part.strip() for part in text.partition(","))
    if not warning and not critical:
        raise RulesError(f"{rule} is {text!r}, expected WARNING,CRITICAL or off")
    bounds = {"warning": warning, **({"critical": critical} if comma else {})}
    return _limit(rule, rule, {name: bound for name, bound in bounds.items() if bound})


def seconds(place: str, value: object) -> float:
    """A duration: a number of seconds, or text such as `5m`. Raises RulesError."""
    if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0:
        return float(value)
    if isinstance(value, str):
        number = value.rstrip("dhms")
        if number.isascii() and number.isdigit() and value[len(number) :] in ("", *_UNITS):
            return float(number) * _UNITS.get(value[len(number) :], 1)
    raise RulesError(f'{place} is {value!r}, expected seconds, or such as "5m"')


def _groups(pattern: str, raw: object) -> Groups:
    place = f'groups."{pattern}"'
    if not isinstance(raw, dict):
        raise RulesError(f"{place} is {raw!r}, expected a table of rules")
    names = tuple(rule for rule in RULES if rule != "age")
    _check_names(place, raw, (*names, "ignore"))
    ignore = raw.get("ignore", False)
    if not isinstance(ignore, bool):
        raise RulesError(f"{place}.ignore is {ignore!r}, expected true or false")
    limits = {
        name: _limit(name, f"{place}.{name}", limit, own=False)
        for name, limit in raw.items()
        if name in names
    }
    return Groups(pattern, ignore, limits)


def _limit(rule: str, place: str, raw: object, *, own: bool = True) -> Limit | None:
    if raw is False:
        return None
    if rule == "status" and raw is True:
        return ON_STATUS
    if not isinstance(raw, dict):
        raise RulesError(f"{place} is {raw!r}, expected a table with warning and critical")
    more = _OWN.get(rule, ()) if own else ()
    if rule == "status":
        _check_names(place, raw, more)
        return ON_STATUS
    _check_names(place, raw, ("warning", "critical", *more))
    found = {name: _number(rule, f"{place}.{name}", raw[name]) for name in _BOUNDS if name in raw}
    if not found:
        return DEFAULTS.get(rule)
    limit = Limit(**found)
    if limit.warning is not None and limit.critical is not None:
        wrong = limit.warning < limit.critical if rule in BELOW else limit.warning > limit.critical
        if wrong:
            order = "earlier" if rule in BELOW else "below"
            raise RulesError(f"{place} warns after it is critical, expected a warning {order}")
    return limit


_BOUNDS = ("warning", "critical")


def _number(rule: str, place: str, value: object) -> float:
    if rule in DURATIONS:
        return seconds(place, value)
    if isinstance(value, str) and value.isascii() and value.isdigit():
        return float(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
        raise RulesError(f"{place} is {value!r}, expected a number")
    return float(value)


def _check_names(place: str, given: Mapping[str, Any], known: tuple[str, ...]) -> None:
    for name in given:
        if name not in known:
            there = did_you_mean(name, known) or f", expected one of {', '.join(known)}"
            raise RulesError(f"{place} has {name!r}{there}")
