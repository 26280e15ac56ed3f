# SPDX-License-Identifier: Apache-2.0
"""Where each request goes: to a function of this node, to one shard, or to several and back.

Every API that is served has a row in ROUTES; a test checks that.
"""

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from kohort.errors import ApiError
from kohort.machines.effects import Call
from kohort.server.apis import (
    acls,
    alter_configs,
    alter_replica_log_dirs,
    api_versions,
    authentication,
    client_quotas,
    create_partitions,
    create_topics,
    delete_records,
    delete_topics,
    describe_cluster,
    describe_configs,
    describe_log_dirs,
    describe_producers,
    fetch,
    find_coordinator,
    groups,
    leader_epochs,
    list_config_resources,
    list_offsets,
    metadata,
    offset_commit,
    offset_delete,
    offset_fetch,
    produce,
    producer_ids,
    replicas,
    scram_credentials,
    topic_partitions,
    transactions,
    txn_offset_commit,
    update_features,
    write_txn_markers,
)
from kohort.server.node import Node
from kohort.server.requests.steps import Steps, StepwiseRequest
from kohort.terms import Millis
from kohort.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from kohort.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from kohort.wire.messages.alter_client_quotas import AlterClientQuotasRequest
from kohort.wire.messages.alter_configs import AlterConfigsRequest
from kohort.wire.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from kohort.wire.messages.alter_replica_log_dirs import AlterReplicaLogDirsRequest
from kohort.wire.messages.alter_user_scram_credentials import AlterUserScramCredentialsRequest
from kohort.wire.messages.api_versions import ApiVersionsRequest
from kohort.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from kohort.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kohort.wire.messages.consumer_group_install_assignment import (
    ConsumerGroupInstallAssignmentRequest,
)
from kohort.wire.messages.consumer_group_prepare_assignment import (
    ConsumerGroupPrepareAssignmentRequest,
)
from kohort.wire.messages.create_acls import CreateAclsRequest
from kohort.wire.messages.create_delegation_token import CreateDelegationTokenRequest
from kohort.wire.messages.create_partitions import CreatePartitionsRequest
from kohort.wire.messages.create_topics import CreateTopicsRequest
from kohort.wire.messages.delete_acls import DeleteAclsRequest
from kohort.wire.messages.delete_groups import DeleteGroupsRequest
from kohort.wire.messages.delete_records import DeleteRecordsRequest
from kohort.wire.messages.delete_topics import DeleteTopicsRequest
from kohort.wire.messages.describe_acls import DescribeAclsRequest
from kohort.wire.messages.describe_client_quotas import DescribeClientQuotasRequest
from kohort.wire.messages.describe_cluster import DescribeClusterRequest
from kohort.wire.messages.describe_configs import DescribeConfigsRequest
from kohort.wire.messages.describe_delegation_token import DescribeDelegationTokenRequest
from kohort.wire.messages.describe_groups import DescribeGroupsRequest
from kohort.wire.messages.describe_log_dirs import DescribeLogDirsRequest
from kohort.wire.messages.describe_producers import DescribeProducersRequest
from kohort.wire.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from kohort.wire.messages.describe_transactions import DescribeTransactionsRequest
from kohort.wire.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest
from kohort.wire.messages.elect_leaders import ElectLeadersRequest
from kohort.wire.messages.end_txn import EndTxnRequest
from kohort.wire.messages.expire_delegation_token import ExpireDelegationTokenRequest
from kohort.wire.messages.fetch import FetchRequest
from kohort.wire.messages.find_coordinator import FindCoordinatorRequest
from kohort.wire.messages.heartbeat import HeartbeatRequest
from kohort.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from kohort.wire.messages.init_producer_id import InitProducerIdRequest
from kohort.wire.messages.join_group import JoinGroupRequest
from kohort.wire.messages.leave_group import LeaveGroupRequest
from kohort.wire.messages.list_config_resources import ListConfigResourcesRequest
from kohort.wire.messages.list_groups import ListGroupsRequest
from kohort.wire.messages.list_offsets import ListOffsetsRequest
from kohort.wire.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from kohort.wire.messages.list_transactions import ListTransactionsRequest
from kohort.wire.messages.metadata import MetadataRequest
from kohort.wire.messages.offset_commit import OffsetCommitRequest
from kohort.wire.messages.offset_delete import OffsetDeleteRequest
from kohort.wire.messages.offset_fetch import OffsetFetchRequest
from kohort.wire.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from kohort.wire.messages.produce import ProduceRequest
from kohort.wire.messages.renew_delegation_token import RenewDelegationTokenRequest
from kohort.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from kohort.wire.messages.sasl_handshake import SaslHandshakeRequest
from kohort.wire.messages.sync_group import SyncGroupRequest
from kohort.wire.messages.txn_offset_commit import TxnOffsetCommitRequest
from kohort.wire.messages.update_features import UpdateFeaturesRequest
from kohort.wire.messages.write_txn_markers import WriteTxnMarkersRequest

Handle = Callable[[Node, Call[Any], Millis], None]


class Route(Struct, frozen=True):
    """How a request is handled.

    `pipelined`: it may be handled while earlier requests of its connection wait for the disk.
    Requests whose answers may be large are not, so that a client has one such answer at a time.
    `waits`: its answer may wait for another client, and holds back what is behind it.
    `keeps_texts`: its texts go into records of a machine, so they must fit into a record.
    `in_parts`: others come in between, however much it names. Any other request is handled in one
    piece, and may name less.
    """

    handle: Handle
    pipelined: bool = False
    waits: bool = False
    keeps_texts: bool = False
    in_parts: bool = False


def here(
    handler: Callable[[Node, Call[Any], Millis], Any],
    *,
    pipelined: bool = False,
    waits: bool = False,
    keeps_texts: bool = False,
    in_parts: bool = False,
) -> Route:
    """Answered by a function of this node; None means that it has parked the call."""

    def handle(node: Node, call: Call[Any], now: Millis) -> None:
        try:
            response = handler(node, call, now)
        except ApiError as error:
            response = call.request.refused(error)
        if response is not None:
            call.token.answer(response)

    return Route(handle, pipelined, waits, keeps_texts, in_parts)


def in_steps(
    handler: Callable[[Node, Call[Any], Millis], Steps[Any]],
    *,
    waits: bool = False,
    keeps_texts: bool = False,
    in_parts: bool = True,
) -> Route:
    """Answered by a function of this node that yields between its steps."""

    def handle(node: Node, call: Call[Any], now: Millis) -> None:
        scheduler = node.cluster.scheduler
        stepwise = StepwiseRequest(call, handler(node, call, now))
        if stepwise.run(scheduler.over):
            scheduler.enter(stepwise)

    return Route(handle, waits=waits, keeps_texts=keeps_texts, in_parts=in_parts)


def to_shard(
    handler: Callable[[Node, Call[Any]], None],
    *,
    pipelined: bool = False,
    waits: bool = False,
    in_parts: bool = False,
) -> Route:
    """Passed on to the shards of the groups that the request names."""

    def handle(node: Node, call: Call[Any], _now: Millis) -> None:
        try:
            handler(node, call)
        except ApiError as error:
            call.token.answer(call.request.refused(error))

    return Route(handle, pipelined, waits, keeps_texts=True, in_parts=in_parts)


ROUTES: dict[type[Any], Route] = {
    # the cluster
    ApiVersionsRequest: here(api_versions.api_versions),
    MetadataRequest: in_steps(metadata.metadata),
    DescribeClusterRequest: here(describe_cluster.describe_cluster),
    DescribeTopicPartitionsRequest: in_steps(topic_partitions.describe_topic_partitions),
    FindCoordinatorRequest: in_steps(find_coordinator.find_coordinator, waits=True),
    UpdateFeaturesRequest: here(update_features.update_features),
    ElectLeadersRequest: here(replicas.elect_leaders),
    AlterPartitionReassignmentsRequest: here(replicas.alter_partition_reassignments),
    ListPartitionReassignmentsRequest: here(replicas.list_partition_reassignments),
    DescribeLogDirsRequest: in_steps(describe_log_dirs.describe_log_dirs),
    AlterReplicaLogDirsRequest: here(alter_replica_log_dirs.alter_replica_log_dirs),
    # rules and credentials
    DescribeAclsRequest: here(acls.describe_acls),
    CreateAclsRequest: here(acls.create_acls, waits=True),
    DeleteAclsRequest: here(acls.delete_acls, waits=True),
    DescribeUserScramCredentialsRequest: here(scram_credentials.describe_scram_credentials),
    AlterUserScramCredentialsRequest: here(scram_credentials.alter_scram_credentials, waits=True),
    SaslHandshakeRequest: here(authentication.sasl_handshake),
    SaslAuthenticateRequest: here(authentication.sasl_authenticate),
    CreateDelegationTokenRequest: here(authentication.create_token),
    RenewDelegationTokenRequest: here(authentication.renew_token),
    ExpireDelegationTokenRequest: here(authentication.expire_token),
    DescribeDelegationTokenRequest: here(authentication.describe_tokens),
    DescribeClientQuotasRequest: here(client_quotas.describe_client_quotas),
    AlterClientQuotasRequest: here(client_quotas.alter_client_quotas),
    # topics and their settings
    CreateTopicsRequest: here(create_topics.create_topics, waits=True, in_parts=True),
    DeleteTopicsRequest: here(delete_topics.delete_topics, waits=True),
    CreatePartitionsRequest: here(create_partitions.create_partitions, waits=True, in_parts=True),
    DescribeConfigsRequest: in_steps(describe_configs.describe_configs),
    ListConfigResourcesRequest: here(list_config_resources.list_config_resources),
    AlterConfigsRequest: in_steps(alter_configs.alter_configs, waits=True),
    IncrementalAlterConfigsRequest: in_steps(alter_configs.incremental_alter_configs, waits=True),
    # records
    InitProducerIdRequest: here(producer_ids.init_producer_id, waits=True, keeps_texts=True),
    ProduceRequest: here(produce.produce, pipelined=True),
    FetchRequest: here(fetch.fetch, waits=True),
    ListOffsetsRequest: in_steps(list_offsets.list_offsets, waits=True),
    OffsetForLeaderEpochRequest: in_steps(leader_epochs.offset_for_leader_epoch),
    DeleteRecordsRequest: in_steps(delete_records.delete_records, waits=True, in_parts=False),
    # groups
    JoinGroupRequest: to_shard(groups.one_group, pipelined=True, waits=True),
    SyncGroupRequest: to_shard(groups.sync, pipelined=True, waits=True),
    HeartbeatRequest: to_shard(groups.heartbeat, pipelined=True),
    LeaveGroupRequest: to_shard(groups.one_group, pipelined=True),
    ConsumerGroupHeartbeatRequest: to_shard(groups.consumer_heartbeat, pipelined=True),
    ConsumerGroupPrepareAssignmentRequest: to_shard(groups.client_side),
    ConsumerGroupInstallAssignmentRequest: to_shard(groups.client_side),
    OffsetCommitRequest: to_shard(offset_commit.commit_offsets, pipelined=True),
    OffsetFetchRequest: to_shard(offset_fetch.fetch_offsets),
    OffsetDeleteRequest: to_shard(offset_delete.delete_offsets),
    ListGroupsRequest: to_shard(groups.list_groups),
    DescribeGroupsRequest: to_shard(groups.describe_groups, in_parts=True),
    ConsumerGroupDescribeRequest: to_shard(groups.describe_consumer_groups, in_parts=True),
    DeleteGroupsRequest: to_shard(groups.delete_groups, in_parts=True),
    # transactions
    AddPartitionsToTxnRequest: to_shard(transactions.add_partitions),
    AddOffsetsToTxnRequest: to_shard(transactions.add_offsets),
    TxnOffsetCommitRequest: to_shard(txn_offset_commit.commit_offsets),
    EndTxnRequest: to_shard(transactions.end),
    WriteTxnMarkersRequest: in_steps(  # a marker is read and answered whole, whatever is in it
        write_txn_markers.write_markers, keeps_texts=True, in_parts=False
    ),
    DescribeProducersRequest: in_steps(describe_producers.describe_producers),
    DescribeTransactionsRequest: to_shard(transactions.describe),
    ListTransactionsRequest: to_shard(transactions.list_transactions),
}
