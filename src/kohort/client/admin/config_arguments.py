# SPDX-License-Identifier: Apache-2.0
"""What callers give to calls about configurations: of the right kinds, before anything is asked."""

from collections.abc import Iterable, Mapping
from typing import Any

from kohort.client.admin import arguments
from kohort.client.admin.config_views import (
    NUMBERS,
    ConfigAppend,
    ConfigChange,
    ConfigResource,
    ConfigResourceType,
    ConfigSubtract,
)

_TYPES = ", ".join(NUMBERS)
_BROKERS = (ConfigResourceType.BROKER, ConfigResourceType.BROKER_LOGGER)


def resources(given: object) -> list[ConfigResource]:
    """Raises TypeError, and ValueError for a type that there is not or a name that cannot be."""
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise TypeError(f"resources is {given!r}, expected a list of pairs of a type and a name")
    return [_resource("resources", each) for each in given]


def _resource(what: str, given: object) -> ConfigResource:
    match given:
        case (str() as kind, str() as name):
            (type_,) = resource_types(kind)
        case _:
            expected = "a pair of a type and a name, as ('topic', 'orders')"
            raise TypeError(f"{what} has {given!r}, expected {expected}")
    arguments.names(what, name)
    if type_ in _BROKERS and name and not (name.isascii() and name.isdigit()):
        raise ValueError(f"{what} has the broker {name!r}, expected its id, or '' for all brokers")
    return ConfigResource(type_, name)


def resource_types(given: object) -> list[ConfigResourceType]:
    """Raises TypeError, and ValueError for a type that there is not, or for none at all."""
    found = arguments.names("types", given)
    for name in found:
        if name.lower() not in NUMBERS:
            raise ValueError(f"{name!r} is not a type of resources, expected one of {_TYPES}")
    if not found:
        raise ValueError(f"types is empty, expected None for all or some of {_TYPES}")
    return [ConfigResourceType(name.lower()) for name in found]


def config_names(given: object) -> list[str] | None:
    """Raises TypeError, and ValueError for no name at all: brokers take that for all of them."""
    if given is None:
        return None
    found = arguments.names("names", given)
    if not found:
        raise ValueError("names is empty, expected None for all configs or some names")
    return found


def config_changes(given: object) -> dict[ConfigResource, dict[str, ConfigChange]]:
    """Raises TypeError, and ValueError for what cannot be sent."""
    found: dict[ConfigResource, dict[str, ConfigChange]] = {}
    for pair, changes in arguments.mapping("changes", given).items():
        resource = _resource("changes", pair)
        what = f"changes of {resource}"
        own = arguments.mapping(what, changes)
        arguments.texts(what, {name: _text(change) for name, change in own.items()}, none=True)
        found[resource] = dict(own)
    return found


def _text(change: Any) -> Any:
    """The part of a change that is sent as a text; what it is wrong about is left as it is."""
    is_of_list = isinstance(change, ConfigAppend | ConfigSubtract)
    return change.values if is_of_list and isinstance(change.values, str) else change
