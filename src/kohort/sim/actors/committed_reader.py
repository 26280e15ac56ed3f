# SPDX-License-Identifier: Apache-2.0
"""Reads partitions from their begin on, committed records only, as a consumer does."""

from typing import ClassVar

from kohort.sim.actor_context import ActorContext
from kohort.sim.actors.actor import Actor
from kohort.sim.actors.reading import fetch
from kohort.sim.actors.topics import PartitionCursor
from kohort.sim.facts import CommittedRead, PartitionId


class CommittedReader(Actor):
    """Now and then one begins anew, as another consumer would."""

    kind: ClassVar[str] = "committed reader"

    def __init__(self, stage: ActorContext, number: int) -> None:
        super().__init__(stage, number)
        self.positions: dict[PartitionId, int] = {}

    async def live(self) -> None:
        partitions = PartitionCursor(self)
        while not self.over:
            found = await partitions.next_or_none()
            if found is not None:
                await self._read(*found)
            await self.pause(self.random.randrange(50, 3000))
        self.caller.hang_up()

    async def _read(self, place: PartitionId, node: int) -> None:
        random = self.random
        start = 0 if random.random() < 0.02 else self.positions.get(place, 0)
        wait_ms, limit = random.choice([0, 100, 3000]), random.choice([1, 1000, 100_000])
        piece = await fetch(self, place, node, start, wait_ms=wait_ms, limit=limit, committed=True)
        if piece is not None and not piece.code:
            self.tell(CommittedRead(place, start, piece.next_offset, piece.values))
            self.positions[place] = piece.next_offset
