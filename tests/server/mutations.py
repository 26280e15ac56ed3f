# SPDX-License-Identifier: Apache-2.0
"""Every kind of request that changes something, and what a broker changes by itself.

An act sends and does not wait.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

import msgspec
from tests.server.desk import Asked, Desk

from kohort.errors import KohortError
from kohort.wire import batch as batches
from kohort.wire.messages import alter_configs as replacing
from kohort.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from kohort.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from kohort.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from kohort.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kohort.wire.messages.create_acls import AclCreation, CreateAclsRequest
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
from kohort.wire.messages.describe_groups import DescribeGroupsRequest
from kohort.wire.messages.describe_transactions import DescribeTransactionsRequest
from kohort.wire.messages.end_txn import EndTxnRequest
from kohort.wire.messages.find_coordinator import FindCoordinatorRequest
from kohort.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kohort.wire.messages.init_producer_id import InitProducerIdRequest
from kohort.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kohort.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
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
from kohort.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kohort.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from kohort.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kohort.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)

GROUPS = ("committed", "classic", "consumer", "transactional", "configured", "new")
ANY, TOPIC, BROKER, GROUP = 1, 2, 4, 32  # kinds of resources
CONCURRENT_TRANSACTIONS, KAFKA_STORAGE_ERROR, GROUP_ID_NOT_FOUND = 51, 56, 69
SALT, PASSWORD = b"salt" * 5, b"p" * 32

Act = Callable[[Desk], list[Asked]]


def sure(desk: Desk, act: Act) -> Any:
    (asked,) = act(desk)
    desk.settle()
    assert asked.answer is not None
    assert not codes(asked.answer), asked.answer
    return asked.answer


def codes(answer: Any) -> list[int]:
    """Every error code in an answer."""
    found: list[int] = []
    if isinstance(answer, list):
        return [code for part in answer for code in codes(part)]
    if isinstance(answer, msgspec.Struct):
        for name in answer.__struct_fields__:
            value = getattr(answer, name)
            if name.endswith("error_code"):
                found += [int(value)] if value else []
            else:
                found += codes(value)
    return found


def one(request: Any, version: int) -> Act:
    return lambda desk: [desk.send(request, version)]


def commit(group: str, offset: int) -> Act:
    place = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    topic = OffsetCommitRequestTopic(name="orders", partitions=[place])
    return one(OffsetCommitRequest(group_id=group, topics=[topic]), 8)


def acl(name: str) -> Act:
    rule = AclCreation(
        resource_type=TOPIC,
        resource_name=name,
        principal="User:a",
        host="*",
        operation=3,
        permission_type=3,
    )
    return one(CreateAclsRequest(creations=[rule]), 3)


def scram(name: str) -> Act:
    wanted = ScramCredentialUpsertion(
        name=name, mechanism=1, iterations=4096, salt=SALT, salted_password=PASSWORD
    )
    return one(AlterUserScramCredentialsRequest(deletions=[], upsertions=[wanted]), 0)


def altered(kind: int, name: str, key: str, value: str) -> Act:
    config = AlterableConfig(name=key, config_operation=0, value=value)
    resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=[config])
    return one(IncrementalAlterConfigsRequest(resources=[resource], validate_only=False), 1)


def limited(topic: str, value: str) -> Act:
    return altered(TOPIC, topic, "delete.retention.ms", value)


def group_limit(group: str, value: str) -> Act:
    return altered(GROUP, group, "consumer.session.timeout.ms", value)


def broker_limit(value: str) -> Act:
    return altered(BROKER, "", "message.max.bytes", value)


def replaced(topic: str) -> Act:
    config = replacing.AlterableConfig(name="retention.ms", value="86400000")
    resource = replacing.AlterConfigsResource(
        resource_type=TOPIC, resource_name=topic, configs=[config]
    )
    return one(replacing.AlterConfigsRequest(resources=[resource], validate_only=False), 2)


def beat(group: str, epoch: int, member: str = "m", **more: Any) -> Act:
    request = ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id=member,
        member_epoch=epoch,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=["orders"] if epoch == 0 else None,
        topic_partitions=[] if epoch == 0 else None,
        **more,
    )
    return one(request, 1)


def join(group: str, member: str = "") -> Act:
    request = JoinGroupRequest(
        group_id=group,
        session_timeout_ms=45_000,
        rebalance_timeout_ms=60_000,
        member_id=member,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"m")],
    )
    return one(request, 3)


def sync(group: str, joined: Any) -> Act:
    mine = SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"all")
    request = SyncGroupRequest(
        group_id=group,
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        assignments=[mine],
    )
    return one(request, 3)


def created(name: str, partitions: int = 2) -> Act:
    wanted = CreatableTopic(
        name=name, num_partitions=partitions, replication_factor=1, assignments=[], configs=[]
    )
    return one(CreateTopicsRequest(topics=[wanted], timeout_ms=60_000), 7)


def deleted(name: str) -> Act:
    wanted = DeleteTopicState(name=name)
    return one(DeleteTopicsRequest(topics=[wanted], timeout_ms=60_000), 6)


def produced(topic: str, value: bytes, **more: Any) -> Act:
    return lambda desk: [desk.send_batch(topic, value=value, **more)]


def records_deleted(topic: str, offset: int) -> Act:
    place = DeleteRecordsPartition(partition_index=0, offset=offset)
    wanted = DeleteRecordsTopic(name=topic, partitions=[place])
    return one(DeleteRecordsRequest(topics=[wanted], timeout_ms=60_000), 2)


def initialised(name: str | None) -> Act:
    return one(InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000), 4)


class Transaction(NamedTuple):
    """Who is in the transaction of a name."""

    name: str
    producer_id: int
    epoch: int


def transaction(desk: Desk, name: str) -> Transaction:
    (found,) = desk.ask(DescribeTransactionsRequest(transactional_ids=[name]), 0).transaction_states
    return Transaction(name, found.producer_id, found.producer_epoch)


def in_transaction(request: Callable[[Transaction], Any], version: int, name: str = "t") -> Act:
    return lambda desk: [desk.send(request(transaction(desk, name)), version)]


def partition_added(of: Transaction) -> AddPartitionsToTxnRequest:
    return AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=of.name,
        v3_and_below_producer_id=of.producer_id,
        v3_and_below_producer_epoch=of.epoch,
        v3_and_below_topics=[AddPartitionsToTxnTopic(name="orders", partitions=[1])],
    )


def offsets_added(of: Transaction) -> AddOffsetsToTxnRequest:
    return AddOffsetsToTxnRequest(
        transactional_id=of.name,
        producer_id=of.producer_id,
        producer_epoch=of.epoch,
        group_id="another",
    )


def offsets_committed(of: Transaction) -> TxnOffsetCommitRequest:
    place = TxnOffsetCommitRequestPartition(
        partition_index=0, committed_offset=9, committed_metadata=""
    )
    return TxnOffsetCommitRequest(
        transactional_id=of.name,
        group_id="transactional",
        producer_id=of.producer_id,
        producer_epoch=of.epoch,
        topics=[TxnOffsetCommitRequestTopic(name="orders", partitions=[place])],
    )


def written(of: Transaction, sequence: int = 1) -> ProduceRequest:
    batch = batches.build(
        [(b"k", b"more")],
        1_700_000_000_000,
        producer_id=of.producer_id,
        producer_epoch=of.epoch,
        base_sequence=sequence,
        transactional=True,
    )
    data = PartitionProduceData(index=0, records=batch)
    return ProduceRequest(
        transactional_id=of.name,
        acks=-1,
        timeout_ms=1000,
        topic_data=[TopicProduceData(name="orders", partition_data=[data])],
    )


def end(of: Transaction, *, commit: bool) -> EndTxnRequest:
    return EndTxnRequest(
        transactional_id=of.name,
        producer_id=of.producer_id,
        producer_epoch=of.epoch,
        committed=commit,
    )


def marker(of: Transaction) -> WriteTxnMarkersRequest:
    topic = WritableTxnMarkerTopic(name="home", partition_indexes=[0])
    wanted = WritableTxnMarker(
        producer_id=of.producer_id,
        producer_epoch=of.epoch,
        transaction_result=False,
        topics=[topic],
        coordinator_epoch=0,
    )
    return WriteTxnMarkersRequest(markers=[wanted])


def offset_deleted(group: str) -> Act:
    topic = OffsetDeleteRequestTopic(
        name="orders", partitions=[OffsetDeleteRequestPartition(partition_index=0)]
    )
    return one(OffsetDeleteRequest(group_id=group, topics=[topic]), 0)


def acls_deleted(name: str) -> Act:
    wanted = DeleteAclsFilter(
        resource_type_filter=TOPIC,
        resource_name_filter=name,
        principal_filter=None,
        host_filter=None,
        operation=ANY,
        permission_type=ANY,
    )
    return one(DeleteAclsRequest(filters=[wanted]), 3)


def left(desk: Desk) -> list[Asked]:
    (group,) = desk.ask(DescribeGroupsRequest(groups=["classic"]), 5).groups
    member = MemberIdentity(member_id=group.members[0].member_id)
    return [desk.send(LeaveGroupRequest(group_id="classic", members=[member]), 5)]


def synced(desk: Desk) -> list[Asked]:
    """A member that joins anew and hands the assignment out."""
    (joined,) = join("new")(desk)
    desk.settle()
    if joined.answer is None or codes(joined.answer):
        return [joined]
    return sync("new", joined.answer)(desk)


def several(*acts: Act) -> Act:
    """Requests that come in one turn."""
    return lambda desk: [asked for act in acts for asked in act(desk)]


def retained(desk: Desk) -> list[Asked]:
    """Time passes, and retention and the cleaner come."""
    for place in (("kept", 0), ("__consumer_offsets", 0), ("home", 0)):
        with suppress(KohortError):
            desk.cluster.partition(*place).log.roll()
    desk.wait(30_000)  # less than sessions
    desk.housekeep()
    return []


CASES: dict[str, Act] = {
    "CreateTopics": created("fresh"),
    "DeleteTopics": deleted("going"),
    "CreatePartitions": one(
        CreatePartitionsRequest(
            topics=[CreatePartitionsTopic(name="orders", count=4, assignments=None)],
            timeout_ms=60_000,
            validate_only=False,
        ),
        3,
    ),
    "DeleteRecords": records_deleted("orders", 2),
    "AlterConfigs": replaced("orders"),
    "IncrementalAlterConfigs of a topic": limited("orders", "2000"),
    "IncrementalAlterConfigs of brokers": broker_limit("1000013"),
    "IncrementalAlterConfigs of a group": group_limit("configured", "47000"),
    "CreateAcls": acl("after"),
    "DeleteAcls": acls_deleted("before"),
    "AlterUserScramCredentials": scram("after"),
    "AlterUserScramCredentials that deletes": one(
        AlterUserScramCredentialsRequest(
            deletions=[ScramCredentialDeletion(name="before", mechanism=1)], upsertions=[]
        ),
        0,
    ),
    "Metadata that creates a topic": one(
        MetadataRequest(topics=[MetadataRequestTopic(name="made")], allow_auto_topic_creation=True),
        9,
    ),
    "FindCoordinator": one(FindCoordinatorRequest(key_type=1, coordinator_keys=["u"]), 4),
    "InitProducerId": initialised(None),
    "InitProducerId of a transaction": initialised("u"),
    "Produce": produced("orders", b"x" * 50),
    "Produce of a producer": produced(
        "orders", b"y", producer_id=4, producer_epoch=0, base_sequence=0
    ),
    "Produce in a transaction": in_transaction(written, 9),
    "AddPartitionsToTxn": in_transaction(partition_added, 3),
    "AddOffsetsToTxn": in_transaction(offsets_added, 3),
    "TxnOffsetCommit": in_transaction(offsets_committed, 3),
    "EndTxn that commits": in_transaction(lambda of: end(of, commit=True), 4),
    "EndTxn that aborts": in_transaction(lambda of: end(of, commit=False), 4),
    "WriteTxnMarkers": in_transaction(marker, 1, "ended"),
    "OffsetCommit": commit("committed", 6),
    "OffsetDelete": offset_deleted("committed"),
    "DeleteGroups": one(DeleteGroupsRequest(groups_names=["committed"]), 2),
    "JoinGroup": join("new"),
    "SyncGroup": synced,
    "LeaveGroup": left,
    "ConsumerGroupHeartbeat": beat("consumer", 0, member="another"),
    "ConsumerGroupHeartbeat that leaves": beat("consumer", -1),
    "several in one turn": several(
        in_transaction(offsets_committed, 3),
        commit("committed", 8),
        beat("consumer", 0, member="another"),
    ),
    "retention and cleaning": retained,
}
READS = {  # and what changes nothing here, or nothing for good
    "AlterPartitionReassignments",
    "AlterReplicaLogDirs",
    "ApiVersions",
    "ConsumerGroupDescribe",
    "DescribeAcls",
    "DescribeCluster",
    "DescribeConfigs",
    "DescribeGroups",
    "DescribeLogDirs",
    "DescribeProducers",
    "DescribeTopicPartitions",
    "DescribeTransactions",
    "DescribeUserScramCredentials",
    "ElectLeaders",
    "Fetch",
    "Heartbeat",
    "ListConfigResources",
    "ListGroups",
    "ListOffsets",
    "ListPartitionReassignments",
    "ListTransactions",
    "OffsetFetch",
    "OffsetForLeaderEpoch",
    "UpdateFeatures",
    # of security and quotas: refused on a listener of plain text, and nothing is kept
    "AlterClientQuotas",
    "CreateDelegationToken",
    "DescribeClientQuotas",
    "DescribeDelegationToken",
    "ExpireDelegationToken",
    "RenewDelegationToken",
    "SaslAuthenticate",
    "SaslHandshake",
    # of assignors that run in clients: the same machine and the same log as a heartbeat
    "ConsumerGroupInstallAssignment",
    "ConsumerGroupPrepareAssignment",
}
SILENT = {"Metadata that creates a topic", "retention and cleaning"}  # nobody is told how it went
