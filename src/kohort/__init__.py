"""Kohort: consumer groups for the Kafka protocol.

`AdminClient` administers the groups of any cluster, `Consumer` is a member of one, and `Producer`
writes to its topics. `Security` is what a client needs for TLS and SASL. `Broker` is a cluster
inside an asyncio program; `kohort.testing.Broker` is one for tests. Every name is imported on first
use, so `import kohort` costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kohort.client.admin import (
        AclBinding,
        AclFilter,
        AclOperation,
        AclPermission,
        AdminClient,
        Answers,
        Assignment,
        Attachment,
        ClientAssignor,
        ClientQuotaEntity,
        ClientSide,
        CommittedOffset,
        ConfigAppend,
        ConfigEntry,
        ConfigResource,
        ConfigResourceType,
        ConfigSource,
        ConfigSubtract,
        ConfigSynonym,
        ConfigType,
        CreatedTopic,
        DelegationToken,
        FeatureLevels,
        FeatureMetadata,
        FeatureUpdate,
        FencedProducer,
        FoundOffset,
        GroupConfig,
        GroupDescription,
        GroupListing,
        GroupOffsets,
        Listings,
        LogDirDescription,
        LogDirReplica,
        MemberDescription,
        MemberToRemove,
        NewTopic,
        NodeDescription,
        Nodes,
        OffsetAdjustment,
        OffsetReset,
        OffsetResetPlan,
        Outcomes,
        PartitionDescription,
        PartitionReassignment,
        PatternType,
        PlannedOffset,
        ProducerState,
        ResourceType,
        ScramCredential,
        ScramDeletion,
        ScramUpsertion,
        SyncAdminClient,
        TimeLag,
        TopicDescription,
        TopicListing,
        TopicListings,
        TopicPartition,
        TransactionDescription,
        TransactionListing,
        TransactionListings,
        TransactionState,
    )
    from kohort.client.consumer import (
        AssignmentTold,
        Assignor,
        Consumer,
        GroupMember,
        GroupMetadata,
        GroupToAssign,
        RebalanceListener,
        Share,
    )
    from kohort.client.fetcher import ConsumerRecord, RecordError
    from kohort.client.producer import Delivered, DeliveryError, Producer, TransactionError
    from kohort.config import BrokerConfig
    from kohort.errors import (
        ApiError,
        AuthenticationError,
        ErrorCode,
        KohortError,
        UnsupportedVersionError,
    )
    from kohort.security.settings import Security, Store
    from kohort.server.broker import Broker
    from kohort.terms import GroupState, GroupType

__all__ = [
    "AclBinding",
    "AclFilter",
    "AclOperation",
    "AclPermission",
    "AdminClient",
    "Answers",
    "ApiError",
    "Assignment",
    "AssignmentTold",
    "Assignor",
    "Attachment",
    "AuthenticationError",
    "Broker",
    "BrokerConfig",
    "ClientAssignor",
    "ClientQuotaEntity",
    "ClientSide",
    "CommittedOffset",
    "ConfigAppend",
    "ConfigEntry",
    "ConfigResource",
    "ConfigResourceType",
    "ConfigSource",
    "ConfigSubtract",
    "ConfigSynonym",
    "ConfigType",
    "Consumer",
    "ConsumerRecord",
    "CreatedTopic",
    "DelegationToken",
    "Delivered",
    "DeliveryError",
    "ErrorCode",
    "FeatureLevels",
    "FeatureMetadata",
    "FeatureUpdate",
    "FencedProducer",
    "FoundOffset",
    "GroupConfig",
    "GroupDescription",
    "GroupListing",
    "GroupMember",
    "GroupMetadata",
    "GroupOffsets",
    "GroupState",
    "GroupToAssign",
    "GroupType",
    "KohortError",
    "Listings",
    "LogDirDescription",
    "LogDirReplica",
    "MemberDescription",
    "MemberToRemove",
    "NewTopic",
    "NodeDescription",
    "Nodes",
    "OffsetAdjustment",
    "OffsetReset",
    "OffsetResetPlan",
    "Outcomes",
    "PartitionDescription",
    "PartitionReassignment",
    "PatternType",
    "PlannedOffset",
    "Producer",
    "ProducerState",
    "RebalanceListener",
    "RecordError",
    "ResourceType",
    "ScramCredential",
    "ScramDeletion",
    "ScramUpsertion",
    "Security",
    "Share",
    "Store",
    "SyncAdminClient",
    "TimeLag",
    "TopicDescription",
    "TopicListing",
    "TopicListings",
    "TopicPartition",
    "TransactionDescription",
    "TransactionError",
    "TransactionListing",
    "TransactionListings",
    "TransactionState",
    "UnsupportedVersionError",
]

# Where a name is defined; all others are views of the admin client.
_HOMES = {
    **dict.fromkeys(
        (
            *("AssignmentTold", "Assignor", "Consumer", "GroupMember", "GroupMetadata"),
            *("GroupToAssign", "RebalanceListener", "Share"),
        ),
        "kohort.client.consumer",
    ),
    **dict.fromkeys(
        ("Delivered", "DeliveryError", "Producer", "TransactionError"), "kohort.client.producer"
    ),
    "ApiError": "kohort.errors",
    "AuthenticationError": "kohort.errors",
    "Broker": "kohort.server.broker",
    "BrokerConfig": "kohort.config",
    **dict.fromkeys(("ConsumerRecord", "RecordError"), "kohort.client.fetcher"),
    "ErrorCode": "kohort.errors",
    "GroupState": "kohort.terms",
    "GroupType": "kohort.terms",
    "KohortError": "kohort.errors",
    **dict.fromkeys(("Security", "Store"), "kohort.security.settings"),
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
