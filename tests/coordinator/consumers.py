# SPDX-License-Identifier: Apache-2.0
"""Members of consumer groups, short enough for tests to be read."""

from typing import Any

from tests.coordinator.desk import Desk, topic_id

from kohort.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

Partitions = dict[str, list[int]]  # by topic name


def named(partitions: Partitions) -> list[TopicPartitions]:
    return [
        TopicPartitions(topic_id=topic_id(name), partitions=indices)
        for name, indices in partitions.items()
    ]


def request(member_id: str, epoch: int, **fields: Any) -> ConsumerGroupHeartbeatRequest:
    """A heartbeat; `owned` is by topic name, and what a join must say is filled in."""
    owned = fields.pop("owned", {} if epoch == 0 else None)
    if "names" in fields:
        fields["subscribed_topic_names"] = fields.pop("names")
    if epoch == 0:
        fields = {"rebalance_timeout_ms": 60_000, "subscribed_topic_names": ["orders"], **fields}
    return ConsumerGroupHeartbeatRequest(
        **{
            "group_id": "g",
            "member_id": member_id,
            "member_epoch": epoch,
            "topic_partitions": None if owned is None else named(owned),
            **fields,
        }
    )


def beat(
    desk: Desk, member_id: str, epoch: int, *, version: int = 1, **fields: Any
) -> ConsumerGroupHeartbeatResponse:
    """One heartbeat and its answer, an error or not."""
    answer: ConsumerGroupHeartbeatResponse = desk.told(request(member_id, epoch, **fields), version)
    return answer


def given(answer: ConsumerGroupHeartbeatResponse) -> Partitions | None:
    """The assignment of an answer, None when it says that nothing has changed."""
    if answer.assignment is None:
        return None
    return {
        one.topic_id.rstrip(b".").decode(): list(one.partitions)
        for one in answer.assignment.topic_partitions
    }


class Consumer:
    """A client that does as it is told: it takes what it gets and gives up what it has to."""

    def __init__(self, desk: Desk, member_id: str, **fields: Any) -> None:
        self.desk, self.id, self.fields = desk, member_id, fields
        self.epoch = 0
        self.owned: Partitions = {}

    def join(self) -> "Consumer":
        self.owned = {}
        return self.take(beat(self.desk, self.id, 0, **self.fields))

    def beat(self, **fields: Any) -> "Consumer":
        return self.take(beat(self.desk, self.id, self.epoch, owned=self.owned, **fields))

    def take(self, answer: ConsumerGroupHeartbeatResponse) -> "Consumer":
        assert answer.error_code == 0, answer.error_message
        self.epoch = answer.member_epoch
        assignment = given(answer)
        if assignment is not None:
            self.owned = assignment
        return self


def settled(desk: Desk, *members: str, **fields: Any) -> list[Consumer]:
    """A group in which every member has all that it is meant to have."""
    consumers = [Consumer(desk, member_id, **fields).join() for member_id in members]
    for _ in range(5):
        for consumer in consumers:
            consumer.beat()
    group = desk.shard.groups.consumer("g")
    assert group.state == "Stable"
    return consumers


def kinds(records: list[Any]) -> list[str]:
    """Records as words: the type of each, and a minus before a tombstone."""
    words = {
        "GroupMetadataKey": "classic",
        "ConsumerGroupMetadataKey": "epoch",
        "ConsumerGroupPartitionMetadataKey": "partitions",
        "ConsumerGroupMemberMetadataKey": "member",
        "ConsumerGroupTargetAssignmentMetadataKey": "target epoch",
        "ConsumerGroupTargetAssignmentMemberKey": "target",
        "ConsumerGroupCurrentMemberAssignmentKey": "current",
        "ConsumerGroupRegularExpressionKey": "regex",
    }
    return [
        ("-" if one.value is None else "") + words.get(type(one.key).__name__, "?")
        for one in records
    ]
