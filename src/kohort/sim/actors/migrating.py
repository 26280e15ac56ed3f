# SPDX-License-Identifier: Apache-2.0
"""A member that speaks another protocol in each of its lives, as in a rolling upgrade: classic or
KIP-848, eager in one group, cooperative in the other. It commits for what it owns, and looks at
what has been committed.
"""

from typing import Any, ClassVar

from kohort.client.members.heartbeat import MemberConfig
from kohort.client.members.membership import Membership
from kohort.client.members.retry_backoff import RetryBackoff
from kohort.errors import ErrorCode
from kohort.sim.actor_context import ActorContext
from kohort.sim.actors.classic_member import EAGER, GROUPS, TOPIC, ClassicMember
from kohort.sim.actors.member import PATIENCE_MS, REBALANCE_MS
from kohort.sim.facts import (
    MemberCommitLost,
    MemberCommitSent,
    MemberCommitted,
    MemberForgotten,
    MemberLooked,
    PartitionId,
)
from kohort.terms import GroupId, MemberId
from kohort.wire.messages.heartbeat import HeartbeatRequest
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

COMMITS, LOOKS = 0.15, 0.25  # of the turns
BESIDE_MS = 1500  # patience for what it asks between two heartbeats
VERSION = 1  # of ConsumerGroupHeartbeat


class MigratingMember(ClassicMember):
    """Its groups go over to the other protocol and back all the time."""

    kind: ClassVar[str] = "migrating member"
    machine: Any

    def __init__(self, stage: ActorContext, number: int) -> None:
        super().__init__(stage, number)
        self.group = f"migrating-{number % GROUPS}"
        self.instance_id = None
        if number % GROUPS == EAGER:
            self.instance_id = self.instance_of("migrating member")
        self.heard = 0  # when the last heartbeat was sent that was accepted

    def believes(self) -> bool:
        """A conversion has rules of its own for what is given up when."""
        return False

    @property
    def is_new(self) -> bool:
        """Whether it speaks the new protocol in this life."""
        return isinstance(self.machine, Membership)

    def new_machine(self) -> Any:
        random = self.random
        if random.random() < 0.5:
            self.patience_ms = REBALANCE_MS + 5000  # joins and syncs are parked
            return super().new_machine()
        self.patience_ms = PATIENCE_MS
        config = MemberConfig(names=(TOPIC,), rebalance_timeout_ms=REBALANCE_MS)
        backoff = RetryBackoff(jitter_permille=random.randrange(-200, 201))
        member_id = MemberId(f"{self.name}-{self.lives}".replace(" ", "-"))
        return Membership(
            GroupId(self.group), member_id, config, backoff, instance_id=self.instance_id
        )

    def epoch(self) -> int:
        return int(self.machine.epoch) if self.is_new else super().epoch()

    def topics(self) -> tuple[str, ...]:
        return (TOPIC,)

    def version_of(self, request: Any) -> int:
        return VERSION if self.is_new else super().version_of(request)

    def counts(self, request: Any, answer: Any, sent: int) -> bool:
        if self.is_new:
            return not answer.error_code and request.member_epoch >= 0
        return super().counts(request, answer, sent)

    def expels(self, request: Any, answer: Any) -> bool:
        unknown: bool = answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID
        if self.is_new:
            return unknown and request.member_epoch > 0
        if unknown and isinstance(request, HeartbeatRequest) and self.inside and not self.overdue:
            self.tell(
                MemberForgotten(self.group, self.member_id(), self.heard, self.stage.loop.now)
            )
        return False

    def place(self, partition: Any) -> PartitionId:
        if self.is_new:
            return partition.topic_id, partition.partition
        return super().place(partition)

    def released(self, partitions: frozenset[Any]) -> list[Any]:
        if self.is_new:
            released: list[Any] = self.machine.released(partitions)
            return released
        return super().released(partitions)

    # What it does between two heartbeats

    def _note_membership(self, sent: int, owned: dict[PartitionId, int]) -> None:
        self.heard = sent
        super()._note_membership(sent, owned)

    async def _turn(self) -> None:
        await super()._turn()
        chance = self.random.random()
        if chance < COMMITS and self.inside and self.owned:
            await self._commit()
        elif chance < LOOKS and self.known:
            await self._look()

    async def _commit(self) -> None:
        """Say how far it is, by the clock: who commits later has come further."""
        commits_as = self.machine.commits_as
        if commits_as is None:
            return
        member_id, epoch = commits_as
        offset = int(self.now())
        indexes = sorted(index for _, index in self.owned)
        for index in indexes:
            self.tell(MemberCommitSent(self.group, index, offset))
        partitions = [
            OffsetCommitRequestPartition(
                partition_index=index, committed_offset=offset, committed_metadata=""
            )
            for index in indexes
        ]
        request = OffsetCommitRequest(
            group_id=self.group,
            member_id=member_id,
            generation_id_or_member_epoch=epoch,
            group_instance_id=self.instance_id,
            topics=[OffsetCommitRequestTopic(name=TOPIC, partitions=partitions)],
        )
        answer = await self.ask_coordinator(self.group, request, 9, patience_ms=BESIDE_MS)
        now = self.stage.loop.now
        if answer is None:
            for index in indexes:
                self.tell(MemberCommitLost(self.group, index, offset, now))
            return
        for place in answer.topics[0].partitions:
            self.coordinator_moved(self.group, place.error_code)
            if not place.error_code:
                self.tell(MemberCommitted(self.group, place.partition_index, offset, now))

    async def _look(self) -> None:
        sent = self.stage.loop.now
        indexes = list(range(self.stage.topics[TOPIC]))
        topic = OffsetFetchRequestTopics(name=TOPIC, partition_indexes=indexes)
        request = OffsetFetchRequest(
            groups=[OffsetFetchRequestGroup(group_id=self.group, topics=[topic])]
        )
        answer = await self.ask_coordinator(self.group, request, 8, patience_ms=BESIDE_MS)
        if answer is None:
            return
        (group,) = answer.groups
        self.coordinator_moved(self.group, group.error_code)
        if group.error_code:
            return
        for place in group.topics[0].partitions:
            if not place.error_code:
                index, offset = place.partition_index, place.committed_offset
                self.tell(MemberLooked(self.group, index, offset, sent))
