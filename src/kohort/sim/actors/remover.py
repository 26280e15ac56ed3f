# SPDX-License-Identifier: Apache-2.0
"""Commits for a group of its own, deletes the group or one of its offsets, and looks again."""

from typing import ClassVar

from kohort.sim.actor_context import ActorContext
from kohort.sim.actors.committer import TOPIC, Committer
from kohort.sim.facts import CommitsDeleted
from kohort.wire.messages.delete_groups import DeleteGroupsRequest
from kohort.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)

DOUBT_US = 90_000_000  # longer than anything can be on its way


class Remover(Committer):
    """After a deletion that gets no answer nobody knows what is there, until the next commit."""

    kind: ClassVar[str] = "remover"

    def __init__(self, stage: ActorContext, number: int) -> None:
        super().__init__(stage, number)
        self.group = f"removed-{number}"
        self.doubt_until = 0  # a deletion without an answer may be carried out until then

    async def live(self) -> None:
        random = self.random
        while not self.over:
            await self.pause(random.randrange(20, 4000))
            chance = random.random()
            if chance < 0.4:
                await self.commit()
            elif chance < 0.6 and not self.calm:
                await self.delete_group()
            elif chance < 0.7 and not self.calm:
                await self.delete_offset()
            else:
                await self.look()
        await self.look_at_last()

    def doubt(self) -> None:
        """A deletion has got no answer."""
        self.doubt_until = self.stage.loop.now + DOUBT_US

    async def commit(self, retention_ms: int = -1) -> bool:
        answered = await super().commit(retention_ms)
        if self.stage.loop.now < self.doubt_until:
            self.acknowledged = [-1 for _ in self.acknowledged]
        return answered

    async def delete_group(self) -> None:
        partitions = range(len(self.acknowledged))
        self.acknowledged = [-1 for _ in partitions]
        answer = await self.ask_coordinator(
            self.group, DeleteGroupsRequest(groups_names=[self.group]), 2
        )
        if answer is None:
            self.doubt()
        else:
            code = answer.results[0].error_code
            self.coordinator_moved(self.group, code)
            if not code:
                for partition in partitions:
                    self.tell(CommitsDeleted(self.group, partition))

    async def delete_offset(self) -> None:
        index = self.random.randrange(len(self.acknowledged))
        self.acknowledged[index] = -1
        topic = OffsetDeleteRequestTopic(
            name=TOPIC, partitions=[OffsetDeleteRequestPartition(partition_index=index)]
        )
        request = OffsetDeleteRequest(group_id=self.group, topics=[topic])
        answer = await self.ask_coordinator(self.group, request, 0)
        if answer is None:
            self.doubt()
        else:
            self.coordinator_moved(self.group, answer.error_code)
            if not answer.error_code and not answer.topics[0].partitions[0].error_code:
                self.tell(CommitsDeleted(self.group, index))
