# SPDX-License-Identifier: Apache-2.0
"""Sets what groups can have set for themselves, and looks whether it counts (KIP-848).

One group is its own: the heartbeat interval of that only grows, and a member hears of it. Those of
others are set to anything that is allowed.
"""

from typing import ClassVar

from kohort.errors import ErrorCode
from kohort.sim.actor_context import ActorContext
from kohort.sim.actors.actor import Actor
from kohort.sim.draw import SESSIONS_MS
from kohort.sim.facts import SettingLost, SettingRead, SettingSent
from kohort.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kohort.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from kohort.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kohort.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)

TOPIC = "home"
GROUP_RESOURCE = 32
SET, DELETE = 0, 1
INTERVAL = "consumer.heartbeat.interval.ms"
FIRST_MS = 3001  # longer than what groups have that set nothing
BEYOND_MS = (0, 999, 15_001, 60_000)  # what the broker's settings leave is 1000 to 15000
OTHERS = ("consumers-0", "consumers-1")
ANYTHING: dict[str, tuple[int, ...]] = {
    INTERVAL: (1000, 2000, 3000),
    "consumer.session.timeout.ms": SESSIONS_MS,
    "consumer.assignment.interval.ms": (0, 1000),
}


class Tuner(Actor):
    """A group that ends takes its settings along. So its own has an offset, which keeps it."""

    kind: ClassVar[str] = "tuner"

    def __init__(self, stage: ActorContext, number: int) -> None:
        super().__init__(stage, number)
        self.group = f"tuned-{number}"
        self.member = f"tuned-member-{number}"
        self.epoch = 0
        self.next_ms = FIRST_MS
        self.acknowledged_ms = 0

    async def live(self) -> None:
        random = self.random
        while not self.over and not await self._stays():
            await self.pause(random.randrange(100, 2000))
        while not self.over:
            await self.pause(random.randrange(50, 9000 if self.calm else 4000))
            chance = random.random()
            if chance < 0.35:
                await self._look()
            elif chance < 0.7:
                await self._heartbeat()
            elif chance < 0.85:
                await self._set_next()
            elif chance < 0.9:
                await self._set_beyond()
            elif not self.calm:
                name = random.choice(list(ANYTHING))
                value = random.choice([None, *ANYTHING[name]])
                await self._alter(random.choice(OTHERS), name, value)
        self.caller.hang_up()

    async def _stays(self) -> bool:
        """Have the group commit an offset; whether it has."""
        if not self.epoch:
            await self._heartbeat()
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
        if answer is None:
            return False
        code = answer.topics[0].partitions[0].error_code
        self.coordinator_moved(self.group, code)
        if code:
            self.epoch = 0
        return not code

    async def _heartbeat(self) -> None:
        """The answer says how often the member is to come."""
        floor, sent = self.acknowledged_ms, self.stage.loop.now
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group,
            member_id=self.member,
            member_epoch=self.epoch,
            rebalance_timeout_ms=60_000,
            subscribed_topic_names=[TOPIC],
            topic_partitions=[],
        )
        answer = await self.ask_coordinator(self.group, request, 1)
        if answer is None:
            return
        self.coordinator_moved(self.group, answer.error_code)
        if answer.error_code:
            self.epoch = 0
            return
        self.epoch = answer.member_epoch
        self.tell(SettingRead(self.group, answer.heartbeat_interval_ms, floor, sent))

    async def _look(self) -> None:
        """Any node says what is set."""
        floor, sent = self.acknowledged_ms, self.stage.loop.now
        resource = DescribeConfigsResource(
            resource_type=GROUP_RESOURCE, resource_name=self.group, configuration_keys=[INTERVAL]
        )
        answer = await self.ask(DescribeConfigsRequest(resources=[resource]), 4)
        if answer is not None and not answer.results[0].error_code:
            value = int(answer.results[0].configs[0].value)
            self.tell(SettingRead(self.group, value, floor, sent))

    async def _set_next(self) -> None:
        value, self.next_ms = self.next_ms, self.next_ms + 1
        self.tell(SettingSent(self.group, value))
        code = await self._alter(self.group, INTERVAL, value)
        if code == 0:
            self.acknowledged_ms = value
        else:  # also where it was refused: what has failed may be on the disk
            self.tell(SettingLost(self.group, value, self.stage.loop.now))

    async def _set_beyond(self) -> None:
        """What the bounds forbid is refused, and was never set."""
        value = self.random.choice(BEYOND_MS)
        if await self._alter(self.group, INTERVAL, value) == ErrorCode.NONE:
            self.alarm(f"may set {INTERVAL} of {self.group} to {value}")

    async def _alter(self, group: str, name: str, value: int | None) -> int | None:
        """Set something, or take it back; the code, or None without an answer."""
        config = AlterableConfig(
            name=name,
            config_operation=DELETE if value is None else SET,
            value=None if value is None else str(value),
        )
        resource = AlterConfigsResource(
            resource_type=GROUP_RESOURCE, resource_name=group, configs=[config]
        )
        request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=False)
        answer = await self.ask(request, 1)
        if answer is None:
            return None
        code: int = answer.responses[0].error_code
        return code
