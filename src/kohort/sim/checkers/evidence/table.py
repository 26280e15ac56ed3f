# SPDX-License-Identifier: Apache-2.0
"""Which evidence each API that changes something must leave, and which APIs change nothing. A test
holds the two against the table of APIs.
"""

from kohort.sim.checkers.evidence import catalog, groups, records, transactions
from kohort.sim.checkers.evidence.exchange import Evidence

EVIDENCE: dict[str, Evidence] = {
    "Produce": records.produce,
    "OffsetCommit": groups.offset_commit,
    "TxnOffsetCommit": transactions.txn_offset_commit,
    "OffsetDelete": groups.offset_delete,
    "DeleteGroups": groups.delete_groups,
    "ConsumerGroupHeartbeat": groups.heartbeat,
    "ConsumerGroupInstallAssignment": groups.install,
    "JoinGroup": groups.join_group,
    "SyncGroup": groups.sync_group,
    "LeaveGroup": groups.leave_group,
    "InitProducerId": transactions.init_producer_id,
    "EndTxn": transactions.end_txn,
    "AddPartitionsToTxn": transactions.add_partitions,
    "AddOffsetsToTxn": transactions.add_offsets,
    "WriteTxnMarkers": transactions.write_markers,
    "DeleteRecords": records.delete_records,
    "CreateTopics": catalog.create_topics,
    "DeleteTopics": catalog.delete_topics,
    "CreatePartitions": catalog.create_partitions,
    "AlterConfigs": catalog.alter_configs,
    "IncrementalAlterConfigs": catalog.alter_configs,
    "CreateAcls": catalog.create_acls,
    "DeleteAcls": catalog.delete_acls,
    "AlterUserScramCredentials": catalog.alter_scram,
}

READS = frozenset(
    {
        "Fetch", "ListOffsets", "Metadata", "OffsetFetch", "FindCoordinator", "Heartbeat",
        "DescribeGroups", "ListGroups", "ApiVersions", "OffsetForLeaderEpoch", "DescribeAcls",
        "DescribeConfigs", "AlterReplicaLogDirs", "DescribeLogDirs", "ElectLeaders",
        "AlterPartitionReassignments", "ListPartitionReassignments",
        "SaslHandshake", "SaslAuthenticate", "CreateDelegationToken", "RenewDelegationToken",
        "ExpireDelegationToken", "DescribeDelegationToken", "DescribeClientQuotas",
        "AlterClientQuotas",
        "DescribeUserScramCredentials", "UpdateFeatures", "DescribeCluster", "DescribeProducers",
        "DescribeTransactions", "ListTransactions", "ConsumerGroupDescribe",
        "ListConfigResources", "DescribeTopicPartitions", "ConsumerGroupPrepareAssignment",
    }
)  # fmt: skip
"""Those of them that name a change (ElectLeaders and others) change nothing here: the nodes share
one copy."""
