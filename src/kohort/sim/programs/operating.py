# SPDX-License-Identifier: Apache-2.0
"""Who runs an application: starts it, freezes it, kills it, stops it, and starts it again."""

import math
from typing import ClassVar

from kohort.sim.actor_context import ActorContext
from kohort.sim.actors.actor import Actor
from kohort.sim.codes import CREATED
from kohort.sim.process import HOST, PORT
from kohort.sim.programs.facts import ClientGone, GroupOffset, Part
from kohort.sim.programs.program import Program
from kohort.sim.programs.topics import TOPICS
from kohort.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kohort.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)

CLOSE_US = 15_000_000  # no application takes longer to come to its end when all is calm
LOOK_MS = 500
FREEZES = 0.015  # how probable it is at each look


class Operator(Actor):
    """A subclass says what the application does, by `work`, which runs in the process. `life`
    counts the processes.
    """

    kind: ClassVar[str]
    freezes_ms: ClassVar[tuple[int, ...]] = (300, 4000, 20_000, 60_000)

    def __init__(self, stage: ActorContext, number: int) -> None:
        super().__init__(stage, number)
        self.life = 0
        self.program: Program | None = None
        self.group: str | None = None
        self._ends = stage.stream(f"ends of {self.name}").choice([0.004, 0.03])

    async def work(self) -> None:
        """The main coroutine of the application."""
        raise NotImplementedError

    @property
    def client(self) -> str:
        """The name of this life."""
        return f"{self.name}.{self.life}".replace(" ", "-")

    @property
    def servers(self) -> list[str]:
        nodes = [f"{HOST}:{PORT + node}" for node in range(self.stage.nodes)]
        return self.random.sample(nodes, len(nodes))

    @property
    def now(self) -> int:
        """As the application sees it."""
        assert self.program is not None
        return self.program.loop.now

    @property
    def stopping(self) -> bool:
        """Whether the application was asked to come to its end."""
        return self.program is None or self.program.stopping

    async def live(self) -> None:
        await self.pause(self.random.randrange(15_000))
        await self._make_topics()
        while not self.over:
            self.life += 1
            self.program = Program(self.stage, self.random, self.work)
            await self._look_after(self.program)
            self.tell(ClientGone(self.client))
            if not self.over:
                await self.pause(self.random.randrange(1 if self.calm else 8000))
        if self.group is not None:
            await self._look_at_group(self.group)
        self.caller.hang_up()

    async def _look_after(self, program: Program) -> None:
        """Until it has ended."""
        random = self.random
        asked_at = math.inf
        while not program.ended:
            await self.pause(LOOK_MS)
            chance, other = (1.0, 1.0) if self.calm else (random.random(), random.random())
            if (self.over and not program.stopping) or chance < self._ends / 2:
                program.stop_soon()
            elif chance < self._ends:
                program.die()
            elif other < FREEZES:
                await self._freeze(program, random.choice(self.freezes_ms))
            if not self.calm:
                asked_at = math.inf
            elif program.stopping:
                asked_at = min(asked_at, self.stage.loop.now)
            if self.stage.loop.now - asked_at > CLOSE_US:
                self.alarm("was asked to come to its end, and does not")
                program.die()
        if program.failure:
            self.stage.alarm(f"left: {self.client} {program.failure}")

    async def _freeze(self, program: Program, ms: int) -> None:
        program.stand_still(ms)
        until = self.stage.loop.now + ms * 1000
        while not program.ended and self.stage.loop.now < until:
            await self.pause(min(1000, (until - self.stage.loop.now) // 1000 + 1))

    async def _make_topics(self) -> None:
        wanted = [
            CreatableTopic(
                name=name, num_partitions=number, replication_factor=1, assignments=[], configs=[]
            )
            for name, number in TOPICS.items()
        ]
        while not self.over:
            answer = await self.ask(CreateTopicsRequest(topics=wanted), 7)
            if answer is not None and all(topic.error_code in CREATED for topic in answer.topics):
                return
            await self.pause(300)

    async def _look_at_group(self, group: str) -> None:
        """Tell how far the group has committed, as far as anybody says."""
        names = [
            OffsetFetchRequestTopics(name=name, partition_indexes=list(range(count)))
            for name, count in TOPICS.items()
        ]
        request = OffsetFetchRequest(
            groups=[OffsetFetchRequestGroup(group_id=group, topics=names)], require_stable=True
        )
        for _ in range(10):
            answer = await self.ask_coordinator(group, request, 8)
            if answer is not None and not answer.groups[0].error_code:
                for topic in answer.groups[0].topics:
                    for found in topic.partitions:
                        if not found.error_code:
                            part: Part = topic.name, found.partition_index
                            self.tell(GroupOffset(group, part, found.committed_offset))
                return
            if answer is not None:
                self.coordinator_moved(group, answer.groups[0].error_code)
            await self.pause(300)
