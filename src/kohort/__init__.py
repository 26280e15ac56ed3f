"""Kohort: consumer groups for the Kafka protocol.

`AdminClient` administers the groups of any cluster. `Broker` is a cluster inside an asyncio
program; `kohort.testing.Broker` is one for tests. Every name is imported on first use, so `import
kohort` costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kohort.client.admin import (
        AdminClient,
        Assignment,
        Attachment,
        ClientAssignor,
        ClientSide,
        CommittedOffset,
        CreatedTopic,
        FoundOffset,
        GroupConfig,
        GroupDescription,
        GroupListing,
        GroupOffsets,
        Listings,
        MemberDescription,
        NewTopic,
        NodeDescription,
        Outcomes,
        PartitionDescription,
        TopicDescription,
        TopicListing,
        TopicPartition,
    )
    from kohort.config import BrokerConfig
    from kohort.errors import ApiError, ErrorCode, KohortError, UnsupportedVersionError
    from kohort.server.broker import Broker
    from kohort.terms import GroupState, GroupType

__all__ = [
    "AdminClient",
    "ApiError",
    "Assignment",
    "Attachment",
    "Broker",
    "BrokerConfig",
    "ClientAssignor",
    "ClientSide",
    "CommittedOffset",
    "CreatedTopic",
    "ErrorCode",
    "FoundOffset",
    "GroupConfig",
    "GroupDescription",
    "GroupListing",
    "GroupOffsets",
    "GroupState",
    "GroupType",
    "KohortError",
    "Listings",
    "MemberDescription",
    "NewTopic",
    "NodeDescription",
    "Outcomes",
    "PartitionDescription",
    "TopicDescription",
    "TopicListing",
    "TopicPartition",
    "UnsupportedVersionError",
]

# Where a name is defined; all others are views of the admin client.
_HOMES = {
    "ApiError": "kohort.errors",
    "Broker": "kohort.server.broker",
    "BrokerConfig": "kohort.config",
    "ErrorCode": "kohort.errors",
    "GroupState": "kohort.terms",
    "GroupType": "kohort.terms",
    "KohortError": "kohort.errors",
    "UnsupportedVersionError": "kohort.errors",
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES.get(name, "kohort.client.admin")), name)
    globals()[name] = value  # from now on it is found without this function
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
