"""A classic membership at a real coordinator. Joins and syncs may be parked there."""

from typing import Any

from tests.coordinator.desk import Asked, Desk

from kohort.client.consumer.classic_membership import (
    VERSIONS,
    ClassicMembership,
    ClassicProfile,
    ClassicRequest,
)
from kohort.client.consumer.events import (
    Assigned,
    CoordinatorWanted,
    HangUp,
    Lost,
    Revoked,
    TopicsWanted,
)
from kohort.terms import GroupId, TopicPartition


class ClassicPlayer:
    """`held` is what the application works on: what it was given and has not let go of.

    A coordinator that is looked for is found at once, and so are the partitions of topics.
    """

    def __init__(self, desk: Desk, name: str, profile: ClassicProfile, **more: Any) -> None:
        self.desk, self.name = desk, name
        self.machine = ClassicMembership(GroupId("g"), profile, **more)
        self.held: set[TopicPartition] = set()
        self.to_release: set[TopicPartition] = set()
        self.under_way: ClassicRequest | None = None
        self.asked: Asked | None = None
        self.events: list[Any] = []

    def join(self) -> list[Any]:
        return self.take(self.machine.join())

    def leave(self) -> list[Any]:
        return self.take(self.machine.leave(self.desk.now))

    def send(self) -> ClassicRequest | None:
        """The next request leaves; it has not arrived yet."""
        request = self.machine.next(self.desk.now)
        if request is not None:
            self.under_way, self.asked = request, None
        return request

    def reach(self) -> None:
        """What is under way reaches the coordinator, which may park it."""
        if self.under_way is not None and self.asked is None:
            request = self.under_way.request
            self.asked = self.desk.ask(request, VERSIONS[type(request)], self.name)

    def hear(self) -> list[Any]:
        """The answer, if there is one yet."""
        if self.under_way is None or self.asked is None or self.asked.answer is None:
            return []
        number, answer = self.under_way.number, self.asked.answer
        self.under_way = self.asked = None
        return self.take(self.machine.received(number, answer, self.desk.now))

    def talk(self) -> list[Any]:
        """Everything that is to be said and heard now."""
        events: list[Any] = []
        while True:
            self.send()
            self.reach()
            if self.under_way is None or self.asked is None or self.asked.answer is None:
                return events
            events += self.hear()

    def lose(self) -> list[Any]:
        """What is under way gets lost, and the connection with it."""
        self.under_way = self.asked = None
        return self.take(self.machine.connection_lost(self.desk.now))

    def release(self) -> list[Any]:
        """The application has finished with all that it is to give up."""
        gone, self.to_release = frozenset(self.to_release), set()
        self.held -= gone
        return self.take(self.machine.released(gone, self.desk.now))

    def take(self, events: list[Any]) -> list[Any]:
        for event in list(events):
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
                case HangUp():
                    self.under_way = self.asked = None
                case TopicsWanted(topics):
                    known = self.desk.known.by_name
                    sizes = {name: known[name].partitions for name in topics if name in known}
                    events += self.take(self.machine.topics_known(sizes))
        self.events += events
        return events
