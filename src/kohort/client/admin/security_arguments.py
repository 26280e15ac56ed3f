# SPDX-License-Identifier: Apache-2.0
"""What callers give to the admin client about rules and credentials, as in `arguments`."""

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any, TypeVar, cast

from kohort.client.admin import arguments
from kohort.client.admin.security_views import (
    AclBinding,
    AclFilter,
    ScramDeletion,
    ScramUpsertion,
)
from kohort.security.scram import ITERATIONS_LEAST, ITERATIONS_MOST, ITERATIONS_TAKEN, NUMBERS

Rule = TypeVar("Rule", AclBinding, AclFilter)


def bindings(what: str, given: object) -> list[AclBinding]:
    """Rules to be made. Raises TypeError, and ValueError for texts that cannot be sent."""
    return [_rule(what, one, AclBinding) for one in _many(what, given, AclBinding)]


def filters(what: str, given: object) -> list[AclFilter]:
    """Raises TypeError, and ValueError for texts that cannot be sent."""
    return [_rule(what, one, AclFilter) for one in _many(what, given, AclFilter)]


def _rule(what: str, given: Any, kind: type[Rule]) -> Rule:
    if not isinstance(given, kind):
        raise TypeError(f"{what} has {given!r}, expected {kind.__name__}")
    for field in fields(given):
        value, expected = getattr(given, field.name), cast("type", field.type)
        if not isinstance(value, expected):
            shown = getattr(expected, "__name__", expected)
            raise TypeError(f"{field.name} in {what} is {value!r}, expected {shown}")
        if isinstance(value, str):
            arguments.name(f"{field.name} in {what}", value)
    return given


def credential_changes(given: object) -> dict[str, ScramUpsertion | ScramDeletion]:
    """Changes by user. Raises TypeError, and ValueError for what cannot be sent or a user given
    twice, as brokers refuse that; neither shows a password.
    """
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise TypeError("changes is no list, expected a list of ScramUpsertion or ScramDeletion")
    by_user: dict[str, ScramUpsertion | ScramDeletion] = {}
    for change in given:
        if not isinstance(change, ScramUpsertion | ScramDeletion):
            raise TypeError(
                f"changes has a {type(change).__name__}, expected ScramUpsertion or ScramDeletion"
            )
        arguments.names("changes", change.user)
        if change.mechanism not in NUMBERS:
            expected = " or ".join(NUMBERS)
            raise ValueError(f"mechanism is {change.mechanism!r}, expected {expected}")
        if isinstance(change, ScramUpsertion):
            _check_upsertion(change)
        if change.user in by_user:
            raise ValueError(f"changes has user {change.user} twice, expected each once")
        by_user[change.user] = change
    return by_user


def _check_upsertion(change: ScramUpsertion) -> None:
    what = f"the password of user {change.user}"
    if not isinstance(change.password, str):
        raise TypeError(f"{what} is of type {type(change.password).__name__}, expected a text")
    if not change.password:
        raise ValueError(f"{what} is empty, expected a text")
    try:
        change.password.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{what} is no text in UTF-8") from None
    arguments.whole(f"iterations of user {change.user}", change.iterations, arguments.INT32_MAX)
    if not 0 < change.iterations <= ITERATIONS_TAKEN:  # it would compute for ever
        raise ValueError(
            f"iterations of user {change.user} is {change.iterations}, expected "
            f"{ITERATIONS_LEAST} to {ITERATIONS_MOST}"
        )


def _many(what: str, given: object, kind: type[object]) -> list[Any]:
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise TypeError(f"{what} is {given!r}, expected a list of {kind.__name__}")
    return list(given)
