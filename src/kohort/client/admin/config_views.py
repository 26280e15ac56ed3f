# SPDX-License-Identifier: Apache-2.0
"""Configurations as the admin client takes and returns them (KIP-133, KIP-226, KIP-339, KIP-569).

Numbers and names are upstream's.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, TypeAlias

from kohort.terms import ProtocolNumber


class ConfigResourceType(StrEnum):
    """What has configurations. UNKNOWN is one that is newer than this version."""

    UNKNOWN = "unknown"
    TOPIC = "topic"
    BROKER = "broker"
    BROKER_LOGGER = "broker_logger"
    CLIENT_METRICS = "client_metrics"
    GROUP = "group"


NUMBERS = {
    ConfigResourceType.TOPIC: 2,
    ConfigResourceType.BROKER: 4,
    ConfigResourceType.BROKER_LOGGER: 8,
    ConfigResourceType.CLIENT_METRICS: 16,
    ConfigResourceType.GROUP: 32,
}
"""Their numbers in the protocol."""


class ConfigResource(NamedTuple):
    """One thing that has configurations: `ConfigResource("topic", "orders")`. Equal to the pair.

    The name of a broker is its id as text, and "" stands for the defaults of all brokers.
    """

    type: ConfigResourceType
    name: str

    def __str__(self) -> str:
        return f"{self.type} {self.name!r}"


class ConfigSource(ProtocolNumber):
    """Where a value comes from."""

    UNKNOWN = 0
    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    DYNAMIC_CLIENT_METRICS_CONFIG = 7
    DYNAMIC_GROUP_CONFIG = 8


class ConfigType(ProtocolNumber):
    """What the text of a value means."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


@dataclass(frozen=True, slots=True)
class ConfigSynonym:
    """A source that a value may come from, and what is set there."""

    name: str
    value: str | None
    source: ConfigSource


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """A configuration of a resource.

    `value` is None where none is set, and always for a `sensitive` one: brokers do not tell it.
    `synonyms` has what is set for it anywhere, that in force first, and `documentation` is a text;
    both are None unless they were asked for. `type` is None below DescribeConfigs v3.
    """

    name: str
    value: str | None
    source: ConfigSource
    read_only: bool
    sensitive: bool
    type: ConfigType | None = None
    synonyms: tuple[ConfigSynonym, ...] | None = None
    documentation: str | None = None


@dataclass(frozen=True, slots=True)
class ConfigAppend:
    """A change of a configuration that is a list: these values, with commas, are added to it."""

    values: str


@dataclass(frozen=True, slots=True)
class ConfigSubtract:
    """A change of a configuration that is a list: these values, with commas, are taken out."""

    values: str


ConfigChange: TypeAlias = str | ConfigAppend | ConfigSubtract | None
"""The new value, a change of a list, or None, which takes the value back."""
ConfigResources: TypeAlias = Iterable[tuple[str, str]]
"""ConfigResources, or pairs of a type and a name."""
ConfigChanges: TypeAlias = (
    Mapping[ConfigResource, Mapping[str, ConfigChange]]
    | Mapping[tuple[str, str], Mapping[str, ConfigChange]]
    | Mapping[ConfigResource, Mapping[str, str]]
    | Mapping[tuple[str, str], Mapping[str, str]]
)
"""resource -> name -> change"""
