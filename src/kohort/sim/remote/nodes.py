# SPDX-License-Identifier: Apache-2.0
"""Which node should own the log: what the group of nodes at the cluster says, as a model."""

from collections.abc import Callable
from random import Random

from kohort.terms import Millis

SESSION_MS = 6000
HEARTBEAT_MS = 1000
MARGIN_MS = 500  # a lease ends so much before the group gives the log to another node


class Nodes:
    """A node that is not heard of for a session is no member any more. Whoever owns the log keeps
    it until then, unless it is moved on purpose. `expelled` hears of an owner that is given up.
    """

    def __init__(self, random: Random, expelled: Callable[[str], None]) -> None:
        self.owner: str | None = None
        self._random = random
        self._expelled = expelled
        self._heard_at: dict[str, Millis] = {}

    def heartbeat(self, name: str, now: Millis) -> str | None:
        """A node is there; the answer says who owns the log."""
        self._heard_at[name] = now
        self._expire(now)
        if self.owner is None:
            self.owner = self._random.choice(sorted(self._heard_at))
        return self.owner

    def move(self, now: Millis) -> None:
        """Give the log to another node at once, as while nodes are restarted one by one."""
        self._expire(now)
        others = [name for name in sorted(self._heard_at) if name != self.owner]
        if others:
            self.owner = self._random.choice(others)

    def _expire(self, now: Millis) -> None:
        for name in [name for name, at in self._heard_at.items() if now - at > SESSION_MS]:
            del self._heard_at[name]
        if self.owner is not None and self.owner not in self._heard_at:
            self._expelled(self.owner)
            self.owner = None
