# SPDX-License-Identifier: Apache-2.0
"""A classic membership at a real coordinator. Joins and syncs may be parked there."""

from typing import Any

from tests.client.members.any_player import AnyPlayer
from tests.coordinator.desk import Asked, Desk

from kohort.client.members.classic_membership import (
    VERSIONS,
    ClassicMemberConfig,
    ClassicMembership,
    ClassicRequest,
)
from kohort.client.members.events import HangUp, TopicsWanted
from kohort.terms import GroupId, TopicPartition


class ClassicPlayer(AnyPlayer):
    """`under_way` is the request whose answer is awaited, and `asked` what the coordinator has of
    it. The partitions of topics are known at once.
    """

    machine: ClassicMembership

    def __init__(self, desk: Desk, name: str, config: ClassicMemberConfig, **more: Any) -> None:
        super().__init__(desk, ClassicMembership(GroupId("g"), config, **more))
        self.name = name
        self.under_way: ClassicRequest | None = None
        self.asked: Asked | None = None

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
        self.forget()
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

    def forget(self) -> None:
        self.under_way = self.asked = None

    def tell_released(self, partitions: frozenset[TopicPartition]) -> list[Any]:
        return self.machine.released(partitions, self.desk.now)

    def obey(self, event: Any) -> list[Any]:
        match event:
            case HangUp():
                self.forget()
            case TopicsWanted(topics):
                known = self.desk.known.by_name
                sizes = {name: known[name].partitions for name in topics if name in known}
                return self.take(self.machine.topics_known(sizes))
        return []
