"""The admin client, and the views that it returns."""

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
