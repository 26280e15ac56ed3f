# SPDX-License-Identifier: Apache-2.0
"""Sends many requests at once on one connection, each of which takes the broker some time: it cuts
a log of its own off, record by record, and asks about all topics in between.
"""

from typing import Any, ClassVar

from kohort.sim.actor_context import ActorContext
from kohort.sim.actors.actor import Actor
from kohort.sim.actors.topics import topics_of
from kohort.wire import batch as batches
from kohort.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kohort.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kohort.wire.messages.metadata import MetadataRequest
from kohort.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

AT_ONCE = (60, 60, 250)


class Crowder(Actor):
    """`number` names its topic."""

    kind: ClassVar[str] = "crowder"

    def __init__(self, stage: ActorContext, number: int) -> None:
        super().__init__(stage, number)
        self.topic = f"crowded-{number}"

    async def live(self) -> None:
        random = self.random
        while not self.over:
            await self.pause(random.randrange(1000, 15_000))
            if not self.calm:
                await self._crowd()
        self.caller.hang_up()

    async def _crowd(self) -> None:
        wanted = CreatableTopic(
            name=self.topic, num_partitions=1, replication_factor=1, assignments=[], configs=[]
        )
        await self.ask(CreateTopicsRequest(topics=[wanted]), 7, patience_ms=20_000)
        topic = (await topics_of(self) or {}).get(self.topic)
        if topic is None or not topic.leaders:
            return
        leader = topic.leaders[0]
        at_once = self.random.choice(AT_ONCE)
        now = self.stage.wall_ms
        batch = batches.build([(None, b"v")] * at_once, now)
        data = TopicProduceData(
            topic_id=topic.topic_id, partition_data=[PartitionProduceData(index=0, records=batch)]
        )
        request = ProduceRequest(acks=-1, timeout_ms=5000, topic_data=[data])
        answer = await self.ask(request, 13, node=leader)
        if answer is None or answer.responses[0].partition_responses[0].error_code:
            return
        first = answer.responses[0].partition_responses[0].base_offset
        waiting = []
        deletes = at_once == AT_ONCE[0]  # each of them is a sync
        for number in range(at_once):
            asked: tuple[Any, int] = self._deletion(first + number + 1), 2
            if not deletes or self.random.random() < 0.2:
                asked = MetadataRequest(topics=None, allow_auto_topic_creation=False), 12
            waiting.append(self.caller.send(*asked, node=leader, patience_ms=30_000))
        for answer in waiting:
            await answer

    def _deletion(self, offset: int) -> DeleteRecordsRequest:
        part = DeleteRecordsPartition(partition_index=0, offset=offset)
        return DeleteRecordsRequest(
            topics=[DeleteRecordsTopic(name=self.topic, partitions=[part])], timeout_ms=5000
        )
