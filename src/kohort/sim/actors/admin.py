# SPDX-License-Identifier: Apache-2.0
"""Makes, changes and deletes topics."""

from typing import ClassVar

from kohort.sim.actors.actor import Actor
from kohort.sim.actors.topics import TopicInfo, topics_of
from kohort.sim.facts import TopicDeleted, TopicDoubtful, TopicMade
from kohort.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from kohort.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kohort.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kohort.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

NAMES = ("apples", "pears", "plums")
TOPIC_RESOURCE = 2
SET = 0


class Admin(Actor):
    """Deletes by id, so that nobody's new topic goes for an old one of its name."""

    kind: ClassVar[str] = "admin"

    async def live(self) -> None:
        random = self.random
        while not self.over:
            await self.pause(random.choice([50, 3000, 12_000]) * random.random() * 2)
            known = await topics_of(self)
            if known is None or self.calm:
                continue
            name = random.choice(NAMES)
            topic = known.get(name)
            if topic is None:
                await self.create(name)
            elif random.random() < 0.5:
                await self.delete(topic)
                if random.random() < 0.5:
                    await self.create(name)
            elif random.random() < 0.5:
                await self.grow(topic)
            else:
                await self.configure(topic)
        self.caller.hang_up()

    async def create(self, name: str) -> None:
        configs = []
        if self.random.random() < 0.3:
            configs = [CreatableTopicConfig(name="segment.ms", value="5000")]
        wanted = CreatableTopic(
            name=name,
            num_partitions=self.random.randint(1, 4),
            replication_factor=1,
            assignments=[],
            configs=configs,
        )
        answer = await self.ask(CreateTopicsRequest(topics=[wanted]), 7, patience_ms=20_000)
        if answer is not None and not answer.topics[0].error_code:
            made = answer.topics[0]
            self.tell(TopicMade(made.topic_id, name, self.stage.loop.now))

    async def delete(self, topic: TopicInfo) -> None:
        self.tell(TopicDoubtful(topic.topic_id))
        wanted = DeleteTopicState(name=None, topic_id=topic.topic_id)
        request = DeleteTopicsRequest(topics=[wanted], timeout_ms=20_000)
        answer = await self.ask(request, 6, patience_ms=20_000)
        if answer is not None and not answer.responses[0].error_code:
            self.tell(TopicDeleted(topic.topic_id, self.stage.loop.now))

    async def grow(self, topic: TopicInfo) -> None:
        wanted = CreatePartitionsTopic(
            name=topic.name, count=len(topic.leaders) + 1, assignments=None
        )
        request = CreatePartitionsRequest(topics=[wanted], timeout_ms=5000, validate_only=False)
        if len(topic.leaders) < 8:
            await self.ask(request, 2)

    async def configure(self, topic: TopicInfo) -> None:
        """Settings that close segments early, so that there is something to retain and clean."""
        name, values = self.random.choice(
            [
                ("segment.ms", ["1000", "60000"]),
                ("max.message.bytes", ["200", "1048588"]),
                ("message.timestamp.type", ["CreateTime", "LogAppendTime"]),
            ]
        )
        config = AlterableConfig(name=name, config_operation=SET, value=self.random.choice(values))
        resource = AlterConfigsResource(
            resource_type=TOPIC_RESOURCE, resource_name=topic.name, configs=[config]
        )
        request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=False)
        await self.ask(request, 1)
