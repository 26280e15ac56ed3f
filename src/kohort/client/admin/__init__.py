# SPDX-License-Identifier: Apache-2.0
"""The admin client, and the views that it returns. Every name is imported on first use, as those of
`kohort`: a command that lists groups waits for no other views.
"""

from typing import TYPE_CHECKING

from kohort.lazy_names import lazy_names

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

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        f"{__name__}.answers": "Answers",
        f"{__name__}.broker_views": "FeatureLevels FeatureMetadata FeatureUpdate LogDirDescription "
        "LogDirReplica PartitionReassignment",
        f"{__name__}.client": "AdminClient",
        f"{__name__}.config_views": "ConfigAppend ConfigEntry ConfigResource ConfigResourceType "
        "ConfigSource ConfigSubtract ConfigSynonym ConfigType",
        f"{__name__}.group_views": "Assignment Attachment ClientAssignor ClientSide "
        "CommittedOffset GroupConfig GroupDescription GroupOffsets MemberDescription",
        f"{__name__}.member_removal": "MemberToRemove",
        f"{__name__}.offset_reset": "OffsetAdjustment OffsetReset OffsetResetPlan PlannedOffset",
        f"{__name__}.quota_views": "ClientQuotaEntity",
        f"{__name__}.security_views": "AclBinding AclFilter DelegationToken ScramCredential "
        "ScramDeletion ScramUpsertion",
        f"{__name__}.synchronous": "SyncAdminClient",
        f"{__name__}.time_lags": "TimeLag",
        f"{__name__}.topic_views": "CreatedTopic FoundOffset NewTopic NodeDescription Nodes "
        "PartitionDescription TopicDescription TopicListing TopicListings",
        f"{__name__}.transaction_views": "FencedProducer ProducerState TransactionDescription "
        "TransactionListing TransactionListings TransactionState",
        f"{__name__}.views": "GroupListing Listings Outcomes",
        "kohort.security.acls": "AclOperation AclPermission PatternType ResourceType",
        "kohort.terms": "TopicPartition",
    },
)
