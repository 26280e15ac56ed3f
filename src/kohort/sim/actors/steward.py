# SPDX-License-Identifier: Apache-2.0
"""Changes what a catalog keeps beside topics that others use, and looks what is in force: rules,
credentials, settings of brokers and topics, a topic that comes and goes, a number of partitions.
"""

from collections.abc import Awaitable, Callable
from typing import Any, ClassVar

from kohort.errors import ErrorCode
from kohort.sim.actor_context import ActorContext
from kohort.sim.actors.actor import Actor
from kohort.sim.actors.topics import topics_of
from kohort.sim.codes import CREATED
from kohort.sim.lasting_facts import (
    ChangeDone,
    ChangeLost,
    ChangeRefused,
    StateRead,
)
from kohort.wire import batch as batches
from kohort.wire.messages import alter_configs
from kohort.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from kohort.wire.messages.create_acls import AclCreation, CreateAclsRequest
from kohort.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from kohort.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kohort.wire.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from kohort.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kohort.wire.messages.delete_topics import DeleteTopicsRequest
from kohort.wire.messages.describe_acls import DescribeAclsRequest
from kohort.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from kohort.wire.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from kohort.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kohort.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kohort.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from kohort.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

TOPIC, BROKER = 2, 4  # types of resources
ALLOW, READ, LITERAL = 3, 3, 3  # of a rule
SHA_256 = 1
LOOKS = 10
PATIENCE_MS = 20_000
PARTITIONS_MAX = 4
SETTINGS = ("log.segment.delete.delay.ms", "log.index.size.max.bytes")  # have no effect here
TOPIC_SETTING = "flush.messages"  # nor has this, and it follows none of those
FIRST, LAST = 4096, 16_384
EARLIEST = -2
NO_VALUE = ""
THERE = "there"
UNKNOWN_TOPIC = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

Change = Callable[[str], Awaitable[int | None]]
"""Makes something have a value; the code of the answer, or None without one."""
Look = Callable[[], Awaitable[str | None]]
"""The value that something has, or None without an answer."""


class Steward(Actor):
    """`number` keeps the things of two of them apart. One request is under way at a time."""

    kind: ClassVar[str] = "steward"

    def __init__(self, stage: ActorContext, number: int) -> None:
        super().__init__(stage, number)
        self.user = f"User:{self.name}"
        self.topic = f"kept-{number}"
        self.passing = f"passing-{number}"
        self.setting = SETTINGS[number % len(SETTINGS)]
        self.values: dict[str, str] = {}
        self.things: dict[str, tuple[Change, Look]] = {
            "rule": (self.change_rule, self.look_at_rule),
            "credential": (self.change_credential, self.look_at_credential),
            "broker setting": (self.change_broker, self.look_at_broker),
            "topic setting": (self.change_topic, self.look_at_topic),
            "topic": (self.make_or_delete, self.look_for_topic),
            "partitions": (self.grow, self.look_at_partitions),
            "start": (self.cut, self.look_at_start),
        }

    async def live(self) -> None:
        random = self.random
        while not self.over and await self._create(self.topic) not in CREATED:
            await self.pause(random.randrange(100, 2000))
        while not self.over:
            await self.pause(random.choice([100, 2000, 9000]) * random.random())
            thing = random.choice(list(self.things))
            if thing not in self.values or self.calm or random.random() < 0.4:
                await self.look(thing)
            else:
                await self.change(thing)
        for thing in self.things:
            for _ in range(LOOKS):
                if await self.look(thing):
                    break
                await self.pause(1000)
        self.caller.hang_up()

    async def change(self, thing: str) -> None:
        """Another value than the last one that was seen, and what becomes of it."""
        value = self._next(thing)
        code = await self.things[thing][0](value)
        name = f"{thing} of {self.name}"
        if code is None or code == ErrorCode.REQUEST_TIMED_OUT:
            self.tell(ChangeLost(name, value, self.stage.loop.now))
        elif code:
            self.tell(ChangeRefused(name, value))
        else:
            self.tell(ChangeDone(name, value))
            self.values[thing] = value

    def _next(self, thing: str) -> str:
        now = self.values[thing]
        if thing in ("rule", "topic"):
            return NO_VALUE if now else THERE
        if thing == "start":
            return str(int(now) + 1)
        if thing == "partitions":
            return str(min(int(now) + 1, PARTITIONS_MAX))
        if now and self.random.random() < 0.3 and thing == "credential":
            return NO_VALUE
        return str(self.random.randrange(FIRST, LAST))

    async def look(self, thing: str) -> bool:
        """Tell what is in force; whether there was an answer."""
        sent = self.stage.loop.now
        value = await self.things[thing][1]()
        if value is None:
            return False
        self.tell(StateRead(f"{thing} of {self.name}", value, sent))
        self.values[thing] = value
        return True

    async def _done(self, request: Any, version: int, results: str) -> int | None:
        """The code of the first result of a request, None without an answer."""
        answer = await self.ask(request, version, patience_ms=PATIENCE_MS)
        code: int | None = None if answer is None else getattr(answer, results)[0].error_code
        return code

    # Rules and credentials

    async def change_rule(self, value: str) -> int | None:
        if value:
            rule = AclCreation(
                resource_type=TOPIC,
                resource_name=self.topic,
                principal=self.user,
                host="*",
                operation=READ,
                permission_type=ALLOW,
            )
            return await self._done(CreateAclsRequest(creations=[rule]), 3, "results")
        rules = DeleteAclsFilter(
            resource_type_filter=TOPIC,
            resource_name_filter=self.topic,
            principal_filter=self.user,
            host_filter="*",
            operation=READ,
            permission_type=ALLOW,
        )
        return await self._done(DeleteAclsRequest(filters=[rules]), 3, "filter_results")

    async def look_at_rule(self) -> str | None:
        request = DescribeAclsRequest(
            resource_type_filter=TOPIC,
            resource_name_filter=self.topic,
            pattern_type_filter=LITERAL,
            principal_filter=self.user,
            host_filter="*",
            operation=READ,
            permission_type=ALLOW,
        )
        answer = await self.ask(request, 3)
        if answer is None or answer.error_code:
            return None
        return THERE if answer.resources else NO_VALUE

    async def change_credential(self, value: str) -> int | None:
        request = AlterUserScramCredentialsRequest(deletions=[], upsertions=[])
        if value:
            wanted = ScramCredentialUpsertion(
                name=self.name,
                mechanism=SHA_256,
                iterations=int(value),
                salt=b"salt" * 4,
                salted_password=b"password" * 4,
            )
            request.upsertions.append(wanted)
        else:
            request.deletions.append(ScramCredentialDeletion(name=self.name, mechanism=SHA_256))
        return await self._done(request, 0, "results")

    async def look_at_credential(self) -> str | None:
        request = DescribeUserScramCredentialsRequest(users=[UserName(name=self.name)])
        answer = await self.ask(request, 0)
        if answer is None or answer.error_code:
            return None
        infos = answer.results[0].credential_infos
        return str(infos[0].iterations) if infos else NO_VALUE

    # Settings

    async def change_broker(self, value: str) -> int | None:
        return await self._configure(BROKER, "", self.setting, value)

    async def look_at_broker(self) -> str | None:
        return await self._configured(BROKER, "", self.setting)

    async def change_topic(self, value: str) -> int | None:
        """By the older API, which replaces everything that is set."""
        config = alter_configs.AlterableConfig(name=TOPIC_SETTING, value=value)
        resource = alter_configs.AlterConfigsResource(
            resource_type=TOPIC, resource_name=self.topic, configs=[config]
        )
        request = alter_configs.AlterConfigsRequest(resources=[resource], validate_only=False)
        return await self._done(request, 2, "responses")

    async def look_at_topic(self) -> str | None:
        return await self._configured(TOPIC, self.topic, TOPIC_SETTING)

    async def _configure(self, kind: int, name: str, setting: str, value: str) -> int | None:
        config = AlterableConfig(name=setting, config_operation=0, value=value)
        resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=[config])
        request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=False)
        return await self._done(request, 1, "responses")

    async def _configured(self, kind: int, name: str, setting: str) -> str | None:
        resource = DescribeConfigsResource(
            resource_type=kind, resource_name=name, configuration_keys=[setting]
        )
        answer = await self.ask(DescribeConfigsRequest(resources=[resource]), 4)
        if answer is None or answer.results[0].error_code:
            return None
        configs = answer.results[0].configs
        return str(configs[0].value) if configs else NO_VALUE

    # Topics

    async def make_or_delete(self, value: str) -> int | None:
        if value:
            return await self._create(self.passing)
        request = DeleteTopicsRequest(topic_names=[self.passing], timeout_ms=PATIENCE_MS)
        return await self._done(request, 5, "responses")

    async def _create(self, name: str) -> int | None:
        wanted = CreatableTopic(
            name=name, num_partitions=1, replication_factor=1, assignments=[], configs=[]
        )
        return await self._done(CreateTopicsRequest(topics=[wanted]), 7, "topics")

    async def look_for_topic(self) -> str | None:
        found = await self._partitions_of(self.passing)
        return None if found is None else THERE if found else NO_VALUE

    async def grow(self, value: str) -> int | None:
        wanted = CreatePartitionsTopic(name=self.topic, count=int(value), assignments=None)
        request = CreatePartitionsRequest(
            topics=[wanted], timeout_ms=PATIENCE_MS, validate_only=False
        )
        return await self._done(request, 2, "results")

    async def look_at_partitions(self) -> str | None:
        found = await self._partitions_of(self.topic)
        return None if found is None else str(found)

    async def _partitions_of(self, name: str) -> int | None:
        """How many a topic has, 0 where there is no topic; None without an answer."""
        request = MetadataRequest(
            topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False
        )
        answer = await self.ask(request, 12)
        if answer is None:
            return None
        topic = answer.topics[0]
        if topic.error_code == UNKNOWN_TOPIC:
            return 0
        return None if topic.error_code else len(topic.partitions)

    async def cut(self, value: str) -> int | None:
        """Delete one record more, which is written first."""
        leader = await self._leader()
        if leader is None:
            return None
        batch = batches.build([(None, b"v")], self.stage.wall_ms)
        part = PartitionProduceData(index=0, records=batch)
        data = TopicProduceData(name=self.topic, partition_data=[part])
        request = ProduceRequest(acks=-1, timeout_ms=5000, topic_data=[data])
        await self.ask(request, 11, node=leader)
        place = DeleteRecordsPartition(partition_index=0, offset=int(value))
        deletion = DeleteRecordsRequest(
            topics=[DeleteRecordsTopic(name=self.topic, partitions=[place])], timeout_ms=5000
        )
        answer = await self.ask(deletion, 2, node=leader)
        if answer is None:
            return None
        code: int = answer.topics[0].partitions[0].error_code
        return code

    async def look_at_start(self) -> str | None:
        leader = await self._leader()
        if leader is None:
            return None
        place = ListOffsetsPartition(partition_index=0, timestamp=EARLIEST)
        request = ListOffsetsRequest(
            replica_id=-1, topics=[ListOffsetsTopic(name=self.topic, partitions=[place])]
        )
        answer = await self.ask(request, 7, node=leader)
        if answer is None or answer.topics[0].partitions[0].error_code:
            return None
        return str(answer.topics[0].partitions[0].offset)

    async def _leader(self) -> int | None:
        topic = (await topics_of(self) or {}).get(self.topic)
        return None if topic is None or not topic.leaders else topic.leaders[0]
