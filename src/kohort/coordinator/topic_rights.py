"""Who may know of which topics: what the coordinator asks where there are rules of access."""

from collections.abc import Hashable
from typing import Protocol

from kohort.machines.effects import Client


class TopicRights(Protocol):
    @property
    def number(self) -> int:
        """Another one whenever the rules have changed."""

    def alike(self, client: Client) -> Hashable:
        """The same for clients that may know of the same topics, while `number` stays."""

    def sees(self, client: Client, topic: str) -> bool:
        """Whether a client may know of a topic."""
