"""Each API that changes something is looked for on the disk before its answer leaves."""

import pytest

from kohort.sim.checkers.evidence.exchange import Exchange
from kohort.sim.checkers.evidence.table import EVIDENCE, READS
from kohort.sim.checkers.synced import NOW, Synced
from kohort.sim.disk import MemoryFiles
from kohort.wire import batch as batches
from kohort.wire.apis import APIS
from kohort.wire.messages import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    alter_user_scram_credentials,
    consumer_group_heartbeat,
    consumer_group_install_assignment,
    create_acls,
    create_partitions,
    create_topics,
    delete_records,
    end_txn,
    incremental_alter_configs,
    init_producer_id,
    offset_commit,
    produce,
    sync_group,
    txn_offset_commit,
    write_txn_markers,
)

NAMES = {api.name for api in APIS.values()}
GONE = {"OffsetDelete", "DeleteGroups", "DeleteTopics", "DeleteAcls", "LeaveGroup"}
"""What these take away is not on an empty disk."""
OF_A_RECORD = {"JoinGroup"}
"""Judged only where a record of the generation is there."""
OLDER = {"AlterConfigs": "IncrementalAlterConfigs"}
"""Judged by the same function."""


def test_every_api_either_leaves_evidence_or_changes_nothing():
    assert EVIDENCE.keys() | READS == NAMES
    assert not EVIDENCE.keys() & READS


PLACE = offset_commit.OffsetCommitRequestPartition(
    partition_index=0, committed_offset=3, committed_metadata=""
)
PRODUCED = produce.PartitionProduceData(index=0, records=batches.build([(None, b"v")], 1))
ACKNOWLEDGED = {  # a request and its answer
    "Produce": (
        produce.ProduceRequest(
            acks=-1,
            timeout_ms=1,
            topic_data=[produce.TopicProduceData(name="t", partition_data=[PRODUCED])],
        ),
        produce.ProduceResponse(
            responses=[
                produce.TopicProduceResponse(
                    name="t", partition_responses=[produce.PartitionProduceResponse(index=0)]
                )
            ]
        ),
    ),
    "OffsetCommit": (
        offset_commit.OffsetCommitRequest(
            group_id="g",
            topics=[offset_commit.OffsetCommitRequestTopic(name="t", partitions=[PLACE])],
        ),
        offset_commit.OffsetCommitResponse(
            topics=[
                offset_commit.OffsetCommitResponseTopic(
                    name="t",
                    partitions=[offset_commit.OffsetCommitResponsePartition(partition_index=0)],
                )
            ]
        ),
    ),
    "TxnOffsetCommit": (
        txn_offset_commit.TxnOffsetCommitRequest(
            transactional_id="x",
            group_id="g",
            producer_id=1,
            producer_epoch=0,
            topics=[
                txn_offset_commit.TxnOffsetCommitRequestTopic(
                    name="t",
                    partitions=[
                        txn_offset_commit.TxnOffsetCommitRequestPartition(
                            partition_index=0, committed_offset=3, committed_metadata=""
                        )
                    ],
                )
            ],
        ),
        txn_offset_commit.TxnOffsetCommitResponse(
            topics=[
                txn_offset_commit.TxnOffsetCommitResponseTopic(
                    name="t",
                    partitions=[
                        txn_offset_commit.TxnOffsetCommitResponsePartition(partition_index=0)
                    ],
                )
            ]
        ),
    ),
    "ConsumerGroupHeartbeat": (
        consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(group_id="g", member_id="m"),
        consumer_group_heartbeat.ConsumerGroupHeartbeatResponse(member_id="m", member_epoch=2),
    ),
    "ConsumerGroupInstallAssignment": (
        consumer_group_install_assignment.ConsumerGroupInstallAssignmentRequest(
            group_id="g", member_id="m", member_epoch=1, group_epoch=2, error=0, members=[]
        ),
        consumer_group_install_assignment.ConsumerGroupInstallAssignmentResponse(),
    ),
    "SyncGroup": (
        sync_group.SyncGroupRequest(group_id="g", generation_id=1, member_id="m", assignments=[]),
        sync_group.SyncGroupResponse(assignment=b""),
    ),
    "InitProducerId": (
        init_producer_id.InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=1),
        init_producer_id.InitProducerIdResponse(producer_id=4, producer_epoch=0),
    ),
    "EndTxn": (
        end_txn.EndTxnRequest(
            transactional_id="x", producer_id=1, producer_epoch=0, committed=True
        ),
        end_txn.EndTxnResponse(),
    ),
    "AddPartitionsToTxn": (
        add_partitions_to_txn.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id="x", v3_and_below_producer_id=1
        ),
        add_partitions_to_txn.AddPartitionsToTxnResponse(
            results_by_topic_v3_and_below=[
                add_partitions_to_txn.AddPartitionsToTxnTopicResult(
                    name="t",
                    results_by_partition=[
                        add_partitions_to_txn.AddPartitionsToTxnPartitionResult(partition_index=0)
                    ],
                )
            ]
        ),
    ),
    "AddOffsetsToTxn": (
        add_offsets_to_txn.AddOffsetsToTxnRequest(
            transactional_id="x", producer_id=1, producer_epoch=0, group_id="g"
        ),
        add_offsets_to_txn.AddOffsetsToTxnResponse(),
    ),
    "WriteTxnMarkers": (
        write_txn_markers.WriteTxnMarkersRequest(
            markers=[
                write_txn_markers.WritableTxnMarker(
                    producer_id=1,
                    producer_epoch=0,
                    transaction_result=True,
                    topics=[],
                    coordinator_epoch=0,
                )
            ]
        ),
        write_txn_markers.WriteTxnMarkersResponse(
            markers=[
                write_txn_markers.WritableTxnMarkerResult(
                    producer_id=1,
                    topics=[
                        write_txn_markers.WritableTxnMarkerTopicResult(
                            name="t",
                            partitions=[
                                write_txn_markers.WritableTxnMarkerPartitionResult(
                                    partition_index=0, error_code=0
                                )
                            ],
                        )
                    ],
                )
            ]
        ),
    ),
    "DeleteRecords": (
        delete_records.DeleteRecordsRequest(topics=[], timeout_ms=1),
        delete_records.DeleteRecordsResponse(
            topics=[
                delete_records.DeleteRecordsTopicResult(
                    name="t",
                    partitions=[
                        delete_records.DeleteRecordsPartitionResult(
                            partition_index=0, low_watermark=5
                        )
                    ],
                )
            ]
        ),
    ),
    "CreateTopics": (
        create_topics.CreateTopicsRequest(topics=[]),
        create_topics.CreateTopicsResponse(topics=[create_topics.CreatableTopicResult(name="t")]),
    ),
    "CreatePartitions": (
        create_partitions.CreatePartitionsRequest(
            topics=[create_partitions.CreatePartitionsTopic(name="t", count=3, assignments=None)],
            timeout_ms=1,
            validate_only=False,
        ),
        create_partitions.CreatePartitionsResponse(
            results=[create_partitions.CreatePartitionsTopicResult(name="t")]
        ),
    ),
    "IncrementalAlterConfigs": (
        incremental_alter_configs.IncrementalAlterConfigsRequest(
            resources=[
                incremental_alter_configs.AlterConfigsResource(
                    resource_type=kind,
                    resource_name="g",
                    configs=[
                        incremental_alter_configs.AlterableConfig(
                            name="n", config_operation=0, value="1"
                        )
                    ],
                )
                for kind in (2, 4, 32)
            ],
            validate_only=False,
        ),
        incremental_alter_configs.IncrementalAlterConfigsResponse(
            responses=[incremental_alter_configs.AlterConfigsResourceResponse() for _ in range(3)]
        ),
    ),
    "CreateAcls": (
        create_acls.CreateAclsRequest(
            creations=[
                create_acls.AclCreation(
                    resource_type=2,
                    resource_name="t",
                    principal="User:u",
                    host="*",
                    operation=3,
                    permission_type=3,
                )
            ]
        ),
        create_acls.CreateAclsResponse(results=[create_acls.AclCreationResult()]),
    ),
    "AlterUserScramCredentials": (
        alter_user_scram_credentials.AlterUserScramCredentialsRequest(
            deletions=[],
            upsertions=[
                alter_user_scram_credentials.ScramCredentialUpsertion(
                    name="u", mechanism=1, iterations=4096, salt=b"s", salted_password=b"p"
                )
            ],
        ),
        alter_user_scram_credentials.AlterUserScramCredentialsResponse(
            results=[alter_user_scram_credentials.AlterUserScramCredentialsResult(user="u")]
        ),
    ),
}


def test_each_of_them_is_tried():
    assert ACKNOWLEDGED.keys() == EVIDENCE.keys() - GONE - OF_A_RECORD - OLDER.keys()
    for older, newer in OLDER.items():
        assert EVIDENCE[older] is EVIDENCE[newer]


@pytest.mark.parametrize("api", ACKNOWLEDGED)
def test_an_acknowledgement_is_missing_on_an_empty_disk(api):
    disk = MemoryFiles()
    disk.make_directory("/data")
    disk.sync_directory("")
    request, answer = ACKNOWLEDGED[api]
    said = Exchange(request, answer, 0, NOW, lambda _: "t")
    assert list(EVIDENCE[api](Synced(lambda: disk), said))
