# SPDX-License-Identifier: Apache-2.0
"""Commits offsets that expire soon, besides others, and looks whether what has expired stays so."""

from typing import ClassVar

from kohort.sim.actor_context import ActorContext
from kohort.sim.actors.remover import Remover
from kohort.sim.facts import CommitsDeleted


class Forgetter(Remover):
    """An offset that expires may go at any time from then on, so nobody can miss it. What has been
    seen to be gone counts as deleted.
    """

    kind: ClassVar[str] = "forgetter"

    def __init__(self, stage: ActorContext, number: int) -> None:
        super().__init__(stage, number)
        self.group = f"expiring-{number}"

    async def live(self) -> None:
        random = self.random
        while not self.over:
            await self.pause(random.randrange(20, 4000))
            chance = random.random()
            if chance < 0.2:
                await self.commit()
            elif chance < 0.5 and not self.calm:
                await self.commit_for(random.choice([0, 1000, 20_000]))
            else:
                await self.look()
        await self.look_at_last()

    async def commit_for(self, retention_ms: int) -> None:
        """A commit that replaces what was there for good, as soon as it arrives."""
        self.acknowledged = [-1 for _ in self.acknowledged]
        if not await self.commit(retention_ms):
            self.doubt()
        self.acknowledged = [-1 for _ in self.acknowledged]

    def saw(self, partition: int, offset: int) -> None:
        if offset == -1:
            self.tell(CommitsDeleted(self.group, partition))
