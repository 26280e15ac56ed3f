# SPDX-License-Identifier: Apache-2.0
"""A member of a classic group: joins, assigns where it leads, heartbeats, and comes back."""

from typing import Any, ClassVar

from kohort.errors import ErrorCode
from kohort.records import consumer_protocol
from kohort.records.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
)
from kohort.sim.actor_context import ActorContext
from kohort.sim.actors.actor import Actor
from kohort.sim.actors.topics import topics_of
from kohort.sim.facts import (
    HeartbeatAccepted,
    MemberAtEnd,
    MemberJoined,
    MemberLeft,
    OwnershipBelief,
    PartitionId,
)
from kohort.sim.lasting_facts import (
    MemberDeparted,
)
from kohort.wire.messages.heartbeat import HeartbeatRequest
from kohort.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kohort.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from kohort.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

GROUPS = 2
SESSION_MS = 8000
REBALANCE_MS = 12_000
PATIENCE_MS = 20_000
TOPIC = "home"


class ClassicConsumer(Actor):
    """Gives up everything before it joins again, as the eager protocol asks."""

    kind: ClassVar[str] = "classic"

    def __init__(self, stage: ActorContext, number: int) -> None:
        super().__init__(stage, number)
        self.group = f"classics-{number % GROUPS}"
        self.member = ""
        self.generation = -1
        self.owned: dict[PartitionId, int] = {}
        self.known: dict[str, bytes] = {}  # ids of topics
        self.partitions = 0

    async def live(self) -> None:
        random = self.random
        await self.pause(random.randrange(20_000))
        while not self.over:
            if self.generation < 0:
                await self.join()
            else:
                await self.heartbeat()
            chance = 1.0 if self.calm else random.random()
            if self.generation >= 0 and chance < 0.01:
                await self.leave()
                await self.pause(random.randrange(20_000))
            elif self.generation >= 0 and chance < 0.02:  # dies, and comes back as another
                self.start_over("")
                self.caller.hang_up()
                await self.pause(random.randrange(20_000))
            await self.pause(random.randrange(800, 1500) if self.generation >= 0 else 200)
        self.tell(
            MemberAtEnd(self.group, self.name, self.generation, frozenset(self.owned), (TOPIC,))
        )

    def start_over(self, member: str) -> None:
        """It has no generation any more, and owns nothing."""
        if self.generation >= 0:
            self.tell(MemberLeft(self.group, self.member))
        self.member = member
        self.generation = -1
        self.owned = {}

    async def join(self) -> None:
        if TOPIC not in self.known:
            topics = await topics_of(self)
            if topics is None or TOPIC not in topics:
                return
            self.known[TOPIC] = topics[TOPIC].topic_id
            self.partitions = len(topics[TOPIC].leaders)
        subscription = ConsumerProtocolSubscription(topics=[TOPIC], owned_partitions=[])
        metadata = consumer_protocol.encode(subscription)
        request = JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS,
            member_id=self.member,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=metadata)],
        )
        answer = await self.ask_coordinator(self.group, request, 7, patience_ms=PATIENCE_MS)
        if answer is None:
            return
        self.coordinator_moved(self.group, answer.error_code)
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.member = answer.member_id
        elif answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID:
            self.member = ""
        elif not answer.error_code:
            self.member = answer.member_id
            await self.sync(answer)

    async def sync(self, joined: Any) -> None:
        """Give out the partitions where this member leads, and take its own."""
        given = []
        if joined.leader == self.member:
            members = sorted(member.member_id for member in joined.members)
            given = [
                SyncGroupRequestAssignment(member_id=member, assignment=self._part(at, members))
                for at, member in enumerate(members)
            ]
        request = SyncGroupRequest(
            group_id=self.group,
            generation_id=joined.generation_id,
            member_id=self.member,
            protocol_type="consumer",
            protocol_name="range",
            assignments=given,
        )
        sent = self.stage.loop.now
        answer = await self.ask_coordinator(self.group, request, 5, patience_ms=PATIENCE_MS)
        if answer is None:
            return
        self.coordinator_moved(self.group, answer.error_code)
        if answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID:
            self.member = ""
        elif not answer.error_code:
            now = self.stage.loop.now
            self.generation = joined.generation_id
            self.tell(MemberJoined(self.group, self.member, now))
            for topic in consumer_protocol.decode_assignment(answer.assignment).assigned_partitions:
                for index in topic.partitions:
                    self.owned[self.known[topic.topic], index] = now
            self._believe(sent)

    def _believe(self, sent: int) -> None:
        owned, now = frozenset(self.owned), self.stage.loop.now
        self.tell(OwnershipBelief(self.group, self.member, owned, SESSION_MS * 1000, sent, now))

    def _part(self, at: int, members: list[str]) -> bytes:
        mine = [index for index in range(self.partitions) if index % len(members) == at]
        parts = [TopicPartition(topic=TOPIC, partitions=mine)] if mine else []
        return consumer_protocol.encode(ConsumerProtocolAssignment(assigned_partitions=parts))

    async def heartbeat(self) -> None:
        sent, owned = self.stage.loop.now, dict(self.owned)
        request = HeartbeatRequest(
            group_id=self.group, generation_id=self.generation, member_id=self.member
        )
        answer = await self.ask_coordinator(self.group, request, 4)
        if answer is None:
            return
        code = answer.error_code
        self.coordinator_moved(self.group, code)
        proven = not self.stage.was_loading_since(sent)
        if proven and code in (0, ErrorCode.REBALANCE_IN_PROGRESS):
            now = self.stage.loop.now
            self.tell(HeartbeatAccepted(self.group, self.member, self.generation, owned, sent, now))
        if code in (ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION):
            self.start_over(self.member)
        elif code == ErrorCode.UNKNOWN_MEMBER_ID:
            self.start_over("")
        elif proven and not code:
            self._believe(sent)

    async def leave(self) -> None:
        request = LeaveGroupRequest(
            group_id=self.group, members=[MemberIdentity(member_id=self.member)]
        )
        member = self.member
        self.start_over("")
        answer = await self.ask_coordinator(self.group, request, 4)
        if answer is not None and not answer.error_code and not answer.members[0].error_code:
            self.tell(MemberDeparted(self.group, member, self.stage.loop.now, for_good=False))
