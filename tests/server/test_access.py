# SPDX-License-Identifier: Apache-2.0
"""Everything that can be forbidden is: every API is asked for what a stranger may not do, beside
what he may.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from msgspec.structs import replace
from tests.server.desk import Desk

from kohort.errors import ApiError, ErrorCode
from kohort.machines.effects import Client
from kohort.security.acls import AclOperation, ResourceType
from kohort.server.access import (
    ANY,
    CLUSTER_NAME,
    NOT_ASKED,
    check,
    cluster_operations,
    everyone_may,
    operations,
)
from kohort.server.network.routes import ROUTES
from kohort.terms import GroupId
from kohort.wire.batch import build
from kohort.wire.messages import alter_configs as replacing
from kohort.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from kohort.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from kohort.wire.messages.alter_client_quotas import AlterClientQuotasRequest, EntityData, EntryData
from kohort.wire.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from kohort.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from kohort.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
)
from kohort.wire.messages.api_versions import ApiVersionsRequest
from kohort.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from kohort.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kohort.wire.messages.consumer_group_install_assignment import (
    ConsumerGroupInstallAssignmentRequest,
)
from kohort.wire.messages.consumer_group_prepare_assignment import (
    ConsumerGroupPrepareAssignmentRequest,
)
from kohort.wire.messages.create_acls import AclCreation, CreateAclsRequest
from kohort.wire.messages.create_delegation_token import CreateDelegationTokenRequest
from kohort.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from kohort.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kohort.wire.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from kohort.wire.messages.delete_groups import DeleteGroupsRequest
from kohort.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kohort.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kohort.wire.messages.describe_acls import DescribeAclsRequest
from kohort.wire.messages.describe_client_quotas import DescribeClientQuotasRequest
from kohort.wire.messages.describe_cluster import DescribeClusterRequest
from kohort.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from kohort.wire.messages.describe_delegation_token import DescribeDelegationTokenRequest
from kohort.wire.messages.describe_groups import DescribeGroupsRequest
from kohort.wire.messages.describe_log_dirs import DescribeLogDirsRequest
from kohort.wire.messages.describe_producers import DescribeProducersRequest
from kohort.wire.messages.describe_producers import TopicRequest as ProducersOf
from kohort.wire.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from kohort.wire.messages.describe_transactions import DescribeTransactionsRequest
from kohort.wire.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest
from kohort.wire.messages.elect_leaders import ElectLeadersRequest
from kohort.wire.messages.end_txn import EndTxnRequest
from kohort.wire.messages.expire_delegation_token import ExpireDelegationTokenRequest
from kohort.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kohort.wire.messages.find_coordinator import FindCoordinatorRequest
from kohort.wire.messages.heartbeat import HeartbeatRequest
from kohort.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kohort.wire.messages.init_producer_id import InitProducerIdRequest
from kohort.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kohort.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from kohort.wire.messages.list_config_resources import ListConfigResourcesRequest
from kohort.wire.messages.list_groups import ListGroupsRequest
from kohort.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kohort.wire.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from kohort.wire.messages.list_transactions import ListTransactionsRequest
from kohort.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from kohort.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kohort.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kohort.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from kohort.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kohort.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kohort.wire.messages.renew_delegation_token import RenewDelegationTokenRequest
from kohort.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from kohort.wire.messages.sasl_handshake import SaslHandshakeRequest
from kohort.wire.messages.sync_group import SyncGroupRequest
from kohort.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kohort.wire.messages.update_features import UpdateFeaturesRequest
from kohort.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)

OWNER, STRANGER = 0, 1  # connections
MALLORY = "User:mallory"
TOPIC, GROUP, CLUSTER = (
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
)
TRANSACTIONAL_ID = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
HIDDEN = -1000
TOPIC_CONFIG, GROUP_CONFIG, BROKER_CONFIG = 2, 32, 4


class Rules:
    """Mallory may do nothing with the cluster, nor with anything that is called secret,
    but for the exceptions.
    """

    def __init__(self, *exceptions: tuple[AclOperation, ResourceType]) -> None:
        self.exceptions = exceptions

    def __call__(
        self, client: Client, operation: AclOperation, kind: ResourceType, name: str
    ) -> bool:
        if client.principal != MALLORY or (operation, kind) in self.exceptions:
            return True
        return kind is not ResourceType.CLUSTER and not name.startswith("secret")


def commit(group_id, topics, ids=None):
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    return OffsetCommitRequest(
        group_id=group_id,
        topics=[
            OffsetCommitRequestTopic(name=one, partitions=[partition])
            if ids is None
            else OffsetCommitRequestTopic(name="", topic_id=ids[one], partitions=[partition])
            for one in topics
        ],
    )


def joining(group_id, topics, member_id="m"):
    return ConsumerGroupHeartbeatRequest(
        group_id=group_id,
        member_id=member_id,
        member_epoch=0,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=topics,
        topic_partitions=[],
    )


def init(name):
    return InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=1000)


def txn_offset_commit(group_id, topics):
    partition = TxnOffsetCommitRequestPartition(
        partition_index=0, committed_offset=1, committed_metadata=None
    )
    return TxnOffsetCommitRequest(
        transactional_id="open",
        group_id=group_id,
        producer_id=77,
        producer_epoch=0,
        topics=[TxnOffsetCommitRequestTopic(name=one, partitions=[partition]) for one in topics],
    )


class Town:
    """A broker with open and secret topics and groups, its owner, and a stranger. The group `both`
    has to do with both topics, and the topic `other` with all groups.
    """

    def __init__(self, may=None):
        self.desk = Desk(may=may or Rules(), auto_create_topics_enable="true")
        self.desk.another()
        self.ids = {name: self.desk.create(name) for name in ("open", "other", "secret")}
        self.desk.ask(commit("both", ["open", "secret"]), 9)
        for name in ("open", "secret"):
            self.desk.produce(name)
            self.desk.ask(commit(name, ["other"]), 9)
            self.desk.ask(joining(name + "-members", ["other"]), 1)
        self.desk.ask(FindCoordinatorRequest(key_type=1, coordinator_keys=["open"]), 4)
        for name in ("open", "secret"):
            assert self.desk.ask(init(name), 4).error_code == 0
        visible = [self.shard(name) for name in ("open", "open-members", "both")]
        assert self.shard("secret") not in visible
        assert self.shard("secret-members") not in visible
        connection = self.desk.connections[STRANGER]
        connection.client = replace(connection.client, principal=MALLORY)

    def state(self):
        """All that the stranger may change nothing of."""
        cluster = self.desk.cluster
        topics = [one for one in cluster.catalog.by_name.values() if one.name.startswith("secret")]
        logs = [
            cluster.partition(topic.name, index).log
            for topic in topics
            for index in range(topic.partitions)
        ]
        logs += [self.shard(name).log for name in ("secret", "secret-members")]
        (group,) = self.desk.ask(offset_fetch(["both"], None), 9).groups
        return (
            [(one.name, one.partitions, one.configs) for one in topics],
            [(log.start, log.end) for log in logs],
            [one.partitions[0].committed_offset for one in group.topics if one.name == "secret"],
        )

    def shard(self, group_id):
        placement = self.desk.cluster.placement
        return self.desk.cluster.drivers[placement.shard_of(GroupId(group_id))]


class Row(NamedTuple):
    """One way to ask an API about things by name. `codes` reads the answer: an error per name.

    What can only be asked about one thing is asked twice.
    """

    name: str
    version: int
    request: Callable[[Town, list[str]], Any]
    codes: Callable[[Any], list[int]]
    refused: int
    behind: str = ""  # what stands behind "open" and "secret" in a name
    single: bool = False


def codes(field, name="name"):
    """The error of each element, in the order of its name: open comes before secret."""

    def read(answer):
        return [
            one.error_code
            for one in sorted(getattr(answer, field), key=lambda one: getattr(one, name))
        ]

    return read


def partition_codes(field="topics", partitions="partitions", by=None):
    def read(answer):
        found = getattr(answer, field)
        if by is not None:
            found = sorted(found, key=lambda one: getattr(one, by))
        return [getattr(one, partitions)[0].error_code for one in found]

    return read


def top_level(answer):
    return [answer.error_code]


def shown(field, name):
    """Whether what is asked about is there at all."""

    def read(answer):
        names = {getattr(one, name) for one in getattr(answer, field)}
        return [0 if one in names else HIDDEN for one in ("open", "secret")]

    return read


def left_out(answer):
    return shown("topics", "name")(answer.groups[0])


def leaving(answer):
    return [answer.error_code or answer.members[0].error_code]


def produced(town, topic, *, by_id, **more):
    data = [PartitionProduceData(index=0, records=build([(b"k", b"v")], town.desk.now, **more))]
    if by_id:
        return TopicProduceData(topic_id=town.ids[topic], partition_data=data)
    return TopicProduceData(name=topic, partition_data=data)


def fetched(town, topic, *, by_id):
    partitions = [FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)]
    if by_id:
        return FetchTopic(topic_id=town.ids[topic], partitions=partitions)
    return FetchTopic(topic=topic, partitions=partitions)


def fetch(town, names, *, by_id):
    topics = [fetched(town, name, by_id=by_id) for name in names]
    return FetchRequest(max_wait_ms=1000, min_bytes=1, topics=topics)


def produce(town, names, *, by_id):
    topics = [produced(town, name, by_id=by_id) for name in names]
    return ProduceRequest(acks=-1, timeout_ms=1000, topic_data=topics)


def offset_fetch(group_ids, topics):
    """Topics are ids in version 10."""
    return OffsetFetchRequest(
        groups=[
            OffsetFetchRequestGroup(
                group_id=one,
                topics=None
                if topics is None
                else [
                    OffsetFetchRequestTopics(topic_id=topic, partition_indexes=[0])
                    if isinstance(topic, bytes)
                    else OffsetFetchRequestTopics(name=topic, partition_indexes=[0])
                    for topic in topics
                ],
            )
            for one in group_ids
        ]
    )


def flat_offset_fetch(group_id, topics):
    """As version 7 and older have it."""
    asked = [OffsetFetchRequestTopic(name=topic, partition_indexes=[0]) for topic in topics]
    return OffsetFetchRequest(group_id=group_id, topics=asked)


def offset_delete(group_id, topics):
    partition = OffsetDeleteRequestPartition(partition_index=0)
    return OffsetDeleteRequest(
        group_id=group_id,
        topics=[OffsetDeleteRequestTopic(name=one, partitions=[partition]) for one in topics],
    )


def join(group_id):
    return JoinGroupRequest(
        group_id=group_id,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        member_id="",
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )


def sync(group_id):
    return SyncGroupRequest(
        group_id=group_id,
        generation_id=1,
        member_id="m",
        protocol_type="consumer",
        protocol_name="range",
        assignments=[],
    )


def described(kind, names):
    resources = [
        DescribeConfigsResource(resource_type=kind, resource_name=one, configuration_keys=None)
        for one in names
    ]
    return DescribeConfigsRequest(resources=resources)


def altered(kind, names):
    config = AlterableConfig(name="retention.ms", config_operation=0, value="1")
    resources = [
        AlterConfigsResource(resource_type=kind, resource_name=one, configs=[config])
        for one in names
    ]
    return IncrementalAlterConfigsRequest(resources=resources, validate_only=False)


def replaced(kind, names):
    resources = [
        replacing.AlterConfigsResource(resource_type=kind, resource_name=one, configs=[])
        for one in names
    ]
    return replacing.AlterConfigsRequest(resources=resources, validate_only=False)


def metadata(names, *, create=False):
    topics = None if names is None else [MetadataRequestTopic(name=one) for one in names]
    return MetadataRequest(
        topics=topics,
        allow_auto_topic_creation=create,
        include_topic_authorized_operations=True,
    )


def created(names):
    return CreateTopicsRequest(
        topics=[
            CreatableTopic(
                name=one, num_partitions=1, replication_factor=1, assignments=[], configs=[]
            )
            for one in names
        ]
    )


def grown(names):
    topics = [CreatePartitionsTopic(name=one, count=2, assignments=None) for one in names]
    return CreatePartitionsRequest(topics=topics, timeout_ms=1000, validate_only=False)


def deleted(states):
    return DeleteTopicsRequest(topics=states, timeout_ms=1000)


def records_deleted(names):
    partition = DeleteRecordsPartition(partition_index=0, offset=1)
    topics = [DeleteRecordsTopic(name=one, partitions=[partition]) for one in names]
    return DeleteRecordsRequest(topics=topics, timeout_ms=1000)


def listed(names):
    partition = ListOffsetsPartition(partition_index=0, timestamp=-1)
    topics = [ListOffsetsTopic(name=one, partitions=[partition]) for one in names]
    return ListOffsetsRequest(replica_id=-1, topics=topics)


def epochs(names):
    partition = OffsetForLeaderPartition(partition=0, leader_epoch=0)
    topics = [OffsetForLeaderTopic(topic=one, partitions=[partition]) for one in names]
    return OffsetForLeaderEpochRequest(topics=topics)


def producers(names):
    topics = [ProducersOf(name=one, partition_indexes=[0]) for one in names]
    return DescribeProducersRequest(topics=topics)


ROWS = [
    Row(
        "metadata by name",
        12,
        lambda town, names: metadata(names),
        codes("topics"),
        TOPIC,
    ),
    Row(
        "metadata by id",
        12,
        lambda town, names: MetadataRequest(
            topics=[MetadataRequestTopic(topic_id=town.ids[one], name=None) for one in names]
        ),
        lambda answer: [one.error_code for one in answer.topics],
        TOPIC,
    ),
    Row(
        "metadata of all topics",
        12,
        lambda town, names: metadata(None),
        shown("topics", "name"),
        HIDDEN,
    ),
    Row(
        "metadata that creates",
        12,
        lambda town, names: metadata(names, create=True),
        codes("topics"),
        TOPIC,
        "-missing",
    ),
    Row(
        "partitions of topics",
        0,
        lambda town, names: DescribeTopicPartitionsRequest(
            topics=[TopicRequest(name=one) for one in names]
        ),
        codes("topics"),
        TOPIC,
    ),
    Row(
        "partitions of all topics",
        0,
        lambda town, names: DescribeTopicPartitionsRequest(topics=[]),
        shown("topics", "name"),
        HIDDEN,
    ),
    Row(
        "coordinator of one group",
        3,
        lambda town, names: FindCoordinatorRequest(key=names[0]),
        top_level,
        GROUP,
        single=True,
    ),
    Row(
        "coordinators of groups",
        4,
        lambda town, names: FindCoordinatorRequest(coordinator_keys=names),
        codes("coordinators", "key"),
        GROUP,
    ),
    Row("create topics", 7, lambda town, names: created(names), codes("topics"), TOPIC, "-new"),
    Row(
        "delete topics by name",
        6,
        lambda town, names: deleted([DeleteTopicState(name=one) for one in names]),
        codes("responses"),
        TOPIC,
    ),
    Row(
        "delete topics by id",
        6,
        lambda town, names: deleted([DeleteTopicState(topic_id=town.ids[one]) for one in names]),
        lambda answer: [one.error_code for one in answer.responses],
        TOPIC,
    ),
    Row("more partitions", 3, lambda town, names: grown(names), codes("results"), TOPIC),
    Row(
        "describe the configs of topics",
        4,
        lambda town, names: described(TOPIC_CONFIG, names),
        codes("results", "resource_name"),
        TOPIC,
    ),
    Row(
        "describe the configs of groups",
        4,
        lambda town, names: described(GROUP_CONFIG, names),
        codes("results", "resource_name"),
        GROUP,
    ),
    Row(
        "alter the configs of topics",
        1,
        lambda town, names: altered(TOPIC_CONFIG, names),
        codes("responses", "resource_name"),
        TOPIC,
    ),
    Row(
        "alter the configs of groups",
        1,
        lambda town, names: altered(GROUP_CONFIG, names),
        codes("responses", "resource_name"),
        GROUP,
    ),
    Row(
        "replace the configs of topics",
        2,
        lambda town, names: replaced(TOPIC_CONFIG, names),
        codes("responses", "resource_name"),
        TOPIC,
    ),
    Row(
        "replace the configs of groups",
        2,
        lambda town, names: replaced(GROUP_CONFIG, names),
        codes("responses", "resource_name"),
        GROUP,
    ),
    Row(
        "produce by name",
        9,
        lambda town, names: produce(town, names, by_id=False),
        partition_codes("responses", "partition_responses"),
        TOPIC,
    ),
    Row(
        "produce by id",
        13,
        lambda town, names: produce(town, names, by_id=True),
        partition_codes("responses", "partition_responses"),
        TOPIC,
    ),
    Row(
        "fetch by name",
        12,
        lambda town, names: fetch(town, names, by_id=False),
        partition_codes("responses"),
        TOPIC,
    ),
    Row(
        "fetch by id",
        13,
        lambda town, names: fetch(town, names, by_id=True),
        partition_codes("responses"),
        TOPIC,
    ),
    Row("list offsets", 7, lambda town, names: listed(names), partition_codes(), TOPIC),
    Row("leader epochs", 4, lambda town, names: epochs(names), partition_codes(), TOPIC),
    Row("producers", 0, lambda town, names: producers(names), partition_codes(), TOPIC),
    Row("delete records", 2, lambda town, names: records_deleted(names), partition_codes(), TOPIC),
    Row("join", 9, lambda town, names: join(names[0]), top_level, GROUP, single=True),
    Row("sync", 5, lambda town, names: sync(names[0]), top_level, GROUP, single=True),
    Row(
        "heartbeat",
        4,
        lambda town, names: HeartbeatRequest(group_id=names[0], generation_id=1, member_id="m"),
        top_level,
        GROUP,
        single=True,
    ),
    Row(
        "leave",
        5,
        lambda town, names: LeaveGroupRequest(
            group_id=names[0], members=[MemberIdentity(member_id="m")]
        ),
        leaving,
        GROUP,
        single=True,
    ),
    Row(
        "heartbeat of a consumer",
        1,
        lambda town, names: joining(names[0], ["other"]),
        top_level,
        GROUP,
        "-members",
        single=True,
    ),
    Row(
        "preparation of an assignment",
        0,
        lambda town, names: ConsumerGroupPrepareAssignmentRequest(
            group_id=names[0], member_id="m", member_epoch=1
        ),
        top_level,
        GROUP,
        single=True,
    ),
    Row(
        "installation of an assignment",
        0,
        lambda town, names: ConsumerGroupInstallAssignmentRequest(
            group_id=names[0], member_id="m", member_epoch=1, group_epoch=1, error=0, members=[]
        ),
        top_level,
        GROUP,
        single=True,
    ),
    Row(
        "subscription of a consumer",
        1,
        lambda town, names: joining("open-members", names),
        top_level,
        TOPIC,
        single=True,
    ),
    Row(
        "commit of a group",
        9,
        lambda town, names: commit(names[0], ["other"]),
        partition_codes(),
        GROUP,
        single=True,
    ),
    Row(
        "commit to topics",
        9,
        lambda town, names: commit("both", names),
        partition_codes(by="name"),
        TOPIC,
    ),
    Row(
        "commit to topics by id",
        10,
        lambda town, names: commit("both", names, ids=town.ids),
        lambda answer: sorted(one.partitions[0].error_code for one in answer.topics),
        TOPIC,
    ),
    Row(
        "offsets of one group, old",
        1,
        lambda town, names: flat_offset_fetch(names[0], ["other"]),
        partition_codes(),
        GROUP,
        single=True,
    ),
    Row(
        "offsets of one group",
        7,
        lambda town, names: flat_offset_fetch(names[0], ["other"]),
        top_level,
        GROUP,
        single=True,
    ),
    Row(
        "offsets of groups",
        9,
        lambda town, names: offset_fetch(names, ["other"]),
        codes("groups", "group_id"),
        GROUP,
    ),
    Row(
        "offsets of topics, flat",
        7,
        lambda town, names: flat_offset_fetch("both", names),
        partition_codes(),
        TOPIC,
    ),
    Row(
        "offsets of topics",
        9,
        lambda town, names: offset_fetch(["both"], names),
        lambda answer: partition_codes()(answer.groups[0]),
        TOPIC,
    ),
    Row(
        "offsets of topics by id",
        10,
        lambda town, names: offset_fetch(["both"], [town.ids[one] for one in names]),
        lambda answer: partition_codes()(answer.groups[0]),
        TOPIC,
    ),
    Row(
        "offsets of all topics",
        9,
        lambda town, names: offset_fetch(["both"], None),
        left_out,
        HIDDEN,
    ),
    Row(
        "delete offsets of a group",
        0,
        lambda town, names: offset_delete(names[0], ["other"]),
        top_level,
        GROUP,
        single=True,
    ),
    Row(
        "delete offsets of topics",
        0,
        lambda town, names: offset_delete("both", names),
        partition_codes(by="name"),
        TOPIC,
    ),
    Row(
        "list groups",
        5,
        lambda town, names: ListGroupsRequest(),
        shown("groups", "group_id"),
        HIDDEN,
    ),
    Row(
        "describe groups",
        5,
        lambda town, names: DescribeGroupsRequest(groups=names),
        codes("groups", "group_id"),
        GROUP,
    ),
    Row(
        "describe consumer groups",
        1,
        lambda town, names: ConsumerGroupDescribeRequest(
            group_ids=names, include_authorized_operations=True
        ),
        codes("groups", "group_id"),
        GROUP,
        "-members",
    ),
    Row(
        "delete groups",
        2,
        lambda town, names: DeleteGroupsRequest(groups_names=names),
        codes("results", "group_id"),
        GROUP,
    ),
    Row(
        "add topics to a transaction",
        3,
        lambda town, names: AddPartitionsToTxnRequest(
            v3_and_below_transactional_id="open",
            v3_and_below_producer_id=77,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=names[0], partitions=[0])],
        ),
        lambda answer: [
            answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code
        ],
        TOPIC,
        single=True,
    ),
    Row(
        "add to a transaction",
        3,
        lambda town, names: AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=names[0],
            v3_and_below_producer_id=77,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name="other", partitions=[0])],
        ),
        lambda answer: [
            answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code
        ],
        TRANSACTIONAL_ID,
        single=True,
    ),
    Row(
        "add offsets of a group to a transaction",
        3,
        lambda town, names: AddOffsetsToTxnRequest(
            transactional_id="open", producer_id=77, producer_epoch=0, group_id=names[0]
        ),
        top_level,
        GROUP,
        single=True,
    ),
    Row(
        "add offsets to a transaction",
        3,
        lambda town, names: AddOffsetsToTxnRequest(
            transactional_id=names[0], producer_id=77, producer_epoch=0, group_id="both"
        ),
        top_level,
        TRANSACTIONAL_ID,
        single=True,
    ),
    Row(
        "commit offsets of a group in a transaction",
        3,
        lambda town, names: txn_offset_commit(names[0], ["other"]),
        partition_codes(),
        GROUP,
        single=True,
    ),
    Row(
        "commit offsets of topics in a transaction",
        3,
        lambda town, names: txn_offset_commit("both", names),
        partition_codes(by="name"),
        TOPIC,
    ),
    Row(
        "end a transaction",
        3,
        lambda town, names: EndTxnRequest(
            transactional_id=names[0], producer_id=77, producer_epoch=0, committed=True
        ),
        top_level,
        TRANSACTIONAL_ID,
        single=True,
    ),
    Row(
        "describe transactions",
        0,
        lambda town, names: DescribeTransactionsRequest(transactional_ids=names),
        codes("transaction_states", "transactional_id"),
        TRANSACTIONAL_ID,
    ),
    Row(
        "list transactions",
        1,
        lambda town, names: ListTransactionsRequest(state_filters=[], producer_id_filters=[]),
        shown("transaction_states", "transactional_id"),
        HIDDEN,
    ),
]


def answered(town, row):
    """What the stranger is told about open, and about secret."""
    names = ["open" + row.behind, "secret" + row.behind]
    asked = [[name] for name in names] if row.single else [names]
    told = []
    for some in asked:
        told += row.codes(town.desk.ask(row.request(town, some), row.version, node=STRANGER))
    return told


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_what_is_forbidden_is_refused_and_nothing_else(row):
    town = Town()
    before = town.state()

    open_code, secret_code = answered(town, row)

    assert secret_code == row.refused
    assert town.state() == before
    # Without rules both are answered alike, and the open one no other than with them.
    assert answered(Town(everyone_may), row) == [open_code, open_code]


_ANY_RULE = {
    "resource_type_filter": 1,
    "resource_name_filter": None,
    "pattern_type_filter": 1,
    "principal_filter": None,
    "host_filter": None,
    "operation": 1,
    "permission_type": 1,
}
_RULE = AclCreation(
    resource_type=2,
    resource_name="open",
    principal="User:mallory",
    host="*",
    operation=3,
    permission_type=3,
)
_MOVED = AlterReplicaLogDir(
    path="memory", topics=[AlterReplicaLogDirTopic(name="open", partitions=[0])]
)
_LESS = ScramCredentialDeletion(name="alice", mechanism=1)
_NO_QUOTA = EntryData(entity=[EntityData(entity_type="user", entity_name="zed")], ops=[])
OF_THE_CLUSTER = [  # requests that are about the cluster as a whole, with their versions
    (ListConfigResourcesRequest(), 1),
    (DescribeLogDirsRequest(topics=None), 5),
    (ElectLeadersRequest(topic_partitions=None), 2),
    (AlterPartitionReassignmentsRequest(topics=[]), 1),
    (ListPartitionReassignmentsRequest(), 0),
    (AlterReplicaLogDirsRequest(dirs=[_MOVED]), 2),
    (DescribeUserScramCredentialsRequest(users=None), 0),
    (AlterUserScramCredentialsRequest(deletions=[_LESS], upsertions=[]), 0),
    (UpdateFeaturesRequest(feature_updates=[]), 2),
    (DescribeClientQuotasRequest(components=[], strict=False), 1),
    (AlterClientQuotasRequest(entries=[_NO_QUOTA], validate_only=False), 1),
    (DescribeAclsRequest(**_ANY_RULE), 3),
    (CreateAclsRequest(creations=[_RULE]), 3),
    (DeleteAclsRequest(filters=[DeleteAclsFilter(**_ANY_RULE)]), 3),
]


def test_every_api_is_asked():
    town = Town()
    asked = {type(row.request(town, ["open", "secret"])) for row in ROWS}

    assert asked | OTHERWISE == set(ROUTES)
    assert not asked & OTHERWISE


OTHERWISE = {
    ApiVersionsRequest,  # open to everybody: clients must learn how to ask anything at all
    SaslHandshakeRequest,  # as is the way in; and tokens are refused to everybody
    SaslAuthenticateRequest,
    CreateDelegationTokenRequest,
    RenewDelegationTokenRequest,
    ExpireDelegationTokenRequest,
    DescribeDelegationTokenRequest,
    DescribeClusterRequest,  # shows what the caller may do, and the rest to everybody
    InitProducerIdRequest,
    *(type(request) for request, _ in OF_THE_CLUSTER),
    WriteTxnMarkersRequest,  # what brokers ask each other, and a tool that may alter the cluster
}


@pytest.mark.parametrize(
    ("request_", "version"), OF_THE_CLUSTER, ids=lambda one: getattr(type(one), "name", "")
)
def test_who_may_not_ask_about_the_cluster_is_told(request_, version):
    def may(client, _operation, kind, _name):
        return client.principal != MALLORY or kind is not ResourceType.CLUSTER

    answer = Town(may).desk.ask(request_, version, node=STRANGER)
    found = [getattr(answer, "error_code", 0)]
    for field in ("results", "filter_results", "entries"):
        for one in getattr(answer, field, None) or ():
            found += [part.error_code for part in getattr(one, "partitions", (one,))]
    assert CLUSTER in found


def test_what_brokers_ask_each_other_is_not_for_clients():
    town = Town()
    topic = WritableTxnMarkerTopic(name="open", partition_indexes=[0])
    marker = WritableTxnMarker(
        producer_id=1,
        producer_epoch=0,
        transaction_result=True,
        topics=[topic],
        coordinator_epoch=0,
    )
    asked = WriteTxnMarkersRequest(markers=[marker])
    added = AddPartitionsToTxnRequest(
        transactions=[AddPartitionsToTxnTransaction(transactional_id="open")]
    )

    refused = town.desk.ask(asked, 1, node=STRANGER)
    assert refused.markers[0].topics[0].partitions[0].error_code == CLUSTER
    assert town.desk.ask(added, 5, node=STRANGER).error_code == CLUSTER
    granted = town.desk.ask(asked, 1)
    assert granted.markers[0].topics[0].partitions[0].error_code == 0
    assert town.desk.ask(added, 5).error_code == 0


@pytest.mark.parametrize(
    ("allowed", "told"), [(None, CLUSTER), (ResourceType.TOPIC, 0), (ResourceType.CLUSTER, 0)]
)
def test_who_may_write_nowhere_gets_no_producer_id(allowed, told):
    def may(client, operation, kind, name):
        if client.principal == MALLORY:
            assert (operation, kind, name) in (
                (AclOperation.WRITE, ResourceType.TOPIC, ANY),
                (AclOperation.IDEMPOTENT_WRITE, ResourceType.CLUSTER, CLUSTER_NAME),
            )
            return kind is allowed
        return True

    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
    assert Town(may).desk.ask(request, 4, node=STRANGER).error_code == told


def test_the_transactional_id_of_somebody_else_is_refused_without_a_word_in_the_log():
    """Also where no transactional id is named, but a batch is of a transaction."""
    town = Town()
    desk = town.desk
    asked = [
        ProduceRequest(
            transactional_id=name,
            acks=-1,
            timeout_ms=1000,
            topic_data=[produced(town, "open", by_id=False, producer_id=1, transactional=True)],
        )
        for name in ("secret", None)
    ]
    answer = desk.ask(init("secret"), 4, node=STRANGER)
    assert answer.error_code == TRANSACTIONAL_ID
    for one in asked:
        answer = desk.ask(one, 9, node=STRANGER)
        assert partition_codes("responses", "partition_responses")(answer) == [TRANSACTIONAL_ID]
    answer = desk.ask(
        FindCoordinatorRequest(key_type=1, coordinator_keys=["secret"]), 4, node=STRANGER
    )
    assert answer.coordinators[0].error_code == TRANSACTIONAL_ID
    assert not desk.told.warnings


def test_a_refused_produce_without_an_answer_closes():
    town = Town()
    before = town.state()
    town.desk.send_batch("secret", acks=0, node=STRANGER)
    town.desk.settle()

    assert town.desk.connections[STRANGER].finished
    assert town.state() == before


def test_the_configs_of_brokers_belong_to_the_cluster():
    desk = Town().desk

    answer = desk.ask(described(BROKER_CONFIG, [str(desk.config.node_id)]), 4, node=STRANGER)
    assert [one.error_code for one in answer.results] == [CLUSTER]
    assert not answer.results[0].configs
    answer = desk.ask(altered(BROKER_CONFIG, ["0"]), 1, node=STRANGER)
    assert [one.error_code for one in answer.responses] == [CLUSTER]


def test_the_cluster_shows_what_may_be_done_with_it_to_who_may_look():
    for may, told in ((Rules(), 0), (Rules((AclOperation.DESCRIBE, ResourceType.CLUSTER)), 1 << 8)):
        desk = Town(may).desk
        request = DescribeClusterRequest(include_cluster_authorized_operations=True)
        answer = desk.ask(request, 1, node=STRANGER)
        assert answer.error_code == 0
        assert answer.cluster_authorized_operations == told
        asked = MetadataRequest(topics=[], include_cluster_authorized_operations=True)
        answer = desk.ask(asked, 9, node=STRANGER)
        assert answer.cluster_authorized_operations == told


def test_who_may_describe_the_cluster_sees_all_groups():
    desk = Town(Rules((AclOperation.DESCRIBE, ResourceType.CLUSTER))).desk

    groups = desk.ask(ListGroupsRequest(), 5, node=STRANGER).groups

    assert {one.group_id for one in groups} >= {"open", "secret"}


def test_a_refusal_gives_nothing_away():
    """Neither what a secret topic is called, nor whether there is one."""
    town = Town()
    desk, ids = town.desk, town.ids
    told = [
        desk.ask(metadata([name]), 12, node=STRANGER).topics[0] for name in ("secret", "secret-no")
    ]
    for one in told:
        one.name = ""
    assert told[0] == told[1]
    assert told[0].topic_authorized_operations == NOT_ASKED
    by_id = MetadataRequest(topics=[MetadataRequestTopic(topic_id=ids["secret"], name=None)])
    assert desk.ask(by_id, 12, node=STRANGER).topics[0].name is None
    for name in ("secret", "secret-no"):
        answer = desk.ask(deleted([DeleteTopicState(name=name)]), 6, node=STRANGER)
        assert answer.responses[0].error_code == TOPIC
        assert answer.responses[0].topic_id == bytes(16)
        assert desk.produce(name, node=STRANGER).error_code == TOPIC
        answer = desk.ask(commit("both", [name]), 9, node=STRANGER)
        assert partition_codes()(answer) == [TOPIC]
    answer = desk.ask(deleted([DeleteTopicState(topic_id=ids["secret"])]), 6, node=STRANGER)
    assert answer.responses[0].name is None


def test_who_may_describe_but_not_delete_is_told_the_name():
    town = Town(Rules((AclOperation.DESCRIBE, ResourceType.TOPIC)))
    by_id = DeleteTopicState(topic_id=town.ids["secret"])

    (told,) = town.desk.ask(deleted([by_id]), 6, node=STRANGER).responses

    assert (told.name, told.error_code) == ("secret", TOPIC)
    missing = DeleteTopicState(name="secret-no")
    (told,) = town.desk.ask(deleted([missing]), 6, node=STRANGER).responses
    assert told.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_what_is_allowed_on_the_cluster_is_allowed_for_every_topic():
    town = Town(
        Rules(
            (AclOperation.CREATE, ResourceType.CLUSTER), (AclOperation.DELETE, ResourceType.CLUSTER)
        )
    )
    answer = town.desk.ask(created(["secret-new"]), 7, node=STRANGER)
    (told,) = answer.topics
    assert told.error_code == 0
    # Its settings are another matter.
    assert told.topic_config_error_code == TOPIC
    assert (told.num_partitions, told.replication_factor, told.configs) == (-1, -1, [])
    answer = town.desk.ask(deleted([DeleteTopicState(name="secret-new")]), 6, node=STRANGER)
    assert answer.responses[0].error_code == 0


def test_a_topic_is_made_by_default_for_who_may_create_it():
    looking = (AclOperation.DESCRIBE, ResourceType.TOPIC)
    for may, told, made in (
        (Rules(looking), TOPIC, False),
        (
            Rules(looking, (AclOperation.CREATE, ResourceType.CLUSTER)),
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            True,
        ),
    ):
        desk = Town(may).desk
        (answer,) = desk.ask(metadata(["secret-new"], create=True), 12, node=STRANGER).topics
        assert answer.error_code == told
        assert ("secret-new" in desk.cluster.catalog.by_name) == made


def test_a_consumer_group_with_a_secret_topic_is_not_described():
    desk = Town().desk
    desk.ask(joining("mixed", ["open", "secret"]), 1)
    request = ConsumerGroupDescribeRequest(group_ids=["mixed"], include_authorized_operations=True)

    (told,) = desk.ask(request, 1, node=STRANGER).groups

    assert told.error_code == TOPIC
    assert (told.members, told.authorized_operations) == ([], NOT_ASKED)
    assert len(desk.ask(request, 1).groups[0].members) == 1


def test_a_fetch_waits_for_what_is_allowed():
    """A refused topic in it neither ends the wait nor is forgotten."""
    town = Town()
    request = fetch(town, ["open", "secret"], by_id=False)
    for topic in request.topics:
        topic.partitions[0].fetch_offset = 1
    asked = town.desk.send(request, 12, node=STRANGER)
    town.desk.settle()
    assert asked.answer is None

    town.desk.produce("open")

    assert partition_codes("responses")(asked.answer) == [0, TOPIC]
    assert asked.answer.responses[0].partitions[0].records


def test_a_remembered_heartbeat_answers_nobody_else():
    desk = Town().desk
    joined = desk.ask(joining("secret-members", ["other"]), 1)
    beat = ConsumerGroupHeartbeatRequest(
        group_id="secret-members", member_id="m", member_epoch=joined.member_epoch
    )
    for _ in range(3):
        assert desk.ask(beat, 1).error_code == 0

    assert desk.ask(beat, 1, node=STRANGER).error_code == GROUP
    assert desk.ask(beat, 1).error_code == 0


def test_a_forbidden_heartbeat_is_never_remembered():
    """A client that was a member before it was forbidden to be one is not answered from memory."""
    forbidden = False

    def may(_client, _operation, kind, _name):
        return not (forbidden and kind is ResourceType.GROUP)

    desk = Town(may).desk
    joined = desk.ask(joining("open-members", ["other"]), 1)
    beat = ConsumerGroupHeartbeatRequest(
        group_id="open-members", member_id="m", member_epoch=joined.member_epoch
    )
    forbidden = True

    assert [desk.ask(beat, 1).error_code for _ in range(3)] == [GROUP] * 3


@pytest.mark.parametrize(
    ("kind", "bits"),
    [
        (ResourceType.CLUSTER, 8096),
        (ResourceType.TOPIC, 3576),
        (ResourceType.GROUP, 3400),
        (ResourceType.TRANSACTIONAL_ID, 272),
    ],
)
def test_operations_are_bit_fields(kind, bits):
    """KIP-430: what everybody gets, asked one by one or not."""
    anybody = Client("c", "/127.0.0.1")
    assert operations(everyone_may, anybody, kind, "a") == bits
    assert operations(lambda *_: True, anybody, kind, "a") == bits
    assert operations(lambda *_: False, anybody, kind, "a") == 0
    assert (
        operations(lambda _, asked, *__: asked is AclOperation.DESCRIBE, anybody, kind, "a") == 256
    )


def test_what_may_be_done_with_the_cluster():
    anybody = Client("c", "/127.0.0.1")
    assert cluster_operations(everyone_may, anybody) == 8096
    assert cluster_operations(lambda _, asked, *__: asked is AclOperation.ALTER, anybody) == 0


@pytest.mark.parametrize(
    ("kind", "code", "text"),
    [
        (ResourceType.TOPIC, 29, "Topic authorization failed."),
        (ResourceType.GROUP, 30, "Group authorization failed."),
        (ResourceType.CLUSTER, 31, "Cluster authorization failed."),
        (ResourceType.TRANSACTIONAL_ID, 53, "Transactional Id authorization failed."),
    ],
)
def test_refusals_have_the_code_of_their_kind(kind, code, text):
    anybody = Client("c", "/127.0.0.1")
    check(everyone_may, anybody, AclOperation.READ, kind, "a")
    with pytest.raises(ApiError) as refused:
        check(lambda *_: False, anybody, AclOperation.READ, kind, "a")
    assert (refused.value.code, refused.value.message) == (code, text)
