# SPDX-License-Identifier: Apache-2.0
"""Members that compute assignments (KIP-848), short enough for tests to be read."""

from typing import Any

from tests.coordinator.consumers import Consumer, Partitions, beat, given, named
from tests.coordinator.desk import Desk

from kohort.errors import ErrorCode
from kohort.wire.messages.consumer_group_heartbeat import (
    ClientAssignor,
    ConsumerGroupHeartbeatResponse,
)
from kohort.wire.messages.consumer_group_install_assignment import (
    ConsumerGroupInstallAssignmentRequest,
    Member,
    TopicPartition,
)
from kohort.wire.messages.consumer_group_prepare_assignment import (
    ConsumerGroupPrepareAssignmentRequest,
    ConsumerGroupPrepareAssignmentResponse,
)

COMPUTE = ErrorCode.COMPUTE_ASSIGNMENT


def offer(
    name: str = "x",
    low: int = 0,
    high: int = 0,
    *,
    reason: int = 0,
    version: int | None = None,
    metadata: bytes = b"",
) -> ClientAssignor:
    return ClientAssignor(
        name=name,
        minimum_version=low,
        maximum_version=high,
        reason=reason,
        metadata_version=low if version is None else version,
        metadata_bytes=metadata,
    )


def part(member_id: str, partitions: Partitions, metadata: bytes = b"", version: int = 0) -> Member:
    return Member(
        member_id=member_id,
        partitions=[
            TopicPartition(topic_id=one.topic_id, partitions=one.partitions)
            for one in named(partitions)
        ],
        metadata_version=version,
        metadata_bytes=metadata,
    )


class Assigner(Consumer):
    """`asked` says whether its last heartbeat asked it to compute; `attachment` is what it was told
    with its last assignment.
    """

    def __init__(self, desk: Desk, member_id: str, *offers: ClientAssignor, **fields: Any) -> None:
        super().__init__(desk, member_id, **fields)
        self.offers = list(offers) or [offer()]
        self.asked = False
        self.attachment: Any = None

    def join(self, **fields: Any) -> "Assigner":
        self.owned = {}
        fields = {**self.fields, "client_assignors": self.offers, **fields}
        self.take(beat(self.desk, self.id, 0, **fields))
        return self

    def take(self, answer: ConsumerGroupHeartbeatResponse) -> "Assigner":
        self.asked = answer.error_code == COMPUTE
        assert answer.error_code in (0, COMPUTE), answer.error_message
        self.epoch = answer.member_epoch
        owned = given(answer)
        if owned is not None and answer.assignment is not None:
            self.owned, self.attachment = owned, answer.assignment.attachment
        return self

    def take_leave(self) -> None:
        assert beat(self.desk, self.id, -1).error_code == 0

    def prepare(self, **fields: Any) -> ConsumerGroupPrepareAssignmentResponse:
        request = {"group_id": "g", "member_id": self.id, "member_epoch": self.epoch, **fields}
        answer: ConsumerGroupPrepareAssignmentResponse = self.desk.told(
            ConsumerGroupPrepareAssignmentRequest(**request), 0
        )
        return answer

    def install(self, group_epoch: int, *members: Member, error: int = 0, **fields: Any) -> Any:
        request = {
            "group_id": "g",
            "member_id": self.id,
            "member_epoch": self.epoch,
            "group_epoch": group_epoch,
            "error": error,
            "members": list(members),
            **fields,
        }
        return self.desk.told(ConsumerGroupInstallAssignmentRequest(**request), 0)

    def compute(self, *members: Member) -> "Assigner":
        """Do what it was asked for."""
        prepared = self.prepare()
        assert prepared.error_code == 0, prepared.error_message
        answer = self.install(prepared.group_epoch, *members)
        assert answer.error_code == 0, answer.error_message
        return self


def share(
    prepared: ConsumerGroupPrepareAssignmentResponse, metadata: bytes = b"", version: int = 0
) -> list[Member]:
    """Deal the partitions of every topic to its subscribers in turn."""
    parts = {
        one.member_id: Member(
            member_id=one.member_id, metadata_version=version, metadata_bytes=metadata
        )
        for one in prepared.members
    }
    for topic in prepared.topics:
        readers = [
            one.member_id for one in prepared.members if topic.topic_id in one.subscribed_topic_ids
        ]
        for number, reader in enumerate(readers):
            own = list(range(number, topic.num_partitions, len(readers)))
            parts[reader].partitions.append(TopicPartition(topic_id=topic.topic_id, partitions=own))
    return list(parts.values())


def settle(*members: Assigner) -> None:
    """Heartbeat until nobody has anything to do; who is asked computes."""
    for _ in range(8):
        for one in members:
            one.beat()
            if one.asked:
                one.compute(*share(one.prepare()))
    [group] = members[0].desk.shard.groups.all_consumer()
    assert group.state == "Stable", group.state


def group_of(desk: Desk) -> Any:
    return desk.shard.groups.consumer("g")
