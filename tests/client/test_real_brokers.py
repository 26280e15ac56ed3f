# SPDX-License-Identifier: Apache-2.0
"""The admin client against whole brokers: ours on one node and on three, and Apache Kafka."""

import asyncio

import pytest
from tests.client.joining import (
    ConsumerMember,
    commit,
    coordinator,
    join_classic,
    leave_classic,
    soon,
)
from tests.client.scripted import asynchronous
from tests.client.whole_brokers import WHOLE_BROKERS, create_topic, whole_broker

from kohort.client.accumulator.partitioning import partition_of
from kohort.client.admin import AdminClient, NewTopic, TopicPartition
from kohort.client.network.address import Address
from kohort.client.network.cluster import Cluster
from kohort.client.producer import Producer
from kohort.client.topic_reader import TopicReader
from kohort.errors import ErrorCode, UnsupportedVersionError
from kohort.terms import uuid_text

MEMBER_ID = uuid_text(b"an id of a member"[:16])


@pytest.fixture(scope="module", params=WHOLE_BROKERS)
def bootstrap(request):
    with whole_broker(request.param) as address:
        yield address


@pytest.fixture(scope="module")
def topic(bootstrap):
    create_topic(bootstrap, "orders", 3)
    return "orders"


@asynchronous
async def test_topics_live_and_die(bootstrap):
    async with AdminClient(bootstrap) as admin:
        created = await admin.create_topics(
            [NewTopic("short", 2, 1, {"retention.ms": "60000"}), NewTopic("bad name", 1, 1)]
        )
        assert created["short"].partitions == 2
        assert created.failed["bad name"].code is ErrorCode.INVALID_TOPIC_EXCEPTION
        while "short" not in [one.name for one in await admin.list_topics()]:  # noqa: ASYNC110
            await asyncio.sleep(0.05)  # a broker of Kafka's may hear of it a little later
        described = await admin.describe_topics(["short", "missing"])
        assert [one.partition for one in described["short"].partitions] == [0, 1]
        assert described["short"].topic_id == created["short"].topic_id
        assert described.failed["missing"].code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        again = await admin.create_topics([NewTopic("short", 2, 1)])
        assert again.failed["short"].code is ErrorCode.TOPIC_ALREADY_EXISTS
        grown = await admin.create_partitions({"short": 3, "missing": 3})
        assert grown["short"] is None
        assert grown.failed["missing"].code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        less = await admin.create_partitions({"short": 1})
        assert less.failed["short"].code is ErrorCode.INVALID_PARTITIONS
        deleted = await admin.delete_topics(["short", "missing"])
        assert deleted.succeeded == {"short": None}
        assert deleted.failed["missing"].code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@asynchronous
async def test_a_group_of_the_new_protocol(bootstrap, topic):
    async with AdminClient(bootstrap) as admin, coordinator(bootstrap, "new") as connection:
        member = ConsumerMember(connection, "new", MEMBER_ID)
        await member.join(topic)
        partition = TopicPartition(topic, 1)
        assert await commit(
            connection, "new", {partition: 0}, member_id=MEMBER_ID, epoch=member.epoch
        ) == [0]

        group = (await admin.describe_groups(["new"]))["new"]
        assert (group.type, group.state, group.protocol_type) == ("consumer", "Stable", "consumer")
        assert group.assignor == "uniform"
        assert group.group_epoch == group.assignment_epoch == member.epoch
        (shown,) = group.members
        assert (shown.member_id, shown.client_id) == (MEMBER_ID, "member")
        assert shown.subscribed_topics == (topic,)
        assert shown.assignment == shown.target_assignment == {topic: (0, 1, 2)}

        refused = await admin.delete_groups(["new"])
        assert refused.failed["new"].code is ErrorCode.NON_EMPTY_GROUP
        offsets = (await admin.list_group_offsets({"new": None}))["new"]
        assert offsets[partition].offset == 0
        assert offsets[partition].metadata == "test"
        await member.leave()
        (await admin.delete_groups(["new"])).all()
        assert (await admin.list_group_offsets({"new": [partition]})).all() == {
            "new": {partition: None}
        }
        assert "new" not in [one.group_id for one in await admin.list_groups()]


@asynchronous
async def test_a_group_of_the_classic_protocol(bootstrap, topic):
    async with AdminClient(bootstrap) as admin, coordinator(bootstrap, "classic") as connection:
        member_id = await join_classic(connection, "classic", topic, [2, 0])
        group = (await admin.describe_groups(["classic"]))["classic"]
        assert (group.type, group.state, group.assignor) == ("classic", "Stable", "range")
        assert group.group_epoch is None
        (shown,) = group.members
        assert (shown.member_id, shown.assignment) == (member_id, {topic: (0, 2)})
        assert shown.subscribed_topics == (topic,)
        await leave_classic(connection, "classic", member_id)
        assert (await admin.describe_groups(["classic"]))["classic"].state == "Empty"
        (await admin.delete_groups(["classic"])).all()
        described = await admin.describe_groups(["classic"])
        assert described.failed["classic"].code is ErrorCode.GROUP_ID_NOT_FOUND


@asynchronous
async def test_offsets_of_many_groups(bootstrap, topic):
    """KIP-709, with one that does not exist and partitions that have nothing."""
    names = [f"many-{index}" for index in range(12)]
    for index, name in enumerate(names):
        async with coordinator(bootstrap, name) as connection:
            codes = await commit(connection, name, {(topic, 0): index, (topic, 2): 100 + index})
            assert codes == [0, 0]
    async with AdminClient(bootstrap) as admin:
        wanted = dict.fromkeys(names) | {"many-0": [(topic, 2), (topic, 1)], "nobody": None}
        result = (await admin.list_group_offsets(wanted, require_stable=True)).all()
        assert list(result) == list(wanted)
        assert result["nobody"] == {}
        assert result["many-0"][topic, 1] is None
        assert result["many-0"][topic, 2].offset == 100
        for index, name in enumerate(names[1:], 1):
            assert {key: one.offset for key, one in result[name].items()} == {
                (topic, 0): index,
                (topic, 2): 100 + index,
            }
        listed = await admin.list_groups()
        assert set(names) <= {one.group_id for one in listed}
        assert listed.errors == {}
        deleted = await admin.delete_groups([*names, "nobody"])
        assert list(deleted.succeeded) == names
        assert deleted.failed["nobody"].code is ErrorCode.GROUP_ID_NOT_FOUND


@asynchronous
async def test_ends_of_an_empty_topic(bootstrap, topic):
    async with AdminClient(bootstrap) as admin:
        ends = await admin.end_offsets([(topic, index) for index in range(4)])
        assert [one.offset for one in ends.succeeded.values()] == [0, 0, 0]
        assert list(ends.failed) == [(topic, 3)]
        late = await admin.list_offsets({(topic, 0): 0, (topic, 1): "earliest"})
        assert late[topic, 0].offset is None
        assert late[topic, 1].offset == 0


@asynchronous
async def test_groups_by_state_and_type(bootstrap, topic, request):
    if "old" in request.node.name:
        async with AdminClient(bootstrap) as admin:
            with pytest.raises(UnsupportedVersionError, match="filtering by state needs v4"):
                await admin.list_groups(states=["stable"])
        return
    async with coordinator(bootstrap, "idle") as connection:
        assert await commit(connection, "idle", {(topic, 0): 1}) == [0]
    async with AdminClient(bootstrap) as admin, coordinator(bootstrap, "busy") as connection:
        member = ConsumerMember(connection, "busy", MEMBER_ID)
        await member.join(topic)

        async def ids(**filters):
            return [one.group_id for one in await admin.list_groups(**filters)]

        assert await ids(states=["stable"]) == ["busy"]
        assert await ids(states=["EMPTY"]) == ["idle"]
        assert await ids(types=["Consumer"]) == ["busy"]
        assert await ids(types=["classic"], states=["Empty", "Stable"]) == ["idle"]
        assert await ids(types=["consumer"], states=["dead"]) == []
        await member.leave()
        (await admin.delete_groups(["busy", "idle"])).all()


@asynchronous
async def test_what_is_appended_is_read_where_its_key_belongs(bootstrap):
    async with AdminClient(bootstrap) as admin:
        (await admin.create_topics([NewTopic("data", 3, 1)])).all()
    cluster = Cluster([Address.of(one) for one in bootstrap.split(",")], client_id="test")
    try:
        entries = [(b"key-%d" % (one % 7), b"value %d" % one) for one in range(100)]
        async with Producer(bootstrap_servers=bootstrap) as producer:
            for key, value in [*entries, (b"key-0", None), (None, b"no key")]:
                await producer.send("data", value, key=key)
        reader = await TopicReader.open(cluster, ["data"], when="earliest", deadline=soon())
        found = []
        while len(found) < 102:
            found += await reader.read(wait_ms=500, deadline=soon())
        assert reader.places == await reader.ends(soon())
    finally:
        await cluster.close()
    for key in {key for key, _ in entries}:
        mine = [one for one in found if one.key == key]
        assert {one.partition for one in mine} == {partition_of(key, 3)}
        values = [one.value for one in mine]
        assert values == [v for k, v in [*entries, (b"key-0", None)] if k == key]
    assert [one.value for one in found if one.key is None] == [b"no key"]


@pytest.mark.clients
@asynchronous
async def test_the_mock_of_librdkafka():
    """It refuses a version of ApiVersions in a layout of its own, and knows few requests."""
    confluent = pytest.importorskip("confluent_kafka")
    made = confluent.Producer({"test.mock.num.brokers": 2, "bootstrap.servers": "ignored:1"})
    (first, *_) = made.list_topics(timeout=120).brokers.values()
    async with AdminClient(f"{first.host}:{first.port}", timeout=120) as admin:
        assert len(await admin.describe_cluster()) == 2
        assert await admin.list_topics() == ()
        with pytest.raises(
            UnsupportedVersionError, match=f":{first.port} does not offer ListGroup"
        ):
            await admin.list_groups()
