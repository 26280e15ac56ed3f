# SPDX-License-Identifier: Apache-2.0
"""Each API that changes something is looked for on the disk before its answer leaves."""

import msgspec
import pytest
from tests.sim.exchanges import ACKNOWLEDGED, IN_A_TRANSACTION, JOINED, RULE, TAKEN_AWAY, TOPIC_ID

from kohort.records import codec, schemas, transactions
from kohort.sim.checkers.evidence.exchange import Exchange
from kohort.sim.checkers.evidence.table import EVIDENCE, READS
from kohort.sim.checkers.synced_disk import NOW, SyncedDisk
from kohort.sim.disk import SimulatedFiles
from kohort.terms import uuid_text
from kohort.transactions.transaction import TransactionState
from kohort.wire import batch as batches
from kohort.wire.apis import APIS

NAMES = {api.name for api in APIS.values()}
OLDER = {"AlterConfigs": "IncrementalAlterConfigs"}
"""Judged by the same function."""
STATES = list(TransactionState)


def test_every_api_either_leaves_evidence_or_changes_nothing():
    assert EVIDENCE.keys() | READS == NAMES
    assert not EVIDENCE.keys() & READS


GROUPS, TRANSACTIONS = "__consumer_offsets-0", "__transaction_state-0"
CATALOG = "kohort.catalog.json"


def missing(exchange, contents):
    """What is said of a disk on which this is synced: a catalog, and the batches of logs by their
    folders. A log may begin at a number instead.
    """
    disk = SimulatedFiles()
    disk.make_directory("/data")
    for name, content in contents.items():
        directory, path, data = f"/data/{name}", f"/data/{name}/{0:020}.log", content
        if name == CATALOG:
            directory, path, data = "/data", f"/data/{name}", msgspec.json.encode(content)
        elif isinstance(content, int):
            path, data = f"/data/{name}/{content:020}.log", b""
        if directory != "/data":
            disk.make_directory(directory)
        file = disk.open(path)
        file.write(0, data)
        file.sync()
        disk.sync_directory(directory)
    disk.sync_directory("/data")
    disk.sync_directory("")
    api, request, answer = exchange
    said = Exchange(request, answer, 0, NOW, lambda _: "t")
    return list(EVIDENCE[api.partition(",")[0]](SyncedDisk(lambda: disk), said))


def group_log(*records, **producer):
    """A batch of the log of groups, of keys with values."""
    entries = [codec.encode(codec.Record(key, value)) for key, value in records]
    return batches.build(entries, 1, **producer)


def transaction(**fields):
    """A batch of the log of transactions: what x is at."""
    value = {
        "producer_id": 1,
        "producer_epoch": 0,
        "transaction_timeout_ms": 1,
        "transaction_status": STATES.index(TransactionState.ONGOING),
        "transaction_partitions": [],
        "transaction_last_update_timestamp_ms": 1,
        "transaction_start_timestamp_ms": 1,
    }
    record = transactions.Record("x", transactions.TransactionLogValue(**value | fields))
    return batches.build([transactions.encode(record)], 1)


def enrolled(topic, *partitions):
    place = transactions.PartitionsSchema(topic=topic, partition_ids=list(partitions))
    return transaction(transaction_partitions=[place])


COMMITTED = (
    schemas.OffsetCommitKey(group="g", topic="t", partition=0),
    schemas.OffsetCommitValue(offset=3, metadata="", commit_timestamp=1),
)
GROUP = (
    schemas.ConsumerGroupMetadataKey(group_id="g"),
    schemas.ConsumerGroupMetadataValue(epoch=2),
)


def member(name="m"):
    """A member of a consumer group."""
    key = schemas.ConsumerGroupMemberMetadataKey(group_id="g", member_id=name)
    value = schemas.ConsumerGroupMemberMetadataValue(
        instance_id=None,
        rack_id=None,
        client_id="c",
        client_host="h",
        subscribed_topic_names=[],
        subscribed_topic_regex=None,
        server_assignor=None,
        client_assignors=[],
    )
    return key, value


def current(*partitions):
    """What m has at epoch 2."""
    key = schemas.ConsumerGroupCurrentMemberAssignmentKey(group_id="g", member_id="m")
    value = schemas.ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=2,
        previous_member_epoch=1,
        state=0,
        assigned_partitions=[
            schemas.TopicPartitions(topic_id=TOPIC_ID, partitions=list(partitions))
        ],
        partitions_pending_revocation=[],
    )
    return key, value


def generation(*names, assignment=b"a"):
    """Generation 1 of a classic group, with these members."""
    key = schemas.GroupMetadataKey(group="g")
    members = [
        schemas.MemberMetadata(
            member_id=name,
            client_id="c",
            client_host="h",
            session_timeout=1,
            subscription=b"",
            assignment=assignment,
        )
        for name in names
    ]
    value = schemas.GroupMetadataValue(
        protocol_type="consumer", generation=1, protocol="range", leader="m", members=members
    )
    return key, value


TARGET = (
    schemas.ConsumerGroupTargetAssignmentMetadataKey(group_id="g"),
    schemas.ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=2),
)
SETTINGS = (
    schemas.GroupSettingsKey(group_id="g"),
    schemas.GroupSettingsValue(settings=[schemas.GroupSetting(name="n", value="1")]),
)
TOPIC = {"name": "t", "topic_id": uuid_text(TOPIC_ID), "partitions": 3, "configs": {"n": "1"}}
IN_THE_TRANSACTION = "is acknowledged, on the disk its transaction has no partition"

MISSING = {  # what is said of an empty disk, all of it
    "Produce": ["offset 0 of t-0 is acknowledged, on the disk it ends at 0"],
    "Produce, several in a transaction": [
        "offset 0 of t-0 is acknowledged, on the disk it ends at 0",
        "offset 6 of t-1 is acknowledged, on the disk it ends at 0",
        f"a record of x, producer 1 at epoch 0, {IN_THE_TRANSACTION} ('t', 0)",
        f"a record of x, producer 1 at epoch 0, {IN_THE_TRANSACTION} ('t', 1)",
    ],
    "OffsetCommit": ["g is acknowledged at {3} of t-0, on the disk it is not"],
    "TxnOffsetCommit": [
        "x is acknowledged at {3} of t-0 for g, on the disk it is not",
        f"an offset of x, producer 1 at epoch 0, {IN_THE_TRANSACTION} ('__consumer_offsets', None)",
    ],
    "ConsumerGroupHeartbeat": ["m of g is told epoch 2, on the disk is -1"],
    "ConsumerGroupHeartbeat, partitions": ["m of g is told epoch 2, on the disk is -1"],
    "ConsumerGroupInstallAssignment": ["g has the target of epoch 2, not on the disk"],
    "SyncGroup": ["g has synced generation 1, on the disk it is not"],
    "InitProducerId": [
        "producer id 4 is given out, on the disk it is free",
        "x is given epoch 0 of producer 4, on the disk it is not",
    ],
    "EndTxn": [
        "the end of x, producer 1 at epoch 0, is acknowledged (commit: True), on the disk it is not"
    ],
    "AddPartitionsToTxn": [
        f"a partition of x, producer 1 at epoch 0, {IN_THE_TRANSACTION} ('t', 0)"
    ],
    "AddOffsetsToTxn": [
        f"a group of x, producer 1 at epoch 0, {IN_THE_TRANSACTION} ('__consumer_offsets', None)"
    ],
    "WriteTxnMarkers": ["the marker (1, 0, True) of t-0 is acknowledged, not on the disk"],
    "DeleteRecords": ["t-0 begins at 5, on the disk it begins at 0"],
    "CreateTopics": ["topic t is made, on the disk it is not"],
    "CreatePartitions": ["t has 3 partitions, on the disk it has not"],
    "IncrementalAlterConfigs": [
        "{'n': '1'} is set for t, on the disk it is not",
        "{'n': '1'} is set for all brokers, on the disk it is not",
        "{'n': '1'} is set for group g, on the disk is {}",
    ],
    "CreateAcls": ["a rule for User:u is made, on the disk it is not"],
    "AlterUserScramCredentials": ["the credential of u is changed, on the disk it is not"],
}

OFFSETS = "__consumer_offsets"
COMMITTED_BY_X = group_log(COMMITTED, producer_id=1, producer_epoch=0, transactional=True)
MARKER = batches.build_marker(
    commit=True, timestamp=1, producer_id=1, producer_epoch=0, coordinator_epoch=0
)
CREDENTIAL = {"user": "u", "mechanism": 1, "iterations": 4096}

RULE_ON_DISK = RULE | {"pattern_type": 3}
THERE = {  # a disk that has all of it
    "Produce": {"t-0": batches.build([(None, b"v")], 1)},
    "Produce, several in a transaction": {
        "t-0": IN_A_TRANSACTION,
        "t-1": batches.build([(None, b"v")], 1, base_offset=6),
        TRANSACTIONS: enrolled("t", 0, 1),
    },
    "OffsetCommit": {GROUPS: group_log(COMMITTED)},
    "TxnOffsetCommit": {GROUPS: COMMITTED_BY_X, TRANSACTIONS: enrolled(OFFSETS, 7)},
    "ConsumerGroupHeartbeat": {GROUPS: group_log(current())},
    "ConsumerGroupHeartbeat, partitions": {GROUPS: group_log(current(0, 1))},
    "ConsumerGroupInstallAssignment": {GROUPS: group_log(TARGET)},
    "SyncGroup": {GROUPS: group_log(generation("m"))},
    "InitProducerId": {
        CATALOG: {"next_producer_id": 5},
        TRANSACTIONS: transaction(producer_id=4),
    },
    "EndTxn": {
        TRANSACTIONS: transaction(transaction_status=STATES.index(TransactionState.PREPARE_COMMIT))
    },
    "AddPartitionsToTxn": {TRANSACTIONS: enrolled("t", 0)},
    "AddOffsetsToTxn": {TRANSACTIONS: enrolled(OFFSETS, 7)},
    "WriteTxnMarkers": {"t-0": MARKER},
    "DeleteRecords": {"t-0": 5},
    "CreateTopics": {CATALOG: {"topics": [TOPIC]}},
    "CreatePartitions": {CATALOG: {"topics": [TOPIC]}},
    "IncrementalAlterConfigs": {
        CATALOG: {"topics": [TOPIC], "broker_configs": {"": {"n": "1"}}},
        GROUPS: group_log(SETTINGS),
    },
    "CreateAcls": {CATALOG: {"acls": [RULE_ON_DISK]}},
    "AlterUserScramCredentials": {CATALOG: {"scram_credentials": [CREDENTIAL]}},
}


TOMBSTONES = [(key, None) for key in (COMMITTED[0], GROUP[0], member()[0], member("n")[0])]
STILL_THERE = {  # a disk that has what was taken away, what is said of it, and one without it
    "OffsetDelete": (
        {GROUPS: group_log(COMMITTED)},
        ["('g', 't', 0) is deleted, on the disk it is there"],
        {GROUPS: group_log(COMMITTED, *TOMBSTONES)},
    ),
    "DeleteGroups": (
        {GROUPS: group_log(generation("m"), GROUP, COMMITTED)},
        [
            "g is deleted, on the disk there is GroupMetadataKey",
            "g is deleted, on the disk there is ConsumerGroupMetadataKey",
            "g is deleted, on the disk there is OffsetCommitKey",
        ],
        {GROUPS: group_log(GROUP, COMMITTED, *TOMBSTONES)},
    ),
    "DeleteTopics": (
        {CATALOG: {"topics": [TOPIC]}},
        ["topic t is deleted, on the disk it is there"],
        {CATALOG: {"topics": [TOPIC | {"name": "other"}]}},
    ),
    "DeleteTopics, by id": (
        {CATALOG: {"topics": [TOPIC]}},
        ["topic None is deleted, on the disk it is there"],
        {CATALOG: {"topics": [TOPIC | {"topic_id": uuid_text(b"o" * 16)}]}},
    ),
    "DeleteAcls": (
        {CATALOG: {"acls": [RULE_ON_DISK]}},
        ["a rule for User:u is deleted, on the disk it is there"],
        {CATALOG: {"acls": [RULE_ON_DISK | {"pattern_type": 4}]}},
    ),
    "LeaveGroup": (
        {GROUPS: group_log(GROUP, member())},
        ["m has left g, on the disk it is a member"],
        {GROUPS: group_log(GROUP, member(), (member()[0], None))},
    ),
    "LeaveGroup, several": (
        {GROUPS: group_log(GROUP, member(), member("n"))},
        ["m has left g, on the disk it is a member", "n has left g, on the disk it is a member"],
        {GROUPS: group_log(GROUP, member(), *TOMBSTONES[2:])},
    ),
    "ConsumerGroupHeartbeat, leaves": (
        {GROUPS: group_log(GROUP, member())},
        ["m of g has left, on the disk it is a member"],
        {GROUPS: group_log(GROUP, member(), (member()[0], None))},
    ),
}
OTHERS = {  # a disk that has something else than what was acknowledged
    "Produce": ({"t-0": 0}, ["offset 0 of t-0 is acknowledged, on the disk it ends at 0"]),
    "TxnOffsetCommit": (
        {GROUPS: group_log(COMMITTED), TRANSACTIONS: enrolled(OFFSETS, 7)},  # not in a transaction
        MISSING["TxnOffsetCommit"][:1],
    ),
    "ConsumerGroupHeartbeat, partitions": (
        {GROUPS: group_log(current(0))},
        ["m of g is given 2 partitions at epoch 2, on the disk it has others"],
    ),
    "SyncGroup": (
        {GROUPS: group_log(generation("m", assignment=b"b"))},
        ["m is in generation 1 of g, on the disk it is not a member of it with what it is given"],
    ),
    "InitProducerId": (
        {CATALOG: {"next_producer_id": 4}, TRANSACTIONS: transaction(producer_id=4)},
        MISSING["InitProducerId"][:1],
    ),
    "EndTxn": ({TRANSACTIONS: transaction()}, MISSING["EndTxn"]),
    "AddPartitionsToTxn": ({TRANSACTIONS: enrolled("t", 1)}, MISSING["AddPartitionsToTxn"]),
    "DeleteRecords": ({"t-0": 4}, ["t-0 begins at 5, on the disk it begins at 4"]),
    "CreatePartitions": (
        {CATALOG: {"topics": [TOPIC | {"partitions": 2}]}},
        MISSING["CreatePartitions"],
    ),
    "IncrementalAlterConfigs": (
        {CATALOG: {"topics": [TOPIC]}, GROUPS: group_log(SETTINGS)},
        MISSING["IncrementalAlterConfigs"][1:2],
    ),
    "CreateAcls": ({CATALOG: {"acls": [RULE_ON_DISK | {"host": "h"}]}}, MISSING["CreateAcls"]),
    "AlterUserScramCredentials": (
        {CATALOG: {"scram_credentials": [CREDENTIAL | {"iterations": 8192}]}},
        MISSING["AlterUserScramCredentials"],
    ),
}


def test_each_of_them_is_tried():
    tried = {name.partition(",")[0] for name in (*ACKNOWLEDGED, *TAKEN_AWAY, "JoinGroup")}
    assert tried == EVIDENCE.keys() - OLDER.keys()
    assert ACKNOWLEDGED.keys() == MISSING.keys() == THERE.keys()
    assert TAKEN_AWAY.keys() == STILL_THERE.keys()
    for older, newer in OLDER.items():
        assert EVIDENCE[older] is EVIDENCE[newer]


@pytest.mark.parametrize("case", ACKNOWLEDGED)
def test_an_acknowledgement_is_missing_on_an_empty_disk_part_by_part(case):
    assert missing((case, *ACKNOWLEDGED[case]), {}) == MISSING[case]


@pytest.mark.parametrize("case", ACKNOWLEDGED)
def test_an_acknowledgement_that_is_on_the_disk_is_not_missing(case):
    assert missing((case, *ACKNOWLEDGED[case]), THERE[case]) == []


@pytest.mark.parametrize("case", OTHERS)
def test_something_else_on_the_disk_is_no_evidence(case):
    contents, texts = OTHERS[case]
    assert missing((case, *ACKNOWLEDGED[case]), contents) == texts


@pytest.mark.parametrize("case", TAKEN_AWAY)
def test_what_was_taken_away_must_be_gone_from_the_disk(case):
    there, texts, gone = STILL_THERE[case]
    exchange = (case, *TAKEN_AWAY[case])
    assert missing(exchange, there) == texts
    assert missing(exchange, gone) == []


def test_who_joins_a_generation_of_the_disk_is_a_member_there():
    exchange = ("JoinGroup", *JOINED)
    assert missing(exchange, {}) == []
    assert missing(exchange, {GROUPS: group_log(generation("m", "n"))}) == []
    assert missing(exchange, {GROUPS: group_log(generation("n"))}) == [
        "m is in generation 1 of g, on the disk it is not a member of it"
    ]
    assert missing(exchange, {GROUPS: group_log(GROUP)}) == [
        "m is in g, on the disk it is no member"
    ]
    assert missing(exchange, {GROUPS: group_log(GROUP, member())}) == []
