"""The table of APIs: what a key means, and which versions of it are served.

ApiVersions answers from this table, so it is never wrong. A version is listed here once it is fully
implemented.
"""

from typing import Any, NamedTuple

from kohort.wire.messages import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    alter_client_quotas,
    alter_configs,
    alter_partition_reassignments,
    alter_replica_log_dirs,
    alter_user_scram_credentials,
    api_versions,
    consumer_group_describe,
    consumer_group_heartbeat,
    consumer_group_install_assignment,
    consumer_group_prepare_assignment,
    create_acls,
    create_delegation_token,
    create_partitions,
    create_topics,
    delete_acls,
    delete_groups,
    delete_records,
    delete_topics,
    describe_acls,
    describe_client_quotas,
    describe_cluster,
    describe_configs,
    describe_delegation_token,
    describe_groups,
    describe_log_dirs,
    describe_producers,
    describe_topic_partitions,
    describe_transactions,
    describe_user_scram_credentials,
    elect_leaders,
    end_txn,
    expire_delegation_token,
    fetch,
    find_coordinator,
    heartbeat,
    incremental_alter_configs,
    init_producer_id,
    join_group,
    leave_group,
    list_config_resources,
    list_groups,
    list_offsets,
    list_partition_reassignments,
    list_transactions,
    metadata,
    offset_commit,
    offset_delete,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
    renew_delegation_token,
    sasl_authenticate,
    sasl_handshake,
    sync_group,
    txn_offset_commit,
    update_features,
    write_txn_markers,
)
from kohort.wire.schema import Versions


class Api(NamedTuple):
    """One API: its messages and the versions served."""

    key: int
    name: str
    request: type[Any]
    response: type[Any]
    versions: Versions

    def flexible(self, version: int) -> bool:
        """Whether the request of this version, and so its header, is flexible."""
        return version in self.request.flexible


_SERVED: list[tuple[type[Any], type[Any], str]] = [
    (produce.ProduceRequest, produce.ProduceResponse, "3-13"),
    (fetch.FetchRequest, fetch.FetchResponse, "4-18"),
    (list_offsets.ListOffsetsRequest, list_offsets.ListOffsetsResponse, "1-11"),
    (metadata.MetadataRequest, metadata.MetadataResponse, "0-13"),
    (offset_commit.OffsetCommitRequest, offset_commit.OffsetCommitResponse, "2-10"),
    (offset_fetch.OffsetFetchRequest, offset_fetch.OffsetFetchResponse, "1-10"),
    (find_coordinator.FindCoordinatorRequest, find_coordinator.FindCoordinatorResponse, "0-6"),
    (join_group.JoinGroupRequest, join_group.JoinGroupResponse, "0-9"),
    (heartbeat.HeartbeatRequest, heartbeat.HeartbeatResponse, "0-4"),
    (leave_group.LeaveGroupRequest, leave_group.LeaveGroupResponse, "0-5"),
    (sync_group.SyncGroupRequest, sync_group.SyncGroupResponse, "0-5"),
    (describe_groups.DescribeGroupsRequest, describe_groups.DescribeGroupsResponse, "0-6"),
    (list_groups.ListGroupsRequest, list_groups.ListGroupsResponse, "0-5"),
    (
        sasl_handshake.SaslHandshakeRequest,
        sasl_handshake.SaslHandshakeResponse,
        "0-1",
    ),
    (api_versions.ApiVersionsRequest, api_versions.ApiVersionsResponse, "0-4"),
    (create_topics.CreateTopicsRequest, create_topics.CreateTopicsResponse, "2-7"),
    (delete_topics.DeleteTopicsRequest, delete_topics.DeleteTopicsResponse, "1-6"),
    (delete_records.DeleteRecordsRequest, delete_records.DeleteRecordsResponse, "0-2"),
    (init_producer_id.InitProducerIdRequest, init_producer_id.InitProducerIdResponse, "0-5"),
    (
        offset_for_leader_epoch.OffsetForLeaderEpochRequest,
        offset_for_leader_epoch.OffsetForLeaderEpochResponse,
        "2-4",
    ),
    (describe_acls.DescribeAclsRequest, describe_acls.DescribeAclsResponse, "1-3"),
    (create_acls.CreateAclsRequest, create_acls.CreateAclsResponse, "1-3"),
    (delete_acls.DeleteAclsRequest, delete_acls.DeleteAclsResponse, "1-3"),
    (
        add_partitions_to_txn.AddPartitionsToTxnRequest,
        add_partitions_to_txn.AddPartitionsToTxnResponse,
        "0-5",
    ),
    (
        add_offsets_to_txn.AddOffsetsToTxnRequest,
        add_offsets_to_txn.AddOffsetsToTxnResponse,
        "0-4",
    ),
    (end_txn.EndTxnRequest, end_txn.EndTxnResponse, "0-5"),
    (write_txn_markers.WriteTxnMarkersRequest, write_txn_markers.WriteTxnMarkersResponse, "1-2"),
    (txn_offset_commit.TxnOffsetCommitRequest, txn_offset_commit.TxnOffsetCommitResponse, "0-5"),
    (describe_configs.DescribeConfigsRequest, describe_configs.DescribeConfigsResponse, "1-4"),
    (alter_configs.AlterConfigsRequest, alter_configs.AlterConfigsResponse, "0-2"),
    (
        alter_replica_log_dirs.AlterReplicaLogDirsRequest,
        alter_replica_log_dirs.AlterReplicaLogDirsResponse,
        "1-2",
    ),
    (describe_log_dirs.DescribeLogDirsRequest, describe_log_dirs.DescribeLogDirsResponse, "1-5"),
    (
        sasl_authenticate.SaslAuthenticateRequest,
        sasl_authenticate.SaslAuthenticateResponse,
        "0-2",
    ),
    (create_partitions.CreatePartitionsRequest, create_partitions.CreatePartitionsResponse, "0-3"),
    (
        create_delegation_token.CreateDelegationTokenRequest,
        create_delegation_token.CreateDelegationTokenResponse,
        "1-3",
    ),
    (
        renew_delegation_token.RenewDelegationTokenRequest,
        renew_delegation_token.RenewDelegationTokenResponse,
        "1-2",
    ),
    (
        expire_delegation_token.ExpireDelegationTokenRequest,
        expire_delegation_token.ExpireDelegationTokenResponse,
        "1-2",
    ),
    (
        describe_delegation_token.DescribeDelegationTokenRequest,
        describe_delegation_token.DescribeDelegationTokenResponse,
        "1-3",
    ),
    (delete_groups.DeleteGroupsRequest, delete_groups.DeleteGroupsResponse, "0-2"),
    (elect_leaders.ElectLeadersRequest, elect_leaders.ElectLeadersResponse, "0-2"),
    (
        incremental_alter_configs.IncrementalAlterConfigsRequest,
        incremental_alter_configs.IncrementalAlterConfigsResponse,
        "0-1",
    ),
    (
        alter_partition_reassignments.AlterPartitionReassignmentsRequest,
        alter_partition_reassignments.AlterPartitionReassignmentsResponse,
        "0-1",
    ),
    (
        list_partition_reassignments.ListPartitionReassignmentsRequest,
        list_partition_reassignments.ListPartitionReassignmentsResponse,
        "0",
    ),
    (offset_delete.OffsetDeleteRequest, offset_delete.OffsetDeleteResponse, "0"),
    (
        describe_client_quotas.DescribeClientQuotasRequest,
        describe_client_quotas.DescribeClientQuotasResponse,
        "0-1",
    ),
    (
        alter_client_quotas.AlterClientQuotasRequest,
        alter_client_quotas.AlterClientQuotasResponse,
        "0-1",
    ),
    (
        describe_user_scram_credentials.DescribeUserScramCredentialsRequest,
        describe_user_scram_credentials.DescribeUserScramCredentialsResponse,
        "0",
    ),
    (
        alter_user_scram_credentials.AlterUserScramCredentialsRequest,
        alter_user_scram_credentials.AlterUserScramCredentialsResponse,
        "0",
    ),
    (update_features.UpdateFeaturesRequest, update_features.UpdateFeaturesResponse, "0-2"),
    (describe_cluster.DescribeClusterRequest, describe_cluster.DescribeClusterResponse, "0-2"),
    (
        describe_producers.DescribeProducersRequest,
        describe_producers.DescribeProducersResponse,
        "0",
    ),
    (
        describe_transactions.DescribeTransactionsRequest,
        describe_transactions.DescribeTransactionsResponse,
        "0",
    ),
    (list_transactions.ListTransactionsRequest, list_transactions.ListTransactionsResponse, "0-2"),
    (
        consumer_group_heartbeat.ConsumerGroupHeartbeatRequest,
        consumer_group_heartbeat.ConsumerGroupHeartbeatResponse,
        "0-1",
    ),
    (
        consumer_group_describe.ConsumerGroupDescribeRequest,
        consumer_group_describe.ConsumerGroupDescribeResponse,
        "0-1",
    ),
    (
        list_config_resources.ListConfigResourcesRequest,
        list_config_resources.ListConfigResourcesResponse,
        "0-1",
    ),
    (
        describe_topic_partitions.DescribeTopicPartitionsRequest,
        describe_topic_partitions.DescribeTopicPartitionsResponse,
        "0",
    ),
    (
        consumer_group_prepare_assignment.ConsumerGroupPrepareAssignmentRequest,
        consumer_group_prepare_assignment.ConsumerGroupPrepareAssignmentResponse,
        "0",
    ),
    (
        consumer_group_install_assignment.ConsumerGroupInstallAssignmentRequest,
        consumer_group_install_assignment.ConsumerGroupInstallAssignmentResponse,
        "0",
    ),
]

APIS: dict[int, Api] = {
    request.api_key: Api(request.api_key, request.name, request, response, Versions.of(versions))
    for request, response, versions in _SERVED
}
