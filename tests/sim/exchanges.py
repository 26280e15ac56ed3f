# SPDX-License-Identifier: Apache-2.0
"""Requests with answers that acknowledge them, for tests of what must be on the disk by then."""

from kohort.wire import batch as batches
from kohort.wire.messages import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    alter_user_scram_credentials,
    consumer_group_heartbeat,
    consumer_group_install_assignment,
    create_acls,
    create_partitions,
    create_topics,
    delete_acls,
    delete_groups,
    delete_records,
    delete_topics,
    end_txn,
    incremental_alter_configs,
    init_producer_id,
    join_group,
    leave_group,
    offset_commit,
    offset_delete,
    produce,
    sync_group,
    txn_offset_commit,
    write_txn_markers,
)

TOPIC_ID = b"t" * 16
PLACE = offset_commit.OffsetCommitRequestPartition(
    partition_index=0, committed_offset=3, committed_metadata=""
)
PRODUCED = produce.PartitionProduceData(index=0, records=batches.build([(None, b"v")], 1))
IN_A_TRANSACTION = batches.build(
    [(None, b"v")], 1, producer_id=1, producer_epoch=0, transactional=True
)
RULE = {
    "resource_type": 2,
    "resource_name": "t",
    "principal": "User:u",
    "host": "*",
    "operation": 3,
    "permission_type": 3,
}
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
    "Produce, several in a transaction": (
        produce.ProduceRequest(
            transactional_id="x",
            acks=-1,
            timeout_ms=1,
            topic_data=[
                produce.TopicProduceData(
                    name="t",
                    partition_data=[
                        produce.PartitionProduceData(index=index, records=IN_A_TRANSACTION)
                        for index in (0, 1, 2)
                    ],
                )
            ],
        ),
        produce.ProduceResponse(
            responses=[
                produce.TopicProduceResponse(
                    name="t",
                    partition_responses=[
                        produce.PartitionProduceResponse(index=0),
                        produce.PartitionProduceResponse(index=1, base_offset=6),
                        produce.PartitionProduceResponse(index=2, error_code=6, base_offset=-1),
                    ],
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
    "ConsumerGroupHeartbeat, partitions": (
        consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(group_id="g", member_id="m"),
        consumer_group_heartbeat.ConsumerGroupHeartbeatResponse(
            member_id="m",
            member_epoch=2,
            assignment=consumer_group_heartbeat.Assignment(
                topic_partitions=[
                    consumer_group_heartbeat.TopicPartitions(topic_id=TOPIC_ID, partitions=[0, 1])
                ]
            ),
        ),
    ),
    "ConsumerGroupInstallAssignment": (
        consumer_group_install_assignment.ConsumerGroupInstallAssignmentRequest(
            group_id="g", member_id="m", member_epoch=1, group_epoch=2, error=0, members=[]
        ),
        consumer_group_install_assignment.ConsumerGroupInstallAssignmentResponse(),
    ),
    "SyncGroup": (
        sync_group.SyncGroupRequest(group_id="g", generation_id=1, member_id="m", assignments=[]),
        sync_group.SyncGroupResponse(assignment=b"a"),
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
                    resource_name=name,
                    configs=[
                        incremental_alter_configs.AlterableConfig(
                            name="n", config_operation=0, value="1"
                        )
                    ],
                )
                for kind, name in ((2, "t"), (4, ""), (32, "g"))
            ],
            validate_only=False,
        ),
        incremental_alter_configs.IncrementalAlterConfigsResponse(
            responses=[incremental_alter_configs.AlterConfigsResourceResponse() for _ in range(3)]
        ),
    ),
    "CreateAcls": (
        create_acls.CreateAclsRequest(creations=[create_acls.AclCreation(**RULE)]),
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

TAKEN_AWAY = {
    "OffsetDelete": (
        offset_delete.OffsetDeleteRequest(group_id="g", topics=[]),
        offset_delete.OffsetDeleteResponse(
            topics=[
                offset_delete.OffsetDeleteResponseTopic(
                    name="t",
                    partitions=[offset_delete.OffsetDeleteResponsePartition(partition_index=0)],
                )
            ]
        ),
    ),
    "DeleteGroups": (
        delete_groups.DeleteGroupsRequest(groups_names=["g"]),
        delete_groups.DeleteGroupsResponse(
            results=[delete_groups.DeletableGroupResult(group_id="g")]
        ),
    ),
    "DeleteTopics": (
        delete_topics.DeleteTopicsRequest(timeout_ms=1),
        delete_topics.DeleteTopicsResponse(
            responses=[delete_topics.DeletableTopicResult(name="t")]
        ),
    ),
    "DeleteTopics, by id": (
        delete_topics.DeleteTopicsRequest(timeout_ms=1),
        delete_topics.DeleteTopicsResponse(
            responses=[delete_topics.DeletableTopicResult(name=None, topic_id=TOPIC_ID)]
        ),
    ),
    "DeleteAcls": (
        delete_acls.DeleteAclsRequest(filters=[]),
        delete_acls.DeleteAclsResponse(
            filter_results=[
                delete_acls.DeleteAclsFilterResult(
                    matching_acls=[delete_acls.DeleteAclsMatchingAcl(**RULE)]
                )
            ]
        ),
    ),
    "LeaveGroup": (
        leave_group.LeaveGroupRequest(group_id="g", member_id="m"),
        leave_group.LeaveGroupResponse(),
    ),
    "LeaveGroup, several": (
        leave_group.LeaveGroupRequest(group_id="g"),
        leave_group.LeaveGroupResponse(
            members=[leave_group.MemberResponse(member_id=member) for member in ("m", "n")]
        ),
    ),
    "ConsumerGroupHeartbeat, leaves": (
        consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(group_id="g", member_id="m"),
        consumer_group_heartbeat.ConsumerGroupHeartbeatResponse(member_id="m", member_epoch=-1),
    ),
}
"""What these acknowledge must be gone from the disk."""

JOINED = (
    join_group.JoinGroupRequest(
        group_id="g", session_timeout_ms=1, member_id="", protocol_type="consumer", protocols=[]
    ),
    join_group.JoinGroupResponse(generation_id=1, member_id="m"),
)
"""Judged only where a record of the generation is there."""
