# SPDX-License-Identifier: Apache-2.0
"""Commits an offset in a group of its own, stays in it or leaves, and looks how long the offset is
there. It writes to a topic whose records live briefly, and looks how long they are.

It lives in runs where offsets.retention.minutes is short and nobody sets the clock.
"""

from typing import ClassVar

from kohort.errors import ErrorCode
from kohort.sim.actor_context import ActorContext
from kohort.sim.actors.actor import Actor
from kohort.sim.actors.reading import fetch
from kohort.sim.actors.topics import TopicInfo, topics_of
from kohort.sim.codes import CREATED
from kohort.sim.lasting_facts import (
    LifetimeSeen,
)
from kohort.wire import batch as batches
from kohort.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kohort.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
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

TOPIC = "home"
RETENTION_US = 20_000_000
CONFIGS = {"retention.ms": str(RETENTION_US // 1000), "segment.ms": "3000"}
SLACK_US = 50_000_000  # calm in which a broker looks what has expired, 30 s after its start
FOR_EVER = 1 << 62
READ = frozenset({ErrorCode.NONE, ErrorCode.OFFSET_OUT_OF_RANGE})
PUT_OUT = frozenset(
    {
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.FENCED_MEMBER_EPOCH,
        ErrorCode.GROUP_ID_NOT_FOUND,
    }
)
LEAVES_AFTER_S = (5, 90)  # of those with even and odd numbers


class Lodger(Actor):
    """`committed_at` is when the commit was sent that is acknowledged; 0 without one."""

    kind: ClassVar[str] = "lodger"

    def __init__(self, stage: ActorContext, number: int) -> None:
        super().__init__(stage, number)
        self.group = f"lodging-{number}"
        self.topic = f"fleeting-{number}"
        self.epoch = 0
        self.lives = 0
        self.committed_at = 0
        self.left = False
        self.calm_since = 0
        self.stays_us = LEAVES_AFTER_S[number % 2] * 1_000_000
        self.known: TopicInfo | None = None
        self.kept: dict[int, int] = {}  # offsets of records, and when they were sent

    async def live(self) -> None:
        random = self.random
        while not self.over:
            await self.pause(random.randrange(100, 1500))
            if self.calm and not self.calm_since:
                self.calm_since = self.stage.loop.now
            if not self.left:
                await self._lodge()
            elif random.random() < 0.5:
                await self._look()
            if self.known is None:
                await self._make_topic()
            elif random.random() < 0.3:
                await self._produce()
            elif random.random() < 0.3:
                await self._look_at_records()
        await self._look()
        await self._look_at_records()
        self.caller.hang_up()

    @property
    def member(self) -> str:
        return f"lodger-{self.number}-{self.lives}"

    # The offset

    async def _lodge(self) -> None:
        """Stay a member, commit once, and leave after a while."""
        if not await self._heartbeat(self.epoch):
            return
        if not self.committed_at:
            await self._commit()
        elif self.stage.loop.now - self.committed_at > self.stays_us:
            self.left = True
            if not await self._heartbeat(-1):
                self.committed_at = 0  # nobody knows since when the group is empty
        else:
            there, sent, at = await self._there()
            if there is not None and await self._heartbeat(self.epoch):
                name = f"the offset of {self.group}, which has a member,"
                self.tell(LifetimeSeen(name, there, sent, at, at + 1, FOR_EVER))

    async def _heartbeat(self, epoch: int) -> bool:
        """Whether it is accepted. Who is no member any more begins again as another one."""
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group,
            member_id=self.member,
            member_epoch=epoch,
            rebalance_timeout_ms=60_000,
            subscribed_topic_names=[TOPIC],
            topic_partitions=[],
        )
        answer = await self.ask_coordinator(self.group, request, 1)
        if answer is None:
            return False
        self.coordinator_moved(self.group, answer.error_code)
        if not answer.error_code:
            self.epoch = answer.member_epoch
        elif epoch > 0 and answer.error_code in PUT_OUT:
            self.epoch, self.committed_at = 0, 0
            self.lives += 1
        return not answer.error_code

    async def _commit(self) -> None:
        sent = self.stage.loop.now
        place = OffsetCommitRequestPartition(
            partition_index=0, committed_offset=1, committed_metadata=""
        )
        request = OffsetCommitRequest(
            group_id=self.group,
            generation_id_or_member_epoch=self.epoch,
            member_id=self.member,
            topics=[OffsetCommitRequestTopic(name=TOPIC, partitions=[place])],
        )
        answer = await self.ask_coordinator(self.group, request, 9)
        if answer is not None:
            code = answer.topics[0].partitions[0].error_code
            self.coordinator_moved(self.group, code)
            if not code:
                self.committed_at = sent

    async def _there(self) -> tuple[bool | None, int, int]:
        """Whether the offset is there, None without an answer; when it was asked and answered."""
        sent = self.stage.loop.now
        topic = OffsetFetchRequestTopics(name=TOPIC, partition_indexes=[0])
        request = OffsetFetchRequest(
            groups=[OffsetFetchRequestGroup(group_id=self.group, topics=[topic])]
        )
        answer = await self.ask_coordinator(self.group, request, 8)
        at = self.stage.loop.now
        if answer is None:
            return None, sent, at
        (group,) = answer.groups
        self.coordinator_moved(self.group, group.error_code)
        if group.error_code or group.topics[0].partitions[0].error_code:
            return None, sent, at
        return group.topics[0].partitions[0].committed_offset >= 0, sent, at

    async def _look(self) -> None:
        """After it has left: the offset lives for its time from the commit on."""
        if not (self.left and self.committed_at):
            return
        there, sent, at = await self._there()
        if there is not None:
            until = self.committed_at + self.stage.offsets_retention_us
            gone_by = max(until, self.calm_since) + SLACK_US if self.calm_since else FOR_EVER
            name = f"the offset of {self.group}, which is empty,"
            self.tell(LifetimeSeen(name, there, sent, at, until, gone_by))

    # The records

    async def _make_topic(self) -> None:
        configs = [CreatableTopicConfig(name=name, value=value) for name, value in CONFIGS.items()]
        wanted = CreatableTopic(
            name=self.topic, num_partitions=1, replication_factor=1, assignments=[], configs=configs
        )
        answer = await self.ask(CreateTopicsRequest(topics=[wanted]), 7, patience_ms=20_000)
        if answer is not None and answer.topics[0].error_code in CREATED:
            self.known = (await topics_of(self) or {}).get(self.topic)

    async def _produce(self) -> None:
        assert self.known is not None
        sent = self.stage.loop.now
        batch = batches.build([(None, b"v")], self.stage.wall_ms)
        data = TopicProduceData(
            topic_id=self.known.topic_id,
            partition_data=[PartitionProduceData(index=0, records=batch)],
        )
        request = ProduceRequest(acks=-1, timeout_ms=5000, topic_data=[data])
        answer = await self.ask(request, 13, node=self.known.leaders[0])
        if answer is not None:
            part = answer.responses[0].partition_responses[0]
            if not part.error_code:
                self.kept[part.base_offset] = sent

    async def _look_at_records(self) -> None:
        """A record that is as young as one that must live is never taken, and old ones are."""
        if self.known is None or not self.kept:
            return
        offset = next(iter(self.kept))
        while offset >= 0:
            sent, asked_for = self.stage.loop.now, offset
            piece = await fetch(
                self, (self.known.topic_id, 0), self.known.leaders[0], offset, limit=1
            )
            at = self.stage.loop.now
            if piece is None or piece.code not in READ:
                return
            written = self.kept[asked_for]
            until = written + RETENTION_US
            gone_by = max(until, self.calm_since) + SLACK_US if self.calm_since else FOR_EVER
            there = not piece.code and asked_for in piece.values
            name = f"offset {asked_for} of {self.topic}"
            self.tell(LifetimeSeen(name, there, sent, at, until, gone_by))
            if there or at < until:
                return
            del self.kept[asked_for]
            offset = next(iter(self.kept), -1)
