# SPDX-License-Identifier: Apache-2.0
"""Commits offsets for a group without members, and asks how far it has come."""

from typing import ClassVar

from kohort.sim.actor_context import ActorContext
from kohort.sim.actors.actor import Actor
from kohort.sim.facts import CommitLost, CommitRead, CommitsDeleted, CommitSent
from kohort.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kohort.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)

TOPIC = "home"


class Committer(Actor):
    """The only one who commits for its group, and each time a larger number."""

    kind: ClassVar[str] = "committer"

    def __init__(self, stage: ActorContext, number: int) -> None:
        super().__init__(stage, number)
        self.group = f"committed-{number}"
        self.next = 0
        self.acknowledged = [-1] * stage.topics[TOPIC]
        self.committed_at = [0] * stage.topics[TOPIC]  # when the last acknowledged one was sent

    async def live(self) -> None:
        random = self.random
        while not self.over:
            await self.pause(random.randrange(20, 2500))
            if random.random() < 0.7:
                await self.commit()
            else:
                await self.look()
        await self.look_at_last()

    async def look_at_last(self) -> None:
        """Look until there is an answer, and end."""
        for _ in range(20):
            if await self.look():
                break
            await self.pause(1000)
        self.caller.hang_up()

    async def commit(self, retention_ms: int = -1) -> bool:
        """One commit for some partitions, perhaps with a retention of its own. One that gets no
        answer is not repeated; whether there was one.
        """
        self.next += 1
        offset = self.next
        partitions = [
            index for index in range(len(self.acknowledged)) if self.random.random() < 0.7
        ] or [0]
        for partition in partitions:
            self.tell(CommitSent(self.group, partition, offset))
        request = OffsetCommitRequest(
            group_id=self.group,
            member_id="",
            retention_time_ms=retention_ms,
            topics=[
                OffsetCommitRequestTopic(
                    name=TOPIC,
                    partitions=[
                        OffsetCommitRequestPartition(
                            partition_index=index,
                            committed_offset=offset,
                            committed_metadata=str(offset),
                        )
                        for index in partitions
                    ],
                )
            ],
        )
        sent = self.stage.loop.now
        newest = 9 if retention_ms == -1 else 4
        answer = await self.ask_coordinator(self.group, request, self.random.randint(2, newest))
        if answer is None:
            for partition in partitions:
                self.tell(CommitLost(self.group, partition, offset, self.stage.loop.now))
            return False
        for place in answer.topics[0].partitions:
            self.coordinator_moved(self.group, place.error_code)
            if not place.error_code:
                index = place.partition_index
                self.acknowledged[index] = max(self.acknowledged[index], offset)
                self.committed_at[index] = sent
        return True

    def saw(self, partition: int, offset: int) -> None:
        """A look has found this; -1 for nothing."""

    async def look(self) -> bool:
        """Ask how far the group has come; whether there was an answer."""
        floors = list(self.acknowledged)
        sent = self.stage.loop.now
        topic = OffsetFetchRequestTopics(name=TOPIC, partition_indexes=list(range(len(floors))))
        request = OffsetFetchRequest(
            groups=[OffsetFetchRequestGroup(group_id=self.group, topics=[topic])]
        )
        answer = await self.ask_coordinator(self.group, request, 8)
        if answer is None:
            return False
        (group,) = answer.groups
        self.coordinator_moved(self.group, group.error_code)
        if group.error_code:
            return False
        for place in group.topics[0].partitions:
            if not place.error_code:
                index = place.partition_index
                floor = floors[index]
                age_us = self.stage.loop.now - self.committed_at[index]
                if place.committed_offset < 0 and age_us >= self.stage.offsets_retention_us:
                    floor = -1  # it has expired: it may go, and never comes back
                    self.tell(CommitsDeleted(self.group, index))
                self.tell(CommitRead(self.group, index, place.committed_offset, floor, sent))
                self.saw(index, place.committed_offset)
        return True
