# SPDX-License-Identifier: Apache-2.0
"""Clients that log in and ask for what they may or may not have: each tells what it got and what it
was refused, with the rights that upstream asks for.
"""

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, ClassVar

from kohort.errors import ErrorCode
from kohort.sim.access_facts import (
    AccessGiven,
    AccessRefused,
    Demand,
    EffectRefused,
    EffectSeen,
)
from kohort.sim.actor_context import ActorContext
from kohort.sim.actors.actor import Actor
from kohort.sim.ruled import ABSENT, COMMITTING, GROUPS, TOPICS, USERS, principal_of
from kohort.sim.secure_client import SecureClient, credentials
from kohort.wire import batch as batches
from kohort.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from kohort.wire.messages.create_acls import AclCreation, CreateAclsRequest
from kohort.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kohort.wire.messages.find_coordinator import FindCoordinatorRequest
from kohort.wire.messages.list_groups import ListGroupsRequest
from kohort.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kohort.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
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
from kohort.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

READ, WRITE, ALTER, DESCRIBE = 3, 4, 7, 8
TOPIC, GROUP, CLUSTER = 2, 3, 4
THE_CLUSTER = Demand(ALTER, CLUSTER, "kafka-cluster")
LITERAL, ALLOW, ALL = 3, 3, 2
NO_TOPIC, NO_GROUP = ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.GROUP_AUTHORIZATION_FAILED
NOT_THIS = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
TOLD = frozenset({ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION})
"""A client that learns that there is no such topic has learnt about it."""


def of_topics(operation: int, names: Iterable[str]) -> tuple[Demand, ...]:
    return tuple(Demand(operation, TOPIC, name) for name in names)


def of_group(operation: int, name: str) -> tuple[Demand, ...]:
    return (Demand(operation, GROUP, name),)


class Guest(Actor):
    """A client of the listener with SASL. Several may be one user."""

    def __init__(self, stage: ActorContext, number: int) -> None:
        super().__init__(stage, number)
        self.caller: SecureClient = SecureClient(
            stage.loop, stage.network, self.name, stage.alarm, stage.failed_inside
        )
        self.user = self.random.choice(USERS)

    async def ask(
        self, request: Any, version: int, *, node: int | None = None, patience_ms: int = 5000
    ) -> Any | None:
        """As any client, after a login where there is none."""
        if node is None:
            node = self.random.randrange(self.stage.nodes)
        if not self.caller.is_logged_in(node) and not await self.caller.log_in(node, self.user):
            return None
        self.sent = self.stage.loop.now
        return await self.caller.ask(request, version, node=node, patience_ms=patience_ms)

    async def coordinator(self, name: str, of: int = GROUP) -> int | None:
        """The coordinator of a group, or any node where the client is not told."""
        known = self._coordinators.get((of, name))
        if known is None:
            known = await self.find_coordinator(name)
            if known is None:
                return self.random.randrange(self.stage.nodes)
            self._coordinators[of, name] = known
        return known

    async def find_coordinator(self, group: str) -> int | None:
        request = FindCoordinatorRequest(key_type=0, coordinator_keys=[group])
        answer = await self.ask(request, 4)
        if answer is None:
            return None
        found = answer.coordinators[0]
        self.judge(found.error_code, NO_GROUP, of_group(DESCRIBE, group), "its coordinator")
        return None if found.error_code else found.node_id

    def judge(self, code: int, refusal: int, demands: tuple[Demand, ...], asked: str) -> None:
        """Tell the facts of an answer to the last request: it needed all of these rights."""
        if code == refusal:
            self.tell_refused(demands, asked)
        elif code in TOLD:
            for demand in demands:
                self.tell_given((demand,), asked)

    def tell_given(self, any_of: tuple[Demand, ...], asked: str) -> None:
        now = self.stage.loop.now
        self.tell(AccessGiven(principal_of(self.user), any_of, asked, self.sent, now))

    def tell_refused(self, all_of: tuple[Demand, ...], asked: str) -> None:
        now = self.stage.loop.now
        self.tell(AccessRefused(principal_of(self.user), all_of, asked, self.sent, now))


class Principal(Guest):
    """Asks one thing after the other, and tries to get in without a password."""

    kind: ClassVar[str] = "principal"

    def __init__(self, stage: ActorContext, number: int) -> None:
        super().__init__(stage, number)
        self.leaders: dict[str, int] = {}
        self.changes = 0
        self.session: tuple[int, int, int] | None = None  # its node, its id and the next epoch
        self.actions: tuple[Callable[[], Awaitable[None]], ...] = (
            self.describe_topics,
            self.list_topics,
            self.look_for_coordinator,
            self.commit,
            self.commit,
            self.fetch_offsets,
            self.fetch_all_offsets,
            self.produce,
            self.produce,
            self.fetch,
            self.fetch,
            self.fetch_in_session,
            self.fetch_in_session,
            self.list_offsets,
            self.list_groups,
            self.describe_group,
            self.make_rule,
            self.guess_password,
        )

    async def live(self) -> None:
        random = self.random
        while not self.over:
            await self.pause(random.choice([0, 200, 2000]) * random.random())
            await random.choice(self.actions)()
            if random.random() < 0.02:  # as a new process, of another user
                self.caller.hang_up()
                self.user, self.session = random.choice(USERS), None
        self.caller.hang_up()

    def leader(self, topic: str) -> int:
        """The node that leads the partition of a topic; any where the client is not told."""
        return self.leaders.get(topic, self.random.randrange(self.stage.nodes))

    def change(self) -> str:
        """A text that one change leaves."""
        self.changes += 1
        return f"change {self.changes} of {self.name}"

    # Topics

    async def describe_topics(self) -> None:
        names = self.random.sample([*TOPICS, ABSENT], 2)
        topics = [MetadataRequestTopic(name=name) for name in names]
        answer = await self.ask(MetadataRequest(topics=topics, allow_auto_topic_creation=False), 12)
        for topic in [] if answer is None else answer.topics:
            self.judge(
                topic.error_code, NO_TOPIC, of_topics(DESCRIBE, [topic.name]), "a topic by name"
            )
            if topic.partitions:
                self.leaders[topic.name] = topic.partitions[0].leader_id

    async def list_topics(self) -> None:
        answer = await self.ask(MetadataRequest(topics=None, allow_auto_topic_creation=False), 12)
        if answer is None:
            return
        found = [topic.name for topic in answer.topics]
        for name in found:
            self.tell_given(of_topics(DESCRIBE, [name]), "a topic in a list")
        for name in TOPICS:
            if name not in found:
                self.tell_refused(of_topics(DESCRIBE, [name]), "a topic in a list")

    async def list_offsets(self) -> None:
        name = self.random.choice(TOPICS)
        place = ListOffsetsPartition(partition_index=0, timestamp=-1)
        request = ListOffsetsRequest(
            replica_id=-1, topics=[ListOffsetsTopic(name=name, partitions=[place])]
        )
        answer = await self.ask(request, 7, node=self.leader(name))
        if answer is not None:
            code = answer.topics[0].partitions[0].error_code
            self.judge(code, NO_TOPIC, of_topics(DESCRIBE, [name]), "the end of a log")

    async def produce(self) -> None:
        name, text = self.random.choice(TOPICS), self.change()
        batch = batches.build([(None, text.encode())], self.stage.wall_ms)
        part = PartitionProduceData(index=0, records=batch)
        request = ProduceRequest(
            acks=-1,
            timeout_ms=5000,
            topic_data=[TopicProduceData(name=name, partition_data=[part])],
        )
        answer = await self.ask(request, 11, node=self.leader(name))
        if answer is None:
            return
        code = answer.responses[0].partition_responses[0].error_code
        self.judge(code, NO_TOPIC, of_topics(WRITE, [name]), "a record written")
        if code == NO_TOPIC:
            self.tell(EffectRefused(text))

    async def fetch(self) -> None:
        """Sometimes the request waits at the broker, which judges it when it comes."""
        name = self.random.choice(TOPICS)
        wait_ms = self.random.choice([0, 0, 1000, 4000])
        request = FetchRequest(max_wait_ms=wait_ms, min_bytes=100_000, topics=[self._from(name)])
        answer = await self.ask(request, 12, node=self.leader(name), patience_ms=wait_ms + 5000)
        self._take_records(answer)

    async def fetch_in_session(self) -> None:
        """All topics, and then what is new of them (KIP-227)."""
        if self.session is None:
            node, session_id, epoch = self.random.randrange(self.stage.nodes), 0, 0
        else:
            node, session_id, epoch = self.session
        request = FetchRequest(
            max_wait_ms=self.random.choice([0, 1000]),
            min_bytes=1,
            session_id=session_id,
            session_epoch=epoch,
            topics=[] if epoch else [self._from(name) for name in TOPICS],
        )
        answer = await self.ask(request, 12, node=node)
        self.session = None
        if answer is not None and not answer.error_code and answer.session_id:
            self.session = node, answer.session_id, epoch + 1
        self._take_records(answer)

    def _from(self, topic: str) -> FetchTopic:
        place = FetchPartition(
            partition=0,
            fetch_offset=self.random.choice([0, 0, 3]),
            partition_max_bytes=100_000,
        )
        return FetchTopic(topic=topic, partitions=[place])

    def _take_records(self, answer: Any | None) -> None:
        for topic in [] if answer is None or answer.error_code else answer.responses:
            part = topic.partitions[0]
            demands = of_topics(READ, [topic.topic])
            self.judge(part.error_code, NO_TOPIC, demands, "records")
            for at, header in batches.walk(part.records or b""):
                for record in batches.records(part.records[at : at + header.length]):
                    self.tell(EffectSeen((record.value or b"").decode()))

    # Groups

    async def look_for_coordinator(self) -> None:
        await self.find_coordinator(self.random.choice(GROUPS))

    async def commit(self) -> None:
        names, text = self.random.sample(TOPICS, 2), self.change()
        place = OffsetCommitRequestPartition(
            partition_index=0, committed_offset=self.random.randrange(9), committed_metadata=text
        )
        request = OffsetCommitRequest(
            group_id=COMMITTING,
            member_id="",
            topics=[OffsetCommitRequestTopic(name=name, partitions=[place]) for name in names],
        )
        answer = await self.ask_coordinator(COMMITTING, request, 8)
        codes = {}
        for topic in [] if answer is None else answer.topics:
            code = codes[topic.name] = topic.partitions[0].error_code
            if code == NO_GROUP:
                self.tell_refused(of_group(READ, COMMITTING), "a commit")
            elif code in (0, NO_TOPIC):
                self.tell_given(of_group(READ, COMMITTING), "a commit")
                self.judge(code, NO_TOPIC, of_topics(READ, [topic.name]), "a commit")
            self.coordinator_moved(COMMITTING, code)
        if codes and set(codes.values()) <= {NO_GROUP, NO_TOPIC}:
            self.tell(EffectRefused(text))

    async def fetch_offsets(self) -> None:
        names = self.random.sample(TOPICS, 2)
        topics = [OffsetFetchRequestTopics(name=name, partition_indexes=[0]) for name in names]
        await self._fetch_offsets(topics)

    async def fetch_all_offsets(self) -> None:
        await self._fetch_offsets(None)

    async def _fetch_offsets(self, topics: list[OffsetFetchRequestTopics] | None) -> None:
        wanted = OffsetFetchRequestGroup(group_id=COMMITTING, topics=topics)
        answer = await self.ask_coordinator(COMMITTING, OffsetFetchRequest(groups=[wanted]), 8)
        if answer is None:
            return
        group = answer.groups[0]
        self.coordinator_moved(COMMITTING, group.error_code)
        self.judge(group.error_code, NO_GROUP, of_group(DESCRIBE, COMMITTING), "offsets")
        for topic in group.topics:
            place = topic.partitions[0]
            demands = of_topics(DESCRIBE, [topic.name])
            self.judge(place.error_code, NO_TOPIC, demands, "an offset")
            if place.metadata:
                self.tell(EffectSeen(place.metadata))

    async def list_groups(self) -> None:
        answer = await self.ask(ListGroupsRequest(), 4)
        for group in [] if answer is None else answer.groups:
            any_of = (
                Demand(DESCRIBE, CLUSTER, "kafka-cluster"),
                *of_group(DESCRIBE, group.group_id),
            )
            self.tell_given(any_of, "a group in a list")

    async def describe_group(self) -> None:
        name = self.random.choice(GROUPS)
        request = ConsumerGroupDescribeRequest(
            group_ids=[name], include_authorized_operations=False
        )
        answer = await self.ask_coordinator(name, request, 1)
        if answer is None:
            return
        group = answer.groups[0]
        self.coordinator_moved(name, group.error_code)
        self.judge(group.error_code, NO_GROUP, of_group(DESCRIBE, name), "a group")
        topics = {
            place.topic_name: None
            for member in group.members
            for part in (member.assignment, member.target_assignment)
            for place in part.topic_partitions
        }
        if group.error_code == NO_TOPIC:
            self.tell_refused(of_topics(DESCRIBE, TOPICS), "a group with topics")
        for topic in topics:
            self.tell_given(of_topics(DESCRIBE, [topic]), "a group with topics")

    # What nobody gets

    async def make_rule(self) -> None:
        """Allow oneself everything."""
        rule = AclCreation(
            resource_type=TOPIC,
            resource_name="*",
            resource_pattern_type=LITERAL,
            principal=principal_of(self.user),
            host="*",
            operation=ALL,
            permission_type=ALLOW,
        )
        answer = await self.ask(CreateAclsRequest(creations=[rule]), 3)
        if answer is not None:
            self.judge(answer.results[0].error_code, NOT_THIS, (THE_CLUSTER,), "a rule made")

    async def guess_password(self) -> None:
        """Log in with a wrong one, and go on as if it had been right."""
        node = self.random.randrange(self.stage.nodes)
        if not await self.caller.shake_hands(node):
            return
        request = MetadataRequest(topics=None, allow_auto_topic_creation=False)
        login = self.caller.send(credentials(self.user, "a guess"), 2, node=node)
        next_one = self.caller.send(request, 12, node=node)
        answer, served = await login, await next_one
        if answer is not None and not answer.error_code:
            self.alarm(f"is {self.user} by a wrong password")
        if served is not None:
            self.alarm("is served after a login that has failed")
        self.caller.hang_up_on(node)
