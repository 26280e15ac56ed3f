# SPDX-License-Identifier: Apache-2.0
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


_SERVED: list[tuple[type[Any], str]] = [
    (produce.ProduceRequest, "3-13"),
    (fetch.FetchRequest, "4-18"),
    (list_offsets.ListOffsetsRequest, "1-11"),
    (metadata.MetadataRequest, "0-13"),
    (offset_commit.OffsetCommitRequest, "2-10"),
    (offset_fetch.OffsetFetchRequest, "1-10"),
    (find_coordinator.FindCoordinatorRequest, "0-6"),
    (join_group.JoinGroupRequest, "0-9"),
    (heartbeat.HeartbeatRequest, "0-4"),
    (leave_group.LeaveGroupRequest, "0-5"),
    (sync_group.SyncGroupRequest, "0-5"),
    (describe_groups.DescribeGroupsRequest, "0-6"),
    (list_groups.ListGroupsRequest, "0-5"),
    (sasl_handshake.SaslHandshakeRequest, "0-1"),
    (api_versions.ApiVersionsRequest, "0-4"),
    (create_topics.CreateTopicsRequest, "2-7"),
    (delete_topics.DeleteTopicsRequest, "1-6"),
    (delete_records.DeleteRecordsRequest, "0-2"),
    (init_producer_id.InitProducerIdRequest, "0-5"),
    (offset_for_leader_epoch.OffsetForLeaderEpochRequest, "2-4"),
    (describe_acls.DescribeAclsRequest, "1-3"),
    (create_acls.CreateAclsRequest, "1-3"),
    (delete_acls.DeleteAclsRequest, "1-3"),
    (add_partitions_to_txn.AddPartitionsToTxnRequest, "0-5"),
    (add_offsets_to_txn.AddOffsetsToTxnRequest, "0-4"),
    (end_txn.EndTxnRequest, "0-5"),
    (write_txn_markers.WriteTxnMarkersRequest, "1-2"),
    (txn_offset_commit.TxnOffsetCommitRequest, "0-5"),
    (describe_configs.DescribeConfigsRequest, "1-4"),
    (alter_configs.AlterConfigsRequest, "0-2"),
    (alter_replica_log_dirs.AlterReplicaLogDirsRequest, "1-2"),
    (describe_log_dirs.DescribeLogDirsRequest, "1-5"),
    (sasl_authenticate.SaslAuthenticateRequest, "0-2"),
    (create_partitions.CreatePartitionsRequest, "0-3"),
    (create_delegation_token.CreateDelegationTokenRequest, "1-3"),
    (renew_delegation_token.RenewDelegationTokenRequest, "1-2"),
    (expire_delegation_token.ExpireDelegationTokenRequest, "1-2"),
    (describe_delegation_token.DescribeDelegationTokenRequest, "1-3"),
    (delete_groups.DeleteGroupsRequest, "0-2"),
    (elect_leaders.ElectLeadersRequest, "0-2"),
    (incremental_alter_configs.IncrementalAlterConfigsRequest, "0-1"),
    (alter_partition_reassignments.AlterPartitionReassignmentsRequest, "0-1"),
    (list_partition_reassignments.ListPartitionReassignmentsRequest, "0"),
    (offset_delete.OffsetDeleteRequest, "0"),
    (describe_client_quotas.DescribeClientQuotasRequest, "0-1"),
    (alter_client_quotas.AlterClientQuotasRequest, "0-1"),
    (describe_user_scram_credentials.DescribeUserScramCredentialsRequest, "0"),
    (alter_user_scram_credentials.AlterUserScramCredentialsRequest, "0"),
    (update_features.UpdateFeaturesRequest, "0-2"),
    (describe_cluster.DescribeClusterRequest, "0-2"),
    (describe_producers.DescribeProducersRequest, "0"),
    (describe_transactions.DescribeTransactionsRequest, "0"),
    (list_transactions.ListTransactionsRequest, "0-2"),
    (consumer_group_heartbeat.ConsumerGroupHeartbeatRequest, "0-1"),
    (consumer_group_describe.ConsumerGroupDescribeRequest, "0-1"),
    (list_config_resources.ListConfigResourcesRequest, "0-1"),
    (describe_topic_partitions.DescribeTopicPartitionsRequest, "0"),
    (consumer_group_prepare_assignment.ConsumerGroupPrepareAssignmentRequest, "0"),
    (consumer_group_install_assignment.ConsumerGroupInstallAssignmentRequest, "0"),
]

APIS: dict[int, Api] = {
    request.api_key: Api(
        request.api_key, request.name, request, request.response, Versions.of(versions)
    )
    for request, versions in _SERVED
}
