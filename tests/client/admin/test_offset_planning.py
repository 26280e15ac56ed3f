# SPDX-License-Identifier: Apache-2.0
"""Plans to reset offsets, asked of whole brokers: what kafka-consumer-groups of Apache Kafka 4.3.1
printed for the same topics, groups and options is what a plan has.
"""

from datetime import UTC, datetime, timedelta

import pytest
from tests.client.joining import ConsumerMember, coordinator, soon
from tests.client.scripted import asynchronous
from tests.client.whole_brokers import WHOLE_BROKERS, create_topic, whole_broker

from kohort.client.admin import AdminClient, CommittedOffset, OffsetReset, TopicPartition
from kohort.client.admin.offset_reset import OffsetAdjustment, Scenario
from kohort.client.admin.topics import leaders
from kohort.client.producer import Producer
from kohort.errors import ApiError, ErrorCode
from kohort.terms import GroupState, uuid_text
from kohort.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)

MEMBER_ID = uuid_text(b"an id of a member"[:16])
BEGIN_MS = 1_700_000_000_000  # 2023-11-14T22:13:20Z, and a second later for each record
ENDS = {"cli-a": (10, 6, 0), "cli-b": (4, 0)}
START = TopicPartition("cli-a", 1), 2  # what was before is deleted
SIMPLE = {("cli-a", 0): 5, ("cli-a", 1): 4, ("cli-b", 0): 2}
AT_25_S = datetime(2023, 11, 14, 22, 13, 25, tzinfo=UTC)
PLAN_CSV = {("cli-a", 0): 8, ("cli-a", 1): 3, ("cli-b", 0): 1}


@pytest.fixture(scope="module", params=WHOLE_BROKERS)
def bootstrap(request):
    with whole_broker(request.param) as address:
        for topic, ends in ENDS.items():
            create_topic(address, topic, len(ends))
        write_records(address)
        yield address


@asynchronous
async def write_records(bootstrap):
    async with Producer(bootstrap_servers=bootstrap) as producer:
        for topic, ends in ENDS.items():
            for partition, end in enumerate(ends):
                for index in range(end):
                    await producer.send_and_wait(
                        topic, b"x", partition=partition, timestamp_ms=BEGIN_MS + 1000 * index
                    )
    partition, offset = START
    async with AdminClient(bootstrap) as admin:
        cluster = admin._cluster
        leader = (await leaders(cluster)([partition], soon()))[partition]
        topic = DeleteRecordsTopic(
            name=partition.topic,
            partitions=[DeleteRecordsPartition(partition_index=1, offset=offset)],
        )
        request = DeleteRecordsRequest(topics=[topic], timeout_ms=10_000)
        await cluster.ask(leader, request, deadline=soon())
        for group_id, offsets in {
            "cli-simple": SIMPLE,
            "cli-beyond": {("cli-a", 0): 1000},
        }.items():
            (await admin.alter_group_offsets(group_id, offsets)).all()


# The name of a recorded run, its scenario and scope, and the offsets that it printed.
RECORDED = [
    ("earliest-dry", OffsetReset.earliest(), None, {"cli-a": {0: 0, 1: 2}, "cli-b": {0: 0}}),
    ("latest-dry", OffsetReset.latest(), None, {"cli-a": {0: 10, 1: 6}, "cli-b": {0: 4}}),
    ("current-dry", OffsetReset.current(), None, {"cli-a": {0: 5, 1: 4}, "cli-b": {0: 2}}),
    ("current-all-partitions", OffsetReset.current(), "cli-a", {"cli-a": {0: 5, 1: 4, 2: 0}}),
    ("offset-5", OffsetReset.to_offset(5), "cli-a", {"cli-a": {0: 5, 1: 5, 2: 0}}),
    ("offset-below", OffsetReset.to_offset(0), "cli-a", {"cli-a": {0: 0, 1: 2, 2: 0}}),
    ("offset-negative", OffsetReset.to_offset(-5), "cli-a", {"cli-a": {0: 0, 1: 2, 2: 0}}),
    ("offset-too-large", OffsetReset.to_offset(99999), "cli-a", {"cli-a": {0: 10, 1: 6, 2: 0}}),
    ("shift-back", OffsetReset.shift_by(-1), None, {"cli-a": {0: 4, 1: 3}, "cli-b": {0: 1}}),
    ("shift-far", OffsetReset.shift_by(-1000), None, {"cli-a": {0: 0, 1: 2}, "cli-b": {0: 0}}),
    ("shift-on", OffsetReset.shift_by(1000), None, {"cli-a": {0: 10, 1: 6}, "cli-b": {0: 4}}),
    ("datetime-z", OffsetReset.to_time(AT_25_S), "cli-a", {"cli-a": {0: 5, 1: 5, 2: 0}}),
    (
        "datetime-future",
        OffsetReset.to_time(datetime(2099, 1, 1, tzinfo=UTC)),
        "cli-a",
        {"cli-a": {0: 10, 1: 6, 2: 0}},
    ),
    (
        "duration",
        OffsetReset.by_duration(timedelta(days=3650)),
        "cli-a",
        {"cli-a": {0: 0, 1: 2, 2: 0}},
    ),
    (
        "duration-zero",
        OffsetReset.by_duration(timedelta(0)),
        "cli-a",
        {"cli-a": {0: 10, 1: 6, 2: 0}},
    ),
    (
        "partitions",
        OffsetReset.earliest(),
        [("cli-a", 0), ("cli-a", 1)],
        {"cli-a": {0: 0, 1: 2}},
    ),
    (
        "two-topics",
        OffsetReset.latest(),
        [("cli-a", 1), "cli-b"],
        {"cli-a": {1: 6}, "cli-b": {0: 4, 1: 0}},
    ),
    (
        "file-plan",
        OffsetReset.from_offsets(PLAN_CSV),
        None,
        {"cli-a": {0: 8, 1: 3}, "cli-b": {0: 1}},
    ),
    (
        "file-too-large",
        OffsetReset.from_offsets({("cli-a", 0): 99999}),
        None,
        {"cli-a": {0: 10}},
    ),
]


def offsets_of(plan):
    found = {}
    for partition, offset in plan.offsets.items():
        found.setdefault(partition.topic, {})[partition.partition] = offset.offset
    return found


@pytest.mark.parametrize(
    ("reset", "partitions", "expected"),
    [one[1:] for one in RECORDED],
    ids=[one[0] for one in RECORDED],
)
@asynchronous
async def test_a_plan_has_what_apache_kafka_printed(bootstrap, reset, partitions, expected):
    """K848-200: the scenarios of upstream, for a group that only has offsets."""
    async with AdminClient(bootstrap) as admin:
        plan = await admin.plan_offset_reset("cli-simple", reset, partitions)
    assert offsets_of(plan) == expected
    assert (plan.group_id, plan.state, plan.failed) == ("cli-simple", GroupState.EMPTY, {})
    assert plan.refusal is None


@asynchronous
async def test_a_plan_is_applied_by_setting_its_offsets(bootstrap):
    """K848-200: to the offsets of another group, which need not lie within the log."""
    async with AdminClient(bootstrap) as admin:
        beyond = await admin.plan_offset_reset("cli-beyond", OffsetReset.current())
        assert offsets_of(beyond) == {"cli-a": {0: 1000}}
        clone = OffsetReset.clone("cli-beyond")
        plan = await admin.plan_offset_reset("cli-copy", clone)
        assert plan.state is GroupState.DEAD
        planned = plan.partitions["cli-a", 0]
        assert (planned.current, planned.lag_before, planned.lag_after) == (None, None, -990)
        assert (await admin.list_group_offsets("cli-copy"))["cli-copy"] == {}  # a plan is a value
        (await admin.alter_group_offsets(plan.group_id, plan.offsets)).all()
        assert (await admin.list_group_offsets("cli-copy"))["cli-copy"] == {
            ("cli-a", 0): CommittedOffset(1000)
        }
        more = await admin.plan_offset_reset("cli-copy", clone, [("cli-a", 0), ("cli-a", 1)])
        assert more.partitions["cli-a", 0].lag_before == -990
        assert more.failed[TopicPartition("cli-a", 1)].message == (
            "partition cli-a:1 has no offset in group cli-beyond"
        )


@asynchronous
async def test_what_cannot_be_reset_is_named_and_the_rest_is_planned(bootstrap):
    """K848-200: recorded as shift-no-commit, missing-partition and missing-topic."""
    async with AdminClient(bootstrap) as admin:
        plan = await admin.plan_offset_reset("cli-simple", OffsetReset.shift_by(1), "cli-a")
        assert offsets_of(plan) == {"cli-a": {0: 6, 1: 5}}
        assert plan.failed[TopicPartition("cli-a", 2)].message == (
            "partition cli-a:2 has no committed offset to shift"
        )
        there_and_not = [("cli-a", 0), ("cli-a", 77)]
        plan = await admin.plan_offset_reset("cli-simple", OffsetReset.latest(), there_and_not)
        assert offsets_of(plan) == {"cli-a": {0: 10}}
        missing = plan.failed[TopicPartition("cli-a", 77)]
        assert missing.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert missing.message == "partition cli-a:77 does not exist"
        with pytest.raises(ApiError, match=r"UNKNOWN_TOPIC_OR_PARTITION: .*nope"):
            await admin.plan_offset_reset("cli-simple", OffsetReset.latest(), ["cli-a", "nope"])
        assert (await admin.plan_offset_reset("nobody", OffsetReset.latest())).partitions == {}


@asynchronous
async def test_a_group_with_members_is_planned_and_refused(bootstrap):
    """K848-200: recorded as active."""
    async with AdminClient(bootstrap) as admin, coordinator(bootstrap, "active") as connection:
        member = ConsumerMember(connection, "active", MEMBER_ID)
        await member.join("cli-a")
        plan = await admin.plan_offset_reset("active", OffsetReset.earliest(), "cli-a")
        assert plan.state is GroupState.STABLE
        assert offsets_of(plan) == {"cli-a": {0: 0, 1: 2, 2: 0}}
        assert plan.refusal is not None
        assert plan.refusal.message == (
            "group active is Stable, expected a group without members: stop its consumers first"
        )
        altered = await admin.alter_group_offsets(plan.group_id, plan.offsets)
        assert set(altered.failed) == set(plan.offsets)
        await member.leave()


@asynchronous
async def test_a_plan_says_what_lies_ahead_before_and_after(bootstrap):
    async with AdminClient(bootstrap) as admin:
        plan = await admin.plan_offset_reset("cli-simple", OffsetReset.to_offset(0), "cli-a")
        assert [(one.lag_before, one.lag_after) for one in plan.partitions.values()] == [
            (5, 10),
            (2, 4),
            (None, 0),
        ]
        assert [one.adjustment for one in plan.partitions.values()] == [
            None,
            OffsetAdjustment.BEFORE_START,
            None,
        ]
    assert {one[1].scenario for one in RECORDED} | {Scenario.CLONE} == set(Scenario)
