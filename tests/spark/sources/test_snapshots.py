# SPDX-License-Identifier: Apache-2.0
"""Groups of a live cluster as a DataFrame, many of them at once."""

import asyncio
import re
import time
from collections import Counter

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructType
from tests.client.joining import ConsumerMember, commit, coordinator, join_classic
from tests.client.scripted import ScriptedCluster, asynchronous
from tests.serve.talk import Talk

from kohort.client.admin import CommittedOffset, FoundOffset, TopicPartition
from kohort.client.network.address import Address
from kohort.client.network.cluster import Cluster
from kohort.errors import ApiError, ErrorCode
from kohort.pipeline.schemas import END_OFFSETS
from kohort.pipeline.schemas.snapshots import GROUPS_NOW
from kohort.pipeline.sources.log_position import SourceError
from kohort.spark.engine.frames import struct_of
from kohort.spark.sources import end_offsets
from kohort.spark.sources.groups import KohortGroups
from kohort.spark.sources.offsets import KohortOffsets, partition_rows
from kohort.spark.sources.registry import register
from kohort.spark.sources.snapshot import SnapshotOptions, SnapshotPartition, shares
from kohort.testing import Broker
from kohort.wire.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse

PARTITIONS = 2
COUNT = 300
RECORDS = 10
END = FoundOffset(5, None, None)


async def fill(bootstrap, count):
    """Groups that have committed offset 4 of every partition, each at its coordinator."""
    cluster = Cluster([Address.of(one) for one in bootstrap.split(",")], client_id="fill")
    deadline = asyncio.get_running_loop().time() + 60
    names = [f"group-{number:05}" for number in range(count)]
    offsets = {("orders", index): 4 for index in range(PARTITIONS)}
    left = names
    while left:
        places = await cluster.coordinators(left, deadline)
        left = [name for name, place in places.items() if isinstance(place, Exception)]
        for name, place in places.items():
            if name not in left:
                connection = await cluster.connection(place.address, deadline)
                assert await commit(connection, name, offsets) == [0] * PARTITIONS
        assert not left or await cluster.pause(1, deadline)
    await cluster.close()


async def join(bootstrap):
    async with coordinator(bootstrap, "modern") as connection:
        await ConsumerMember(connection, "modern", "m-1").join("orders")
    async with coordinator(bootstrap, "classic") as connection:
        await join_classic(connection, "classic", "orders", [0, 1])


def produce(bootstrap):
    for address in bootstrap.split(","):
        with Talk(address) as talk:
            for index in range(PARTITIONS):
                talk.produce("orders", *[b"x"] * RECORDS, index=index)


@pytest.fixture(scope="module")
def bootstrap():
    settings = {"group.consumer.session.timeout.ms": "60000"}
    with Broker(settings, in_memory=True, nodes=2) as broker:
        with Talk(broker.bootstrap.split(",")[0]) as talk:
            talk.create_topic("orders", PARTITIONS)
        produce(broker.bootstrap)
        asyncio.run(fill(broker.bootstrap, COUNT))
        asyncio.run(join(broker.bootstrap))
        yield broker.bootstrap


def source(kind, bootstrap, **options):
    return kind({"bootstrap.servers": bootstrap, **options})


def rows(source, share):
    batch = source.rows(share)
    assert batch.schema == source.table.arrow
    return batch.to_pylist()


def test_each_group_is_in_one_share_of_its_coordinator(bootstrap):
    got = shares(SnapshotOptions(bootstrap, groups_per_task=100))

    sizes = [len(share.listings) for share in got]
    assert max(sizes) == 100
    assert sizes.count(100) < len(sizes)
    names = [one.group_id for share in got for one in share.listings]
    assert len(names) == len(set(names)) == COUNT + 2
    described = source(KohortGroups, bootstrap)
    homes = [{row["coordinator_id"] for row in rows(described, share)} for share in got]
    assert all(len(home) == 1 for home in homes)
    assert len(set.union(*homes)) == 2


def test_a_group_is_described_with_its_members(bootstrap):
    wanted = source(KohortGroups, bootstrap, groups="modern, classic,nobody", TYPES="consumer")
    (share,) = shares(wanted.wanted)
    (modern,) = rows(wanted, share)
    others = source(KohortGroups, bootstrap, groups="classic,nobody")
    classic, nobody = sorted(
        (row for share in shares(others.wanted) for row in rows(others, share)),
        key=lambda row: row["group_id"],
    )

    everything = {"topic": "orders", "partitions": [0, 1]}
    assert (modern["type"], modern["state"], modern["error"]) == ("consumer", "Stable", None)
    assert modern["group_epoch"] == modern["assignment_epoch"] > 0
    (member,) = modern["members"]
    assert (member["member_id"], member["client_id"]) == ("m-1", "member")
    assert (member["assignment"], member["target_assignment"]) == ([everything], [everything])
    assert member["member_epoch"] == modern["group_epoch"]
    assert member["subscribed_topics"] == ["orders"]
    assert (classic["type"], classic["assignor"]) == ("classic", "range")
    assert (classic["group_epoch"], classic["members"][0]["target_assignment"]) == (None, None)
    assert classic["members"][0]["assignment"] == [everything]
    assert re.fullmatch(r"127\.0\.0\.1:\d+", classic["coordinator"])
    assert (nobody["members"], nobody["state"]) == (None, None)
    assert nobody["error"].startswith("GROUP_ID_NOT_FOUND: ")


def test_offsets_stand_beside_the_end_and_the_lag(bootstrap):
    wanted = source(KohortOffsets, bootstrap, groups="group-00007,nobody,modern")

    found = [row for share in shares(wanted.wanted) for row in rows(wanted, share)]

    assert {row.pop("sampled_at").year >= 2024 for row in found} == {True}
    assert found == [
        {
            "group_id": "group-00007",
            "topic": "orders",
            "topic_partition": index,
            "committed_offset": 4,
            "leader_epoch": None,
            "metadata": "test",
            "end_offset": RECORDS,
            "lag_records": RECORDS - 4,
            "error": None,
        }
        for index in range(PARTITIONS)
    ]


def test_what_goes_wrong_with_one_partition_is_told_in_its_row():
    unstable = ApiError(ErrorCode.UNSTABLE_OFFSET_COMMIT, "open")
    missing = ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "partition t:1 does not exist")
    commit = CommittedOffset(7, 3, "")
    committed = {TopicPartition("t", index): commit for index in range(1, 4)}
    offsets = {TopicPartition("t", 0): unstable, **committed, TopicPartition("t", 4): None}
    ends = dict(zip(committed, (missing, FoundOffset(None, None, None), END), strict=True))

    found = list(partition_rows(offsets, ends))

    assert [row.get("committed_offset") for row in found] == [None, 7, 7, 7]
    assert [row.get("lag_records") for row in found] == [None, None, None, 0]
    assert [row.get("error") for row in found] == [
        "UNSTABLE_OFFSET_COMMIT: open",
        "UNKNOWN_TOPIC_OR_PARTITION: partition t:1 does not exist",
        "the partition's end is not known to its leader",
        None,
    ]


@asynchronous
async def test_a_broker_that_cannot_list_its_groups_is_a_row():
    def listing(asked):
        if asked.node == 1:
            return ListGroupsResponse(error_code=31)
        return ListGroupsResponse(
            groups=[ListedGroup(group_id="a", protocol_type="x", group_state="Stable")]
        )

    async with ScriptedCluster(2, {ListGroupsRequest: listing}) as scripted:
        address = ",".join(f"127.0.0.1:{node.port}" for node in scripted.nodes)
        got = await asyncio.to_thread(shares, SnapshotOptions(address))

    who = "User:ANONYMOUS is not authorized for the cluster"
    told = f"node 1 cannot list its groups: CLUSTER_AUTHORIZATION_FAILED: {who}"
    assert [[one.group_id for one in share.listings] for share in got] == [[], ["a"]]
    assert (got[0].broker, got[0].error) == (1, told)
    (row,) = rows(source(KohortGroups, address), got[0])
    assert (row["group_id"], row["coordinator_id"], row["error"]) == (None, 1, told)
    (row,) = rows(source(KohortOffsets, address), got[0])
    assert (row["group_id"], row["topic"], row["error"]) == (None, None, told)
    assert rows(source(KohortGroups, address), SnapshotPartition()) == []


def test_a_coordinator_that_nobody_is_is_a_row():
    with Broker(nodes=2, in_memory=True) as broker:
        broker.node(1).stop(takeover=False)
        got = shares(SnapshotOptions(broker.bootstrap))
    told = [
        f"the groups of the coordinator at __consumer_offsets:{index} are missing: "
        f"COORDINATOR_NOT_AVAILABLE: nobody coordinates partition {index} of __consumer_offsets"
        for index in (1, 3)
    ]
    assert [(share.listings, share.broker, share.error) for share in got] == [
        ((), None, error) for error in told
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "option 'bootstrap.servers' is missing, expected .option("),
        ({"bootstrap.servers": "a:1", "group": "x"}, "no option 'group', expected bootstrap.serv"),
        ({"bootstrap.servers": "a:1", "groups": " ,"}, "groups is empty, expected names with comm"),
        ({"bootstrap.servers": "a:1", "groupsPerTask": "0"}, "groupsPerTask is '0', expected a nu"),
    ],
)
def test_options_are_checked(options, message):
    with pytest.raises(SourceError, match=re.escape(message)):
        KohortGroups(options)


def test_a_word_that_is_no_state_is_refused(bootstrap):
    with pytest.raises(SourceError, match="'Asleep' is not a group state, expected one of"):
        shares(SnapshotOptions(bootstrap, states=("Asleep",)))


def read(spark, kind, bootstrap, schema=None, **options):
    register(spark)
    reader = spark.read.format(kind.name()).option("bootstrap.servers", bootstrap)
    return (reader.schema(schema) if schema else reader).options(**options).load()


def test_hundreds_of_groups_in_one_action(spark, bootstrap):
    frame = read(spark, KohortGroups, bootstrap, states="Empty,Stable", groupsPerTask="50")
    assert frame.schema == struct_of(GROUPS_NOW)
    groups = frame.withColumn("task", F.spark_partition_id()).collect()
    assert COUNT + 2 <= len({row.group_id for row in groups}) == len(groups)
    tasks = Counter(row.task for row in groups)
    assert len(tasks) > COUNT / 50
    assert max(tasks.values()) <= 50

    few = "error string, lag_records bigint, end_offset bigint, group_id string"
    offsets = read(spark, KohortOffsets, bootstrap, few).where("group_id like 'group-%'")
    (behind,) = offsets.groupBy("end_offset", "lag_records", "error").count().collect()
    assert tuple(behind) == (RECORDS, RECORDS - 4, None, COUNT * PARTITIONS)

    sampled = end_offsets.from_cluster(bootstrap).samples(spark)
    assert sampled.schema == END_OFFSETS.arrow
    ends = {
        (row["topic"], row["topic_partition"], row["end_offset"]) for row in sampled.to_pylist()
    }
    assert ends == {("orders", 0, RECORDS), ("orders", 1, RECORDS)}
    with pytest.raises(AnalysisException, match=r"127.0.0.1:1 cannot be asked: .*refused"):
        read(spark, KohortGroups, "127.0.0.1:1").collect()


def test_a_column_that_is_not_there_is_refused():
    with pytest.raises(
        SourceError, match=r"kohort\.offsets has no column 'x', expected sampled_at"
    ):
        source(KohortOffsets, "a:1").reader(StructType().add("error", "string").add("x", "integer"))


@pytest.mark.prove
@pytest.mark.timeout(300)
def test_ten_thousand_groups(spark):
    with Broker(in_memory=True, nodes=2) as broker:
        with Talk(broker.bootstrap.split(",")[0]) as talk:
            talk.create_topic("orders", PARTITIONS)
        produce(broker.bootstrap)
        asyncio.run(fill(broker.bootstrap, 10_000))
        for _ in range(2):
            for kind, expected in ((KohortGroups, 10_000), (KohortOffsets, 10_000 * PARTITIONS)):
                begin = time.monotonic()
                frame = read(spark, kind, broker.bootstrap)
                assert frame.where("error is null").count() == expected
                print(f"{kind.name()}: {expected} rows in {time.monotonic() - begin:.1f} s")
