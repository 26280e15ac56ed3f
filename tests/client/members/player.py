# SPDX-License-Identifier: Apache-2.0
"""A membership at a real coordinator, a request at a time, with answers that may get lost."""

from typing import Any

from tests.client.members.any_player import AnyPlayer
from tests.coordinator.desk import Desk

from kohort.client.members.events import TopicIdPartition
from kohort.client.members.heartbeat import MemberConfig
from kohort.client.members.membership import Heartbeat, Membership
from kohort.terms import GroupId, MemberId
from kohort.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse

VERSION = 1


class Player(AnyPlayer):
    """`under_way` is the request whose answer is awaited."""

    machine: Membership

    def __init__(self, desk: Desk, name: str, config: MemberConfig, **more: Any) -> None:
        super().__init__(desk, Membership(GroupId("g"), MemberId(name), config, **more))
        self.under_way: Heartbeat | None = None

    def send(self) -> Heartbeat | None:
        """The next request leaves; it has not arrived yet."""
        self.under_way = self.machine.next(self.desk.now) or self.under_way
        return self.under_way

    def arrive(self, heartbeat: Heartbeat) -> ConsumerGroupHeartbeatResponse:
        """The coordinator takes a request, and answers; the answer has not arrived yet."""
        answer: ConsumerGroupHeartbeatResponse = self.desk.told(heartbeat.request, VERSION)
        return answer

    def hear(self, heartbeat: Heartbeat, answer: ConsumerGroupHeartbeatResponse) -> list[Any]:
        if self.under_way is not None and heartbeat.number == self.under_way.number:
            self.under_way = None
        return self.take(self.machine.received(heartbeat.number, answer, self.desk.now))

    def talk(self) -> list[Any]:
        """Everything that is to be said now."""
        events: list[Any] = []
        while self.send() is not None:
            heartbeat = self.under_way
            assert heartbeat is not None
            events += self.hear(heartbeat, self.arrive(heartbeat))
        return events

    def forget(self) -> None:
        self.under_way = None

    def tell_released(self, partitions: frozenset[TopicIdPartition]) -> list[Any]:
        return self.machine.released(partitions)
