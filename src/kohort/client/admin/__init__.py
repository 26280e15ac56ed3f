"""The admin client, and the views that it returns."""

from kohort.client.admin.client import AdminClient
from kohort.client.admin.views import (
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
)
from kohort.terms import TopicPartition

__all__ = [
    "AdminClient",
    "Assignment",
    "Attachment",
    "ClientAssignor",
    "ClientSide",
    "CommittedOffset",
    "CreatedTopic",
    "FoundOffset",
    "GroupConfig",
    "GroupDescription",
    "GroupListing",
    "GroupOffsets",
    "Listings",
    "MemberDescription",
    "NewTopic",
    "NodeDescription",
    "Outcomes",
    "PartitionDescription",
    "TopicDescription",
    "TopicListing",
    "TopicPartition",
]
