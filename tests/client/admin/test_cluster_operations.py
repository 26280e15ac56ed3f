# SPDX-License-Identifier: Apache-2.0
"""Brokers, topics by id, records and leaders of whole brokers: ours, and Apache Kafka."""

import asyncio

import pytest
from tests.client.scripted import asynchronous
from tests.client.whole_brokers import CURRENT_BROKERS, create_topic, whole_broker
from tests.waiting import SOON_S

from kohort import AclOperation, AdminClient, ErrorCode, FeatureUpdate, Producer, TopicPartition
from kohort.client.network.connection_errors import ConnectionFailedError
from kohort.terms import uuid_text
from kohort.testing import Broker

FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)


@pytest.fixture(scope="module", params=CURRENT_BROKERS)
def bootstrap(request):
    with whole_broker(request.param) as address:
        create_topic(address, "orders", 2)
        yield address


@asynchronous
async def test_a_cluster_is_described_with_its_rights(bootstrap):
    async with AdminClient(bootstrap) as admin:
        nodes = await admin.describe_cluster()
        assert len(nodes.cluster_id) == 22
        assert nodes.controller_id in [node.node_id for node in nodes]
        assert nodes.authorized_operations is None
        whole = await admin.describe_cluster(
            include_authorized_operations=True, include_fenced_brokers=True
        )
        assert whole == nodes
        assert (whole.cluster_id, whole.away) == (nodes.cluster_id, ())
        assert {AclOperation.ALTER, AclOperation.CREATE} <= whole.authorized_operations
        assert AclOperation.READ not in whole.authorized_operations


@asynchronous
async def test_a_broker_that_is_starting_is_waited_for():
    """Others of the calls fail at once, and so does this one when its time is over."""
    with Broker(in_memory=True) as broker:
        broker.stop()
        async with AdminClient(broker.bootstrap, timeout=SOON_S) as admin:
            with pytest.raises(ConnectionFailedError, match=r"cannot connect to .*: refused"):
                await admin.wait_for_broker(timeout=0.3)
            waiting = asyncio.create_task(admin.wait_for_broker())
            await asyncio.sleep(0.2)
            assert not waiting.done()
            broker.start()
            await waiting
            assert list(await admin.list_groups()) == []


@asynchronous
async def test_records_are_deleted(bootstrap):
    async with AdminClient(bootstrap) as admin:
        async with Producer(bootstrap_servers=bootstrap) as producer:
            for number in range(5):
                await (await producer.send("orders", b"%d" % number, partition=0))
        deleted = await admin.delete_records({FIRST: 3, SECOND: 99, ("missing", 0): 1})
        assert deleted.succeeded == {FIRST: 3}
        assert deleted.failed[SECOND].code is ErrorCode.OFFSET_OUT_OF_RANGE
        assert deleted.failed["missing", 0].code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert (await admin.list_offsets({FIRST: "earliest"}))[FIRST].offset == 3
        assert (await admin.delete_records({FIRST: "latest"})).all() == {FIRST: 5}
        assert (await admin.delete_records({FIRST: 1})).all() == {FIRST: 5}


@asynchronous
async def test_an_election_that_is_not_needed_is_none(bootstrap):
    async with AdminClient(bootstrap) as admin:
        outcomes = await admin.elect_leaders("preferred", [FIRST, ("missing", 0)])
        assert outcomes.failed[FIRST].code is ErrorCode.ELECTION_NOT_NEEDED
        assert outcomes.failed["missing", 0].code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert (await admin.elect_leaders()).all() == {}
        assert (await admin.elect_leaders("unclean")).all() == {}


@asynchronous
async def test_a_partition_stays_where_it_is_and_goes_to_no_broker_that_is_not_there(bootstrap):
    async with AdminClient(bootstrap) as admin:
        described = (await admin.describe_topics("orders"))["orders"].partitions
        now = {TopicPartition("orders", each.partition): each.replicas for each in described}
        moved = await admin.alter_partition_reassignments(
            {FIRST: now[FIRST], SECOND: None}, allow_replication_factor_change=False
        )
        assert moved[FIRST] is None
        assert moved.failed[SECOND].code is ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
        moved = await admin.alter_partition_reassignments({FIRST: [99], ("missing", 0): [1]})
        assert moved.failed[FIRST].code is ErrorCode.INVALID_REPLICA_ASSIGNMENT
        assert moved.failed["missing", 0].code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert await admin.list_partition_reassignments() == {}
        assert await admin.list_partition_reassignments([FIRST, ("missing", 0)]) == {}


@asynchronous
async def test_log_directories_have_every_partition(bootstrap):
    async with AdminClient(bootstrap) as admin:
        nodes = [node.node_id for node in await admin.describe_cluster()]
        described = (await admin.describe_log_dirs()).all()
        assert list(described) == nodes
        found = [
            partition
            for directories in described.values()
            for directory in directories.values()
            for partition in directory.replicas
            if partition.topic == "orders"
        ]
        assert sorted(set(found)) == [FIRST, SECOND]
        some = await admin.describe_log_dirs(nodes[0], partitions=[SECOND])
        for directory in some[nodes[0]].values():
            assert set(directory.replicas) <= {SECOND}
            assert directory.error is None
            assert directory.is_cordoned is False


@asynchronous
async def test_features_are_described_and_refuse_what_makes_no_sense(bootstrap):
    async with AdminClient(bootstrap) as admin:
        features = await admin.describe_features()
        assert features.finalized["group.version"].max_level == 1
        assert features.supported["group.version"].min_level == 0
        assert features.finalized_epoch >= 0
        tried = await admin.update_features({"group.version": FeatureUpdate(1)}, validate_only=True)
        assert tried.all() == {"group.version": None}
        refused = await admin.update_features(
            {"group.version": FeatureUpdate(1), "novel": FeatureUpdate(1)}
        )
        assert list(refused.failed) == ["group.version", "novel"]
        lower = await admin.update_features({"group.version": FeatureUpdate(0)}, validate_only=True)
        assert lower.failed["group.version"].code is ErrorCode.INVALID_UPDATE_VERSION


@asynchronous
async def test_topics_are_described_and_deleted_by_id(bootstrap):
    await asyncio.to_thread(create_topic, bootstrap, "short", 2)
    async with AdminClient(bootstrap) as admin:
        topic = (await admin.describe_topics("short"))["short"]
        nobody = bytes([1] * 16)
        by_id = await admin.describe_topics_by_id([topic.topic_id, nobody])
        assert by_id.succeeded == {topic.topic_id: topic}
        assert by_id.failed[nobody].code is ErrorCode.UNKNOWN_TOPIC_ID
        text = uuid_text(topic.topic_id)
        assert (await admin.describe_topics_by_id(text)).all() == {text: topic}
        deleted = await admin.delete_topics_by_id([nobody, topic.topic_id])
        assert deleted.succeeded == {topic.topic_id: None}
        assert deleted.failed[nobody].code is ErrorCode.UNKNOWN_TOPIC_ID
        async with asyncio.timeout(SOON_S):
            while (await admin.describe_topics("short")).succeeded:  # noqa: ASYNC110
                await asyncio.sleep(0.05)  # a broker of Kafka's hears of it a little later
