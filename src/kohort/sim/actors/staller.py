# SPDX-License-Identifier: Apache-2.0
"""Announces requests on many connections at once, sends a part of each and stalls: together they
take all the room that requests have.

Beside it others have requests that need some of that room (`LargeBystander`).
"""

from typing import ClassVar

from kohort.sim.actor_context import ActorContext
from kohort.sim.actors.bystander import Bystander
from kohort.sim.actors.raw_lines import RawLines
from kohort.wire.messages.metadata import MetadataRequest, MetadataRequestTopic

ANNOUNCED_BYTES = (5000, 60_000, 1 << 20, 7 << 20)
METADATA = (3).to_bytes(2) + (12).to_bytes(2)  # how the body of each begins
MOST_LINES = 24
LEAST_BYTES, MOST_BYTES = 4200, 12_000  # of each that come
LEAST_PAUSE_MS, MOST_PAUSE_MS = 2000, 12_000
STALLS_MS = (300, 1500, 6000)
NAMES = 300  # of the request of a bystander: some six kilobytes
FIRST_BYTES = 5000  # of it that come before the rest
PATIENCE_MS = 30_000


class Staller(RawLines):
    """It never finishes a request."""

    kind: ClassVar[str] = "staller"

    def __init__(self, stage: ActorContext, number: int) -> None:
        super().__init__(stage, number)
        self.lines = []

    async def live(self) -> None:
        random = self.random
        while not self.over:
            await self.pause(random.randrange(LEAST_PAUSE_MS, MOST_PAUSE_MS))
            if self.calm:
                continue
            self.open(random.randrange(self.stage.nodes), random.randint(1, MOST_LINES))
            for line in self.lines:
                size = random.choice(ANNOUNCED_BYTES)
                come = random.randrange(LEAST_BYTES, min(size, MOST_BYTES))
                line.send(size.to_bytes(4) + METADATA + bytes(come))
            await self.pause(random.choice(STALLS_MS))
            if random.random() < 0.5:  # it goes on a little
                for line in self.lines:
                    line.send(bytes(random.randrange(1, 100)))
                await self.pause(random.choice(STALLS_MS))
            self.close()
        self.close()


class LargeBystander(Bystander):
    """Asks about many topics that do not exist. Its requests are large enough to need room."""

    kind: ClassVar[str] = "large bystander"

    async def live(self) -> None:
        names = [MetadataRequestTopic(name=f"no-topic-of-{at}") for at in range(NAMES)]
        request = MetadataRequest(topics=names, allow_auto_topic_creation=False)
        while not self.over:
            await self.pause(self.random.randrange(100, 2000))
            if not self.calm:
                node = self.random.randrange(self.stage.nodes)
                options = {"patience_ms": PATIENCE_MS, "first_bytes": FIRST_BYTES}
                await self.caller.send(request, 12, node=node, **options)
        self.caller.hang_up()
