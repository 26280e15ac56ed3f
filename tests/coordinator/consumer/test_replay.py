# SPDX-License-Identifier: Apache-2.0
"""From the log to consumer groups: real logs, and what compaction may leave of one."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.coordinator.consumers import beat, kinds, settled
from tests.coordinator.desk import Desk, replay, topic_id

from kohort.config import BrokerConfig
from kohort.coordinator.consumer.group import ConsumerGroup
from kohort.coordinator.consumer.member import Member, MemberState
from kohort.coordinator.consumer.records import (
    current_record,
    epoch_record,
    member_record,
    member_tombstones,
    target_epoch_record,
    target_record,
    tombstones,
)
from kohort.coordinator.consumer.target import NOTHING
from kohort.coordinator.shard import Shard
from kohort.errors import Broken
from kohort.records.codec import Record, decode, encode
from kohort.records.schemas import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupPartitionMetadataValue,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    GroupMetadataKey,
    GroupMetadataValue,
    TopicPartitions,
)
from kohort.terms import Millis, uuid_text

DATA = Path(__file__).parents[2] / "data" / "consumer_groups.json.gz"
LOGS: dict[str, Any] = json.loads(gzip.decompress(DATA.read_bytes()))
ORDERS = topic_id("orders")


def loading() -> Shard:
    return Shard(BrokerConfig(), lambda: bytes(16))


def loaded(*records: Record) -> Shard:
    shard = loading()
    replay(shard, *(decode(*encode(record)) for record in records))
    assert list(shard.start(Millis(0))) == []
    return shard


def described(group: ConsumerGroup) -> dict[str, Any]:
    """A group as ConsumerGroupDescribe tells it, with topics by id."""

    def partitions(*parts: Any) -> dict[str, list[int]]:
        together: dict[str, list[int]] = {}
        for part in parts:
            for topic, indices in part.items():
                together.setdefault(uuid_text(topic), []).extend(indices)
        return {topic: sorted(indices) for topic, indices in together.items() if indices}

    return {
        "state": group.state.value,
        "epochs": (group.group_epoch, group.target_epoch),
        "assignor": group.assignor,
        "members": {
            one.id: (
                one.instance_id,
                one.rack_id,
                one.epoch,
                one.client_id,
                one.client_host,
                sorted(one.subscribed_names),
                one.subscribed_regex,
                0 if one.classic else 1,
                partitions(one.assigned, one.revoking),
                partitions(group.targets.get(one.id, NOTHING).partitions),
            )
            for one in group.members.values()
        },
    }


def expected(told: dict[str, Any]) -> dict[str, Any]:
    def partitions(assignment: Any) -> dict[str, list[int]]:
        return {one["TopicId"]: sorted(one["Partitions"]) for one in assignment["TopicPartitions"]}

    return {
        "state": told["GroupState"],
        "epochs": (told["GroupEpoch"], told["AssignmentEpoch"]),
        "assignor": told["AssignorName"],
        "members": {
            one["MemberId"]: (
                one["InstanceId"],
                one["RackId"],
                one["MemberEpoch"],
                one["ClientId"],
                one["ClientHost"],
                sorted(one["SubscribedTopicNames"]),
                one["SubscribedTopicRegex"],
                one["MemberType"],
                partitions(one["Assignment"]),
                partitions(one["TargetAssignment"]),
            )
            for one in told["Members"]
        },
    }


def golden() -> Iterator[Any]:
    for log in LOGS:
        for told in LOGS[log]["described"]:
            yield pytest.param(log, told, id=f"{log}-{told['GroupId']}")


def shards_of(log: str) -> list[Shard]:
    shards = []
    for records in LOGS[log]["records"].values():
        shard = loading()
        for key, value in records:
            replay(shard, decode(bytes.fromhex(key), value and bytes.fromhex(value)))
        list(shard.start(Millis(0)))
        shards.append(shard)
    return shards


@pytest.mark.parametrize(("log", "told"), list(golden()))
def test_groups_of_a_real_log_are_what_kafka_said_they_are(log: str, told: dict[str, Any]) -> None:
    """Static members, resolved expressions and classic members among them."""
    [group] = [
        group
        for shard in shards_of(log)
        if (group := shard.groups.consumer(told["GroupId"])) is not None
    ]
    assert described(group) == expected(told)


@pytest.mark.parametrize("log", LOGS)
def test_no_other_consumer_group_is_left_of_a_real_log(log: str) -> None:
    found = [
        group.id
        for shard in shards_of(log)
        for group in shard.groups
        if isinstance(group, ConsumerGroup)
    ]
    assert sorted(found) == sorted(told["GroupId"] for told in LOGS[log]["described"])


def test_what_was_written_says_the_same_when_read_again() -> None:
    """K848-006, K848-012."""
    desk = Desk()
    settled(desk, "a", "b")
    beat(desk, "c", 0, server_assignor="range", rack_id="r")
    beat(desk, "a", 3)
    group = desk.shard.groups.consumer("g")
    assert group is not None
    again = loaded(*desk.log).groups.consumer("g")
    assert again is not None
    assert again.members == group.members
    assert (again.targets, again.held) == (group.targets, group.held)
    assert described(again) == described(group)
    assert again.metadata_hash == group.metadata_hash != 0


# -- what compaction may leave


@pytest.mark.parametrize(
    "tombstone",
    [
        *tombstones("g", (), ()),
        *member_tombstones("g", "m"),
        Record(ConsumerGroupRegularExpressionKey(group_id="g", regular_expression="a.*"), None),
    ],
)
def test_a_tombstone_of_what_is_not_there_is_nothing(tombstone: Record) -> None:
    shard = loaded(tombstone)
    assert len(shard.groups) == 0
    replay(shard, tombstone)


def test_a_member_may_be_known_by_what_it_has_before_it_is_described() -> None:
    member = Member("m", subscribed_names=("orders",), epoch=3, assigned={ORDERS: {1: 3}})
    group = loaded(current_record("g", member), member_record("g", member)).groups.consumer("g")
    assert group is not None
    assert group.members == {"m": member}
    assert group.held == {ORDERS: {1: "m"}}


def test_a_partition_that_seems_to_have_two_owners_belongs_to_the_later_one() -> None:
    """KAFKA-19862: the record in which the first let go of it is gone."""
    a = Member("a", epoch=2, assigned={ORDERS: {0: 2}})
    b = Member("b", epoch=3, assigned={ORDERS: {0: 3}})
    let_go = Member("a", epoch=4)
    shard = loaded(current_record("g", a), current_record("g", b), current_record("g", let_go))
    group = shard.groups.consumer("g")
    assert group is not None
    assert group.held == {ORDERS: {0: "b"}}
    with pytest.raises(Broken, match="held by b"):
        replay(shard, current_record("g", a))


def test_a_group_may_be_deleted_while_something_of_it_seems_to_be_left() -> None:
    member = Member("m", epoch=3)
    last = tombstones("g", (), ())[-1]
    assert len(loaded(member_record("g", member), last).groups) == 0
    with pytest.raises(Broken, match="deleted with 1 members"):
        replay(loaded(member_record("g", member)), last)


def test_live_the_order_of_tombstones_is_checked() -> None:
    member = Member("m", epoch=3)
    written = [member_record("g", member), current_record("g", member)]
    current, _, described_ = member_tombstones("g", "m")
    with pytest.raises(Broken, match="deleted at epoch 3"):
        replay(loaded(*written), described_)
    with pytest.raises(Broken, match="before those of its members"):
        replay(loaded(*written, target_record("g", "m", NOTHING)), tombstones("g", (), ())[0])
    assert len(loaded(*written, current, described_).groups.consumer("g").members) == 0


def test_a_deleted_group_leaves_nothing() -> None:
    desk = Desk()
    settled(desk, "a", "b")
    group = desk.shard.groups.consumer("g")
    assert group is not None
    ends = group.tombstones()
    assert kinds(ends) == [
        *["-current"] * 2,
        *["-target"] * 2,
        "-target epoch",
        *["-member"] * 2,
        "-partitions",
        "-epoch",
    ]
    for record in ends:
        replay(desk.shard, record)
    assert len(desk.shard.groups) == 0


def test_values_of_older_brokers_have_no_epochs_of_partitions() -> None:
    key = ConsumerGroupCurrentMemberAssignmentKey(group_id="g", member_id="m")
    value = ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=7,
        previous_member_epoch=6,
        state=0,
        assigned_partitions=[TopicPartitions(topic_id=ORDERS, partitions=[3, 1])],
        partitions_pending_revocation=[],
    )
    group = loaded(Record(key, value)).groups.consumer("g")
    assert group is not None
    assert group.members["m"].assigned == {ORDERS: {1: 7, 3: 7}}


def test_a_state_of_a_newer_broker_is_kept_as_unknown() -> None:
    key = ConsumerGroupCurrentMemberAssignmentKey(group_id="g", member_id="m")
    value = ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=7,
        previous_member_epoch=6,
        state=9,
        assigned_partitions=[],
        partitions_pending_revocation=[],
    )
    group = loaded(Record(key, value)).groups.consumer("g")
    assert group is not None
    assert group.members["m"].state is MemberState.UNKNOWN


def test_the_metadata_of_older_brokers_makes_a_group_and_tells_nothing() -> None:
    key = ConsumerGroupPartitionMetadataKey(group_id="g")
    shard = loaded(Record(key, ConsumerGroupPartitionMetadataValue(topics=[])))
    assert shard.groups.consumer("g") is not None


def test_expressions_come_and_go() -> None:
    key = ConsumerGroupRegularExpressionKey(group_id="g", regular_expression="o.*")
    value = ConsumerGroupRegularExpressionValue(topics=["orders"], version=1, timestamp=1)
    shard = loaded(member_record("g", Member("m", subscribed_regex="o.*")), Record(key, value))
    group = shard.groups.consumer("g")
    assert group is not None
    assert group.subscribes_to("orders")
    assert list(group.topic_names((), ())) == ["orders"]
    replay(shard, Record(key, None))
    assert not group.subscribes_to("orders")


def classic(members: int) -> Record:
    from kohort.records.schemas import MemberMetadata

    return Record(
        GroupMetadataKey(group="g"),
        GroupMetadataValue(
            protocol_type="consumer",
            generation=1,
            protocol="range",
            leader="0" if members else None,
            members=[
                MemberMetadata(
                    member_id=str(number),
                    client_id="",
                    client_host="",
                    session_timeout=1,
                    subscription=b"",
                    assignment=b"",
                )
                for number in range(members)
            ],
        ),
    )


def test_a_classic_group_without_members_makes_room() -> None:
    shard = loaded(classic(0))
    replay(shard, epoch_record("g", 2, 0))
    assert shard.groups.consumer("g") is not None


def test_a_classic_group_with_members_does_not_live_but_while_loading() -> None:
    assert loaded(classic(1), epoch_record("g", 2, 0)).groups.consumer("g") is not None
    with pytest.raises(Broken, match="has 1 members"):
        replay(loaded(classic(1)), epoch_record("g", 2, 0))


def test_the_target_is_remembered_with_its_time() -> None:
    group = loaded(target_epoch_record("g", 5, Millis(77))).groups.consumer("g")
    assert group is not None
    assert (group.target_epoch, group.target_time) == (5, 77)
    assert loaded(Record(ConsumerGroupMetadataKey(group_id="g"), None)).groups.get("g") is None
