# SPDX-License-Identifier: Apache-2.0
"""Reads partitions from their begin on, some of it without taking what it has asked for."""

from typing import ClassVar

from kohort.errors import ErrorCode
from kohort.sim.actor_context import ActorContext
from kohort.sim.actors.actor import Actor
from kohort.sim.actors.reading import fetch
from kohort.sim.actors.topics import PartitionCursor
from kohort.sim.facts import PartitionId, RecordRead


class Reader(Actor):
    """`number` 1 and 3 are slow: now and then they stop to read their socket."""

    kind: ClassVar[str] = "reader"

    def __init__(self, stage: ActorContext, number: int) -> None:
        super().__init__(stage, number)
        self.positions: dict[PartitionId, int] = {}
        self.slow = number % 2 == 1

    async def live(self) -> None:
        random = self.random
        partitions = PartitionCursor(self)
        while not self.over:
            found = await partitions.next_or_none()
            if found is None:
                await self.pause(500)
                continue
            place, node = found
            if self.slow and random.random() < 0.2:
                self.stage.loop.begin(self._doze(node))
            await self._read(place, node)
            await self.pause(random.randrange(10, 1000))
        self.caller.hang_up()

    async def _read(self, place: PartitionId, node: int) -> None:
        offset = self.positions.get(place, 0)
        if self.random.random() < 0.02:
            offset = 0
        sent = self.stage.loop.now
        wait_ms = self.random.choice([0, 100, 3000])
        limit = self.random.choice([1, 1000, 100_000])
        piece = await fetch(self, place, node, offset, wait_ms=wait_ms, limit=limit)
        if piece is None:
            return
        if piece.code == ErrorCode.OFFSET_OUT_OF_RANGE:
            self.alarm(f"cannot read {place[0].hex()[:8]}-{place[1]} on from {offset} any more")
        for at, value in piece.values.items():
            self.tell(RecordRead(place, at, value, sent))
        if not piece.code:
            self.positions[place] = piece.next_offset

    async def _doze(self, node: int) -> None:
        """The client does something else for a while: what arrives stays in its socket."""
        connected = self.caller.connected(node)
        if connected is not None and connected.line is not None:
            line = connected.line
            line.read(on=False)
            await self.pause(self.random.randrange(500, 8000))
            line.read(on=True)
