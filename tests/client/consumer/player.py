"""A membership at a real coordinator, a request at a time, with answers that may get lost."""

from typing import Any

from tests.coordinator.desk import Desk

from kohort.client.consumer.events import (
    Assigned,
    CoordinatorWanted,
    Lost,
    Revoked,
    TopicIdPartition,
)
from kohort.client.consumer.heartbeat import Profile
from kohort.client.consumer.membership import Heartbeat, Membership
from kohort.terms import GroupId, MemberId
from kohort.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse

VERSION = 1


class Player:
    """`held` is what the application works on: what it was given and has not let go of.

    A coordinator that is looked for is found at once.
    """

    def __init__(self, desk: Desk, name: str, profile: Profile, **more: Any) -> None:
        self.desk = desk
        self.machine = Membership(GroupId("g"), MemberId(name), profile, **more)
        self.held: set[TopicIdPartition] = set()
        self.to_release: set[TopicIdPartition] = set()
        self.under_way: Heartbeat | None = None
        self.events: list[Any] = []

    def join(self) -> list[Any]:
        return self.take(self.machine.join())

    def leave(self) -> list[Any]:
        return self.take(self.machine.leave(self.desk.now))

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

    def lose(self) -> list[Any]:
        """What is under way gets lost, and the connection with it."""
        self.under_way = None
        return self.take(self.machine.connection_lost(self.desk.now))

    def release(self) -> list[Any]:
        """The application has finished with all that it is to give up."""
        gone, self.to_release = frozenset(self.to_release), set()
        self.held -= gone
        return self.take(self.machine.released(gone))

    def take(self, events: list[Any]) -> list[Any]:
        for event in events:
            match event:
                case Assigned(partitions):
                    assert not self.held & set(partitions), "given twice"
                    self.held |= set(partitions)
                case Revoked(partitions) | Lost(partitions):
                    assert set(partitions) <= self.held, "to give up what it does not have"
                    assert not self.to_release & set(partitions), "to give it up twice"
                    self.to_release |= set(partitions)
                case CoordinatorWanted():
                    self.machine.coordinator_found()
        self.events += events
        return events
