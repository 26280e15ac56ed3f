# SPDX-License-Identifier: Apache-2.0
"""Every key and value in `__consumer_offsets`, by record type, under upstream's names.

The layouts are upstream's to the byte, so that a log can move between an Apache Kafka and ours. A
key is written as its record type and then its fields, a value as its version and then its fields;
no value at all is a tombstone.

Tags from 20000 on are ours, for groups whose members assign (KIP-848). Other brokers skip them.
"""

from typing import Annotated

from kohort.terms import GroupId, TopicId
from kohort.wire.schema import (
    STRING,
    UUID,
    Bytes,
    Int8,
    Int16,
    Int32,
    Int64,
    String,
    Uuid,
    at,
    record,
    struct,
)

# 0, 1: committed offsets


@record()
class LegacyOffsetCommitKey:
    group: Annotated[GroupId, STRING]
    topic: String
    partition: Int32


@record()
class LegacyOffsetCommitValue:
    offset: Int64
    metadata: String
    commit_timestamp: Int64


@record()
class OffsetCommitKey:
    group: Annotated[GroupId, STRING]
    topic: String
    partition: Int32


@record(versions="0-4", flexible="4+")
class OffsetCommitValue:
    """v1 has an expiry, v3 the leader epoch, v4 the topic id (in a tag, so zero is not written)."""

    offset: Int64
    leader_epoch: Int32 = at("3+", default=-1)
    metadata: String
    commit_timestamp: Int64
    expire_timestamp: Int64 = at("1", default=-1)
    topic_id: Annotated[TopicId, UUID] = at("4+", tag=0)


# 2: classic groups


@struct
class MemberMetadata:
    member_id: String
    group_instance_id: String | None = at("3+", default=None)
    client_id: String
    client_host: String
    rebalance_timeout: Int32 = at("1+", default=-1)
    session_timeout: Int32
    subscription: Bytes
    assignment: Bytes


@record()
class GroupMetadataKey:
    group: String


@record(versions="0-4", flexible="4+")
class GroupMetadataValue:
    protocol_type: String
    generation: Int32
    protocol: String | None
    leader: String | None
    current_state_timestamp: Int64 = at("2+", default=-1)
    members: list[MemberMetadata]


# 3-8, 16: consumer groups (KIP-848)


@record()
class ConsumerGroupMetadataKey:
    group_id: String


@record(flexible="0+")
class ConsumerGroupMetadataValue:
    epoch: Int32
    metadata_hash: Int64 = at(tag=0, default=0)


@struct
class PartitionMetadata:
    partition: Int32
    racks: list[String]


@struct
class TopicMetadata:
    topic_id: Uuid
    topic_name: String
    num_partitions: Int32
    partition_metadata: list[PartitionMetadata]


@record()
class ConsumerGroupPartitionMetadataKey:
    group_id: String


@record(flexible="0+")
class ConsumerGroupPartitionMetadataValue:
    """Written up to 4.0; later brokers only delete it."""

    topics: list[TopicMetadata]


@struct
class ClassicProtocol:
    name: String
    metadata: Bytes


@struct
class ClassicMemberMetadata:
    session_timeout_ms: Int32
    supported_protocols: list[ClassicProtocol]


@struct
class ClientAssignor:
    """An assignor that a member offers. The versions are those of metadata that it can read."""

    name: String
    minimum_version: Int16
    maximum_version: Int16
    reason: Int8
    metadata_version: Int16
    metadata: Bytes


@struct
class Attachment:
    """What a client-side assignor adds to the partitions of a member."""

    error: Int8
    metadata_version: Int16
    metadata: Bytes
    assignor: String = at(tag=0, default="")


@record()
class ConsumerGroupMemberMetadataKey:
    group_id: String
    member_id: String


@record(flexible="0+")
class ConsumerGroupMemberMetadataValue:
    """`classic_member_metadata` is set for a member that uses the classic protocol."""

    instance_id: String | None
    rack_id: String | None
    client_id: String
    client_host: String
    subscribed_topic_names: list[String]
    subscribed_topic_regex: String | None
    rebalance_timeout_ms: Int32 = -1
    server_assignor: String | None
    classic_member_metadata: ClassicMemberMetadata | None = at(tag=0, default=None, always=True)
    client_assignors: list[ClientAssignor] = at(tag=20000)


@struct
class Computation:
    """How the targets came about in a group whose members offer assignors.

    `member_id` has computed them with `assignor`, for a `reason` that a member had given, within
    `took_ms` of being asked, and has told an `error`. Without a member the broker has computed
    them, and `why` says why.
    """

    assignor: String
    member_id: String | None
    reason: Int8
    error: Int8
    took_ms: Int32
    why: String


@record()
class ConsumerGroupTargetAssignmentMetadataKey:
    group_id: String


@record(flexible="0+")
class ConsumerGroupTargetAssignmentMetadataValue:
    assignment_epoch: Int32
    assignment_timestamp: Int64 = at(tag=0, default=0)
    computation: Computation | None = at(tag=20000, default=None)


@struct
class TopicPartition:
    """All partitions of one topic in a target."""

    topic_id: Uuid
    partitions: list[Int32]


@record()
class ConsumerGroupTargetAssignmentMemberKey:
    group_id: String
    member_id: String


@record(flexible="0+")
class ConsumerGroupTargetAssignmentMemberValue:
    topic_partitions: list[TopicPartition]
    attachment: Attachment | None = at(tag=20000, default=None)


@struct
class TopicPartitions:
    """Partitions of one topic that a member has; the epochs tell since when (KIP-1251)."""

    topic_id: Uuid
    partitions: list[Int32]
    assignment_epochs: list[Int32] | None = at(tag=0, default=None)


@record()
class ConsumerGroupCurrentMemberAssignmentKey:
    group_id: String
    member_id: String


@record(flexible="0+")
class ConsumerGroupCurrentMemberAssignmentValue:
    member_epoch: Int32
    previous_member_epoch: Int32
    state: Int8
    assigned_partitions: list[TopicPartitions]
    partitions_pending_revocation: list[TopicPartitions]
    attachment: Attachment | None = at(tag=20000, default=None)


@record()
class ConsumerGroupRegularExpressionKey:
    group_id: String
    regular_expression: String


@record(flexible="0+")
class ConsumerGroupRegularExpressionValue:
    topics: list[String]
    version: Int64
    timestamp: Int64


# 20000: settings of one group, of our own; other brokers skip the type


@struct
class GroupSetting:
    name: String
    value: String


@record()
class GroupSettingsKey:
    group_id: String


@record(versions="0", flexible="0+")
class GroupSettingsValue:
    settings: list[GroupSetting]
