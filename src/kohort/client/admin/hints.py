# SPDX-License-Identifier: Apache-2.0
"""The types that signatures of the admin client name. Their modules are imported when somebody asks
for the types, as `typing.get_type_hints` does: a command that lists groups waits for no others.
"""

from typing import TYPE_CHECKING

from kohort.lazy_names import lazy_names

if TYPE_CHECKING:
    from datetime import datetime as datetime

    from kohort.client.admin.broker_views import ElectionType as ElectionType
    from kohort.client.admin.broker_views import FeatureMetadata as FeatureMetadata
    from kohort.client.admin.broker_views import FeatureUpdate as FeatureUpdate
    from kohort.client.admin.broker_views import LogDirDescription as LogDirDescription
    from kohort.client.admin.broker_views import PartitionReassignment as PartitionReassignment
    from kohort.client.admin.config_views import ConfigChanges as ConfigChanges
    from kohort.client.admin.config_views import ConfigEntry as ConfigEntry
    from kohort.client.admin.config_views import ConfigResource as ConfigResource
    from kohort.client.admin.config_views import ConfigResources as ConfigResources
    from kohort.client.admin.group_views import CommittedOffset as CommittedOffset
    from kohort.client.admin.group_views import GroupConfig as GroupConfig
    from kohort.client.admin.group_views import GroupDescription as GroupDescription
    from kohort.client.admin.group_views import GroupOffsets as GroupOffsets
    from kohort.client.admin.member_removal import MemberToRemove as MemberToRemove
    from kohort.client.admin.offset_reset import OffsetReset as OffsetReset
    from kohort.client.admin.offset_reset import OffsetResetPlan as OffsetResetPlan
    from kohort.client.admin.quota_views import ClientQuotaEntity as ClientQuotaEntity
    from kohort.client.admin.quota_views import NameMatch as NameMatch
    from kohort.client.admin.security_views import AclBinding as AclBinding
    from kohort.client.admin.security_views import AclFilter as AclFilter
    from kohort.client.admin.security_views import DelegationToken as DelegationToken
    from kohort.client.admin.security_views import ScramCredential as ScramCredential
    from kohort.client.admin.security_views import ScramDeletion as ScramDeletion
    from kohort.client.admin.security_views import ScramUpsertion as ScramUpsertion
    from kohort.client.admin.time_lags import TimeLag as TimeLag
    from kohort.client.admin.topic_views import CreatedTopic as CreatedTopic
    from kohort.client.admin.topic_views import FoundOffset as FoundOffset
    from kohort.client.admin.topic_views import NewTopic as NewTopic
    from kohort.client.admin.topic_views import Nodes as Nodes
    from kohort.client.admin.topic_views import TopicDescription as TopicDescription
    from kohort.client.admin.topic_views import TopicListings as TopicListings
    from kohort.client.admin.topics import When as When
    from kohort.client.admin.topics_by_id import Id as Id
    from kohort.client.admin.transaction_views import FencedProducer as FencedProducer
    from kohort.client.admin.transaction_views import ProducerState as ProducerState
    from kohort.client.admin.transaction_views import (
        TransactionDescription as TransactionDescription,
    )
    from kohort.client.admin.transaction_views import TransactionListings as TransactionListings
    from kohort.client.admin.transaction_views import TransactionStateName as TransactionStateName
    from kohort.client.admin.views import GroupListing as GroupListing
    from kohort.client.admin.views import ListedPart as ListedPart
    from kohort.client.admin.views import Listings as Listings
    from kohort.client.admin.views import Outcomes as Outcomes
    from kohort.client.admin.views import StateName as StateName
    from kohort.client.admin.views import TypeName as TypeName

# Those that are views are found as a program finds them.
__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "datetime": "datetime",
        "kohort.client.admin.broker_views": "ElectionType",
        "kohort.client.admin.config_views": "ConfigChanges ConfigResources",
        "kohort.client.admin.quota_views": "NameMatch",
        "kohort.client.admin.topics": "When",
        "kohort.client.admin.topics_by_id": "Id",
        "kohort.client.admin.transaction_views": "TransactionStateName",
        "kohort.client.admin.views": "ListedPart StateName TypeName",
    },
    others="kohort.client.admin",
)
