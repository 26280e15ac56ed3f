# SPDX-License-Identifier: Apache-2.0
"""A member of a KIP-848 group that does what the protocol asks of it, and no more."""

from typing import Any, ClassVar

from kohort.errors import ErrorCode
from kohort.sim.actor_context import ActorContext
from kohort.sim.actors.actor import Actor
from kohort.sim.facts import (
    HeartbeatAccepted,
    HeartbeatFailed,
    MemberAtEnd,
    MemberExpelled,
    MemberJoined,
    MemberLeft,
    OwnershipBelief,
    PartitionId,
)
from kohort.sim.lasting_facts import (
    MemberDeparted,
)
from kohort.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)

GROUPS = 2
TOPICS = ("home", "apples", "pears", "plums")
REBALANCE_MS = 60_000
START_OVER = frozenset(
    {
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.FENCED_MEMBER_EPOCH,
        ErrorCode.GROUP_ID_NOT_FOUND,
    }
)


class RawConsumer(Actor):
    """Takes its time to let go of a partition, and then says so with its next heartbeat."""

    kind: ClassVar[str] = "raw consumer"
    prefix = "member"  # of its member ids

    def __init__(self, stage: ActorContext, number: int) -> None:
        super().__init__(stage, number)
        self.group = f"consumers-{number % GROUPS}"
        self.member = f"{self.prefix}-{number}"
        self.epoch = 0
        self.topics = tuple(topic for topic in TOPICS if self.random.random() < 0.6) or TOPICS[:1]
        self.owned: dict[PartitionId, int] = {}
        self.assigned: frozenset[PartitionId] = frozenset()
        self.said: set[PartitionId] = set()  # what its last heartbeat said that it owns
        self.tells_all = True
        self.interval_ms = 1000
        self.let_go_at = 0  # what it is to give up it still works on until then
        self.lives = 0
        self.in_doubt = False  # a join without an answer may be carried out later

    async def live(self) -> None:
        random = self.random
        await self.pause(random.randrange(20_000))
        while not self.over:
            chance = 0.0 if self.calm else random.random()
            if self.epoch and chance > 0.995:
                await self.leave()
                await self.pause(random.randrange(20_000))
            elif self.epoch and chance > 0.985:  # dies without a word, and comes back as another
                self.start_over()
                self.caller.hang_up()
                self.begin_anew()
                await self.pause(random.randrange(20_000))
            elif self.epoch and chance > 0.98:
                self.topics = (
                    tuple(topic for topic in TOPICS if random.random() < 0.6) or TOPICS[:1]
                )
                self.tells_all = True
            await self.heartbeat()
            if self.owned.keys() != self.assigned:
                await self.pause(random.randrange(100, 600))
            else:
                await self.pause(self.interval_ms * random.uniform(0.9, 1.0))
        self.tell(
            MemberAtEnd(self.group, self.member, self.epoch, frozenset(self.owned), self.topics)
        )

    def start_over(self) -> None:
        """It is no member any more, and owns nothing."""
        if self.epoch:
            self.tell(MemberLeft(self.group, self.member))
        self.epoch = 0
        self.owned = {}
        self.assigned = frozenset()
        self.tells_all = True

    async def heartbeat(self) -> None:
        now = self.stage.loop.now
        for place in [place for place in self.owned if place not in self.assigned]:
            if now >= self.let_go_at:
                del self.owned[place]
        owned = dict(self.owned)
        request = self._request(owned)
        joins = self.epoch == 0
        answer = await self.ask_coordinator(self.group, request, 1, patience_ms=4000)
        if answer is None:
            self.tells_all = True
            self.in_doubt = self.in_doubt or joins
            return
        self.coordinator_moved(self.group, answer.error_code)
        if answer.error_code:
            self._refused(answer.error_code)
            return
        at = self.stage.loop.now
        self.tells_all = False
        self.epoch = answer.member_epoch
        self.interval_ms = answer.heartbeat_interval_ms
        if joins:
            self.tell(MemberJoined(self.group, self.member, now))
        self.tell(HeartbeatAccepted(self.group, self.member, self.epoch, owned, now, at))
        if answer.assignment is not None:
            self._take(answer.assignment, at)
        keeps = frozenset(self.owned.keys() & self.assigned)
        self.tell(OwnershipBelief(self.group, self.member, keeps, 0, now, at))

    def _request(self, owned: dict[PartitionId, int]) -> ConsumerGroupHeartbeatRequest:
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group, member_id=self.member, member_epoch=self.epoch
        )
        if self.tells_all or self.epoch == 0:
            request.rebalance_timeout_ms = REBALANCE_MS
            request.subscribed_topic_names = list(self.topics)
        if self.tells_all or self.said != owned.keys() or self.random.random() < 0.3:
            request.topic_partitions = _grouped(owned)
        self.said = set(owned)
        return request

    def _refused(self, code: int) -> None:
        if code not in START_OVER:
            self.tell(HeartbeatFailed(self.group, self.member))
            return
        if code == ErrorCode.UNKNOWN_MEMBER_ID and self.epoch:
            self.tell(MemberExpelled(self.group, self.member, self.stage.loop.now))
        self.start_over()

    def _take(self, assignment: Any, at: int) -> None:
        """Adopt an assignment. What is missing in it is let go after a while, when its records are
        done with; what is new is owned at once, because nobody else has it.
        """
        self.assigned = frozenset(
            (topic.topic_id, index)
            for topic in assignment.topic_partitions
            for index in topic.partitions
        )
        if self.let_go_at < at and not self.owned.keys() <= self.assigned:
            self.let_go_at = at + self.random.choice([0, 0, 2_000_000, 9_000_000])
        for place in sorted(self.assigned):
            self.owned.setdefault(place, at)

    async def leave(self) -> None:
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group, member_id=self.member, member_epoch=-1
        )
        self.start_over()
        answer = await self.ask_coordinator(self.group, request, 1)
        if answer is not None and not answer.error_code and not self.in_doubt:
            self.tell(
                MemberDeparted(self.group, request.member_id, self.stage.loop.now, for_good=True)
            )
        self.begin_anew()

    def begin_anew(self) -> None:
        """The next time it joins it is somebody else."""
        self.lives += 1
        self.in_doubt = False
        self.member = f"{self.prefix}-{self.number}-{self.lives}"


def _grouped(owned: dict[PartitionId, int]) -> list[TopicPartitions]:
    topics: dict[bytes, list[int]] = {}
    for topic_id, index in sorted(owned):
        topics.setdefault(topic_id, []).append(index)
    return [
        TopicPartitions(topic_id=topic_id, partitions=places) for topic_id, places in topics.items()
    ]
