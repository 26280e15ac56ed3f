# SPDX-License-Identifier: Apache-2.0
"""A member that computes the assignments of its group when it is asked to (KIP-848).

Mostly it does that well. Sometimes it is late, silent, or delivers what is wrong or out of date:
none of that may be taken. The metadata of each part names the epoch that it was computed for.
"""

from typing import Any, ClassVar

from kohort.errors import ErrorCode
from kohort.sim.actor_context import ActorContext
from kohort.sim.actors.raw_consumer import RawConsumer
from kohort.wire.messages.consumer_group_heartbeat import (
    ClientAssignor,
    ConsumerGroupHeartbeatRequest,
)
from kohort.wire.messages.consumer_group_install_assignment import (
    ConsumerGroupInstallAssignmentRequest,
    Member,
    TopicPartition,
)
from kohort.wire.messages.consumer_group_prepare_assignment import (
    ConsumerGroupPrepareAssignmentRequest,
    ConsumerGroupPrepareAssignmentResponse,
)

GROUPS = 2
FAILED = 3  # the error of an assignor that fails


class Assigner(RawConsumer):
    """`former` is what it has prepared before."""

    kind: ClassVar[str] = "assigner"
    prefix = "assigner"

    def __init__(self, stage: ActorContext, number: int) -> None:
        super().__init__(stage, number)
        self.group = f"assigning-{number % GROUPS}"
        self.reason = 0
        self.asked = False
        self.former: ConsumerGroupPrepareAssignmentResponse | None = None

    def start_over(self) -> None:
        super().start_over()
        self.asked = False
        self.former = None

    def _request(self, owned: Any) -> ConsumerGroupHeartbeatRequest:
        request = super()._request(owned)
        if not self.calm and self.random.random() < 0.03:
            self.reason = self.reason % 100 + 1  # asks for another assignment
            self.tells_all = True
        if self.tells_all or self.epoch == 0:
            request.client_assignors = [
                ClientAssignor(name=name, reason=self.reason, metadata_bytes=self.name.encode())
                for name in ("even", "odd")
            ]
        return request

    async def ask_coordinator(self, name: str, request: Any, *more: Any, **options: Any) -> Any:
        """A heartbeat that asks to compute is otherwise as one that does not."""
        answer = await super().ask_coordinator(name, request, *more, **options)
        if answer is not None and answer.error_code == ErrorCode.COMPUTE_ASSIGNMENT:
            answer.error_code = 0
            self.asked = True
        return answer

    def _take(self, assignment: Any, at: int) -> None:
        super()._take(assignment, at)
        attached = assignment.attachment
        if attached is not None and attached.error:  # nothing comes of that: ask once more
            self.reason = self.reason % 100 + 1
            self.tells_all = True
        elif attached is not None and attached.metadata_bytes:
            computed_for = int(attached.metadata_bytes)
            if computed_for != self.epoch:
                self.alarm(f"is at epoch {self.epoch} with metadata of epoch {computed_for}")

    async def heartbeat(self) -> None:
        self.asked = False
        await super().heartbeat()
        chance = 1.0 if self.calm else self.random.random()
        if self.asked and chance > 0.2:
            await self._compute(chance)

    async def _compute(self, chance: float) -> None:
        prepared = await self.ask_coordinator(
            self.group,
            ConsumerGroupPrepareAssignmentRequest(
                group_id=self.group, member_id=self.member, member_epoch=self.epoch
            ),
            0,
        )
        if prepared is None or prepared.error_code:
            return
        former, self.former = self.former, prepared
        if chance < 0.3:
            await self.pause(self.random.randrange(3000))
        if former is not None and former.group_epoch < prepared.group_epoch and chance < 0.7:
            code = await self._install(former.group_epoch, _shared(former))
            if code == ErrorCode.NONE:
                self.alarm(
                    f"has installed an assignment of epoch {former.group_epoch}, and prepared "
                    f"{prepared.group_epoch} since"
                )
        if chance < 0.35:
            code = await self._install(prepared.group_epoch, _twice(prepared))
            if code == ErrorCode.NONE:
                self.alarm("has given a partition to two members")
        if chance < 0.4:
            await self._install(prepared.group_epoch, [], error=FAILED)
            return
        code = await self._install(prepared.group_epoch, _shared(prepared))
        if code == ErrorCode.INVALID_ASSIGNMENT:
            self.alarm("is told that a good assignment is wrong")

    async def _install(self, epoch: int, members: list[Member], error: int = 0) -> int | None:
        """The code of the answer, None without one."""
        request = ConsumerGroupInstallAssignmentRequest(
            group_id=self.group,
            member_id=self.member,
            member_epoch=self.epoch,
            group_epoch=epoch,
            error=error,
            members=members,
        )
        answer = await self.ask_coordinator(self.group, request, 0)
        code: int | None = None if answer is None else answer.error_code
        return code


def _shared(prepared: ConsumerGroupPrepareAssignmentResponse) -> list[Member]:
    """Each topic to its readers in turn, the first partition to the reader that its number says."""
    metadata = str(prepared.group_epoch).encode()
    parts = {
        member.member_id: Member(member_id=member.member_id, metadata_bytes=metadata)
        for member in prepared.members
    }
    for topic in prepared.topics:
        readers = [
            member.member_id
            for member in prepared.members
            if topic.topic_id in member.subscribed_topic_ids
        ]
        first = prepared.group_epoch  # so that partitions move from epoch to epoch
        for number, reader in enumerate(readers):
            start = (number + first) % len(readers)
            own = list(range(start, topic.num_partitions, len(readers)))
            if own:
                parts[reader].partitions.append(
                    TopicPartition(topic_id=topic.topic_id, partitions=own)
                )
    return list(parts.values())


def _twice(prepared: ConsumerGroupPrepareAssignmentResponse) -> list[Member]:
    """A member gets the first partition of a topic twice, if anybody gets any."""
    for member in prepared.members:
        for topic_id in member.subscribed_topic_ids:
            twice = [TopicPartition(topic_id=topic_id, partitions=[0, 0])]
            return [Member(member_id=member.member_id, partitions=twice)]
    return [Member(member_id="nobody")]
