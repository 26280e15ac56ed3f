# SPDX-License-Identifier: Apache-2.0
"""The versions of each API that a broker offers: all that it serves, or fewer for a test."""

from collections.abc import Iterable
from difflib import get_close_matches

from kohort.config.settings import ConfigError
from kohort.wire.apis import APIS, Api
from kohort.wire.schema import Versions

SETTING = "api.versions.max"
_BY_NAME = {api.name: api for api in APIS.values()}


def offered_versions(highest: Iterable[str]) -> dict[int, Versions]:
    """The versions of each API: those of APIS, capped by entries such as `OffsetFetch:7`.

    A cap below the first version takes the API away, as -1 does for any API. Raises ConfigError
    for an API or a version that does not exist.
    """
    limits = dict(map(_limit, highest))
    return {
        key: Versions(api.versions.first, limits.get(key, api.versions.last))
        for key, api in APIS.items()
        if limits.get(key, api.versions.last) >= api.versions.first
    }


def _limit(entry: str) -> tuple[int, int]:
    """The key of an API and its highest version."""
    name, _, text = entry.partition(":")
    api = _named(name.strip())
    number = text.strip()
    whole = number.isascii() and number.removeprefix("-").isdigit()
    if not (whole and -1 <= int(number) <= api.versions.last):
        raise ConfigError(
            f"{SETTING} has {entry!r}, expected a version of {api.name} from 0 to "
            f"{api.versions.last}, or -1 to take it away, such as {api.name}:{api.versions.last}"
        )
    return api.key, int(number)


def _named(name: str) -> Api:
    if name not in _BY_NAME:
        near = get_close_matches(name, _BY_NAME, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise ConfigError(f"{SETTING}: no API is called {name}{hint}")
    return _BY_NAME[name]
