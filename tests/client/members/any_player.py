# SPDX-License-Identifier: Apache-2.0
"""An application that owns a membership of either protocol: what it was given and has to release.

A coordinator that is looked for is found at once.
"""

from typing import Any

from tests.coordinator.desk import Desk

from kohort.client.members.events import (
    CoordinatorWanted,
    PartitionsAssigned,
    PartitionsLost,
    PartitionsRevoked,
)


class AnyPlayer:
    """`held` is what the application works on: what it was given and has not let go of."""

    def __init__(self, desk: Desk, machine: Any) -> None:
        self.desk = desk
        self.machine = machine
        self.held: set[Any] = set()
        self.to_release: set[Any] = set()
        self.events: list[Any] = []

    # What a subclass knows

    def forget(self) -> None:
        """No answer will come to what is under way."""
        raise NotImplementedError

    def tell_released(self, partitions: frozenset[Any]) -> list[Any]:
        raise NotImplementedError

    def obey(self, event: Any) -> list[Any]:
        """An event of this protocol only, and what follows from it."""
        del event
        return []

    # What it does

    def join(self) -> list[Any]:
        return self.take(self.machine.join())

    def leave(self, *, for_good: bool = False) -> list[Any]:
        return self.take(self.machine.leave(self.desk.now, for_good=for_good))

    def lose(self) -> list[Any]:
        """What is under way gets lost, and the connection with it."""
        self.forget()
        return self.take(self.machine.connection_lost(self.desk.now))

    def release(self) -> list[Any]:
        """The application has finished with all that it is to give up."""
        gone, self.to_release = frozenset(self.to_release), set()
        self.held -= gone
        return self.take(self.tell_released(gone))

    def take(self, events: list[Any]) -> list[Any]:
        """The events, and those that follow from what the application does about them."""
        for event in list(events):
            match event:
                case PartitionsAssigned(partitions):
                    assert not self.held & set(partitions), "given twice"
                    self.held |= set(partitions)
                case PartitionsRevoked(partitions) | PartitionsLost(partitions):
                    assert set(partitions) <= self.held, "to give up what it does not have"
                    assert not self.to_release & set(partitions), "to give it up twice"
                    self.to_release |= set(partitions)
                case CoordinatorWanted():
                    self.machine.coordinator_found()
                case _:
                    events += self.obey(event)
        self.events += events
        return events
