"""The admin client, and the views that it returns. Every name is imported on first use, as those of
`kohort`: a command that lists groups waits for no other views.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kohort.client.admin.answers import Answers
    from kohort.client.admin.broker_views import (
        FeatureLevels,
        FeatureMetadata,
        FeatureUpdate,
        LogDirDescription,
        LogDirReplica,
        PartitionReassignment,
    )
    from kohort.client.admin.client import AdminClient
    from kohort.client.admin.config_views import (
        ConfigAppend,
        ConfigEntry,
        ConfigResource,
        ConfigResourceType,
        ConfigSource,
        ConfigSubtract,
        ConfigSynonym,
        ConfigType,
    )
    from kohort.client.admin.group_views import (
        Assignment,
        Attachment,
        ClientAssignor,
        ClientSide,
        CommittedOffset,
        GroupConfig,
        GroupDescription,
        GroupOffsets,
        MemberDescription,
    )
    from kohort.client.admin.member_removal import MemberToRemove
    from kohort.client.admin.offset_reset import (
        OffsetAdjustment,
        OffsetReset,
        OffsetResetPlan,
        PlannedOffset,
    )
    from kohort.client.admin.quota_views import ClientQuotaEntity
    from kohort.client.admin.security_views import (
        AclBinding,
        AclFilter,
        DelegationToken,
        ScramCredential,
        ScramDeletion,
        ScramUpsertion,
    )
    from kohort.client.admin.synchronous import SyncAdminClient
    from kohort.client.admin.time_lags import TimeLag
    from kohort.client.admin.topic_views import (
        CreatedTopic,
        FoundOffset,
        NewTopic,
        NodeDescription,
        Nodes,
        PartitionDescription,
        TopicDescription,
        TopicListing,
        TopicListings,
    )
    from kohort.client.admin.transaction_views import (
        FencedProducer,
        ProducerState,
        TransactionDescription,
        TransactionListing,
        TransactionListings,
        TransactionState,
    )
    from kohort.client.admin.views import GroupListing, Listings, Outcomes
    from kohort.security.acls import AclOperation, AclPermission, PatternType, ResourceType
    from kohort.terms import TopicPartition

__all__ = [
    "AclBinding",
    "AclFilter",
    "AclOperation",
    "AclPermission",
    "AdminClient",
    "Answers",
    "Assignment",
    "Attachment",
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
    "CreatedTopic",
    "DelegationToken",
    "FeatureLevels",
    "FeatureMetadata",
    "FeatureUpdate",
    "FencedProducer",
    "FoundOffset",
    "GroupConfig",
    "GroupDescription",
    "GroupListing",
    "GroupOffsets",
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
    "ProducerState",
    "ResourceType",
    "ScramCredential",
    "ScramDeletion",
    "ScramUpsertion",
    "SyncAdminClient",
    "TimeLag",
    "TopicDescription",
    "TopicListing",
    "TopicListings",
    "TopicPartition",
    "TransactionDescription",
    "TransactionListing",
    "TransactionListings",
    "TransactionState",
]

_HOMES = {
    "Answers": "kohort.client.admin.answers",
    **dict.fromkeys(
        (
            *("FeatureLevels", "FeatureMetadata", "FeatureUpdate", "LogDirDescription"),
            *("LogDirReplica", "PartitionReassignment"),
        ),
        "kohort.client.admin.broker_views",
    ),
    "AdminClient": "kohort.client.admin.client",
    **dict.fromkeys(
        (
            *("ConfigAppend", "ConfigEntry", "ConfigResource", "ConfigResourceType"),
            *("ConfigSource", "ConfigSubtract", "ConfigSynonym", "ConfigType"),
        ),
        "kohort.client.admin.config_views",
    ),
    **dict.fromkeys(
        (
            *("Assignment", "Attachment", "ClientAssignor", "ClientSide", "CommittedOffset"),
            *("GroupConfig", "GroupDescription", "GroupOffsets", "MemberDescription"),
        ),
        "kohort.client.admin.group_views",
    ),
    "ClientQuotaEntity": "kohort.client.admin.quota_views",
    "MemberToRemove": "kohort.client.admin.member_removal",
    **dict.fromkeys(
        ("OffsetAdjustment", "OffsetReset", "OffsetResetPlan", "PlannedOffset"),
        "kohort.client.admin.offset_reset",
    ),
    **dict.fromkeys(
        (
            *("AclBinding", "AclFilter", "DelegationToken", "ScramCredential", "ScramDeletion"),
            *("ScramUpsertion",),
        ),
        "kohort.client.admin.security_views",
    ),
    "SyncAdminClient": "kohort.client.admin.synchronous",
    "TimeLag": "kohort.client.admin.time_lags",
    **dict.fromkeys(
        (
            *("CreatedTopic", "FoundOffset", "NewTopic", "NodeDescription", "Nodes"),
            *("PartitionDescription", "TopicDescription", "TopicListing", "TopicListings"),
        ),
        "kohort.client.admin.topic_views",
    ),
    **dict.fromkeys(
        (
            *("FencedProducer", "ProducerState", "TransactionDescription"),
            *("TransactionListing", "TransactionListings", "TransactionState"),
        ),
        "kohort.client.admin.transaction_views",
    ),
    **dict.fromkeys(("GroupListing", "Listings", "Outcomes"), "kohort.client.admin.views"),
    **dict.fromkeys(
        ("AclOperation", "AclPermission", "PatternType", "ResourceType"), "kohort.security.acls"
    ),
    "TopicPartition": "kohort.terms",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value  # from now on it is found without this function
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
