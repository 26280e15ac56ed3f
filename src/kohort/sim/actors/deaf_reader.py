# SPDX-License-Identifier: Apache-2.0
"""Asks for large answers on several connections, and reads none of them, or a little now and then.

What the broker holds for such a client is bounded: it handles no more of its requests meanwhile.
"""

from typing import ClassVar

from kohort.sim.actor_context import ActorContext
from kohort.sim.actors.raw_lines import RawLines
from kohort.sim.actors.topics import TopicInfo, topics_of
from kohort.wire import batch as batches
from kohort.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kohort.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kohort.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

BATCHES = 4
VALUE_BYTES = 50_000
AT_ONCE = 12
LINES_MAX = 3
LEAST_PAUSE_MS, MOST_PAUSE_MS = 2000, 15_000
HOLDS_MS = (1000, 5000, 45_000)  # the last one is longer than a broker need endure
READS_FOR_MS = 2


class DeafReader(RawLines):
    """`number` names the topic that it reads."""

    kind: ClassVar[str] = "deaf reader"

    def __init__(self, stage: ActorContext, number: int) -> None:
        super().__init__(stage, number)
        self.lines = []
        self.topic = f"unread-{number}"
        self.written = 0

    async def live(self) -> None:
        random = self.random
        while not self.over:
            await self.pause(random.randrange(LEAST_PAUSE_MS, MOST_PAUSE_MS))
            if self.calm:
                continue
            topic = (await topics_of(self) or {}).get(self.topic)
            if topic is None or not topic.leaders:
                await self._make_topic()
            elif self.written < BATCHES:
                await self._write(topic)
            else:
                await self._ask_without_reading(topic)
        self.close()
        self.caller.hang_up()

    async def _make_topic(self) -> None:
        wanted = CreatableTopic(
            name=self.topic, num_partitions=1, replication_factor=1, assignments=[], configs=[]
        )
        await self.ask(CreateTopicsRequest(topics=[wanted]), 7, patience_ms=20_000)

    async def _write(self, topic: TopicInfo) -> None:
        for _ in range(BATCHES):
            batch = batches.build([(None, bytes(VALUE_BYTES))], self.stage.wall_ms)
            data = TopicProduceData(
                topic_id=topic.topic_id,
                partition_data=[PartitionProduceData(index=0, records=batch)],
            )
            request = ProduceRequest(acks=-1, timeout_ms=5000, topic_data=[data])
            answer = await self.ask(request, 13, node=topic.leaders[0])
            if answer is not None and not answer.responses[0].partition_responses[0].error_code:
                self.written += 1

    async def _ask_without_reading(self, topic: TopicInfo) -> None:
        random = self.random
        part = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            topics=[FetchTopic(topic_id=topic.topic_id, partitions=[part])],
        )
        frame = self.frame(request, 13)
        self.open(topic.leaders[0], random.randint(1, LINES_MAX), reads=False)
        for line in self.lines:
            line.send(frame * AT_ONCE)
        until = self.stage.loop.now + random.choice(HOLDS_MS) * 1000
        slow = random.random() < 0.5
        while self.stage.loop.now < until and not self.calm:
            await self.pause(random.randrange(300, 1000))
            if slow:
                for line in self.lines:
                    line.read(on=True)
                await self.pause(READS_FOR_MS)
                for line in self.lines:
                    line.read(on=False)
        self.close()
