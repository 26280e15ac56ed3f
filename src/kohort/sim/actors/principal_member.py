# SPDX-License-Identifier: Apache-2.0
"""Members of KIP-848 groups whose users may come to have a right, or lose it, at any time."""

from typing import ClassVar

from kohort.errors import ErrorCode
from kohort.sim.access_facts import PatternAssigned
from kohort.sim.actor_context import ActorContext
from kohort.sim.actors.actor import COORDINATOR_MOVED
from kohort.sim.actors.principal import (
    DESCRIBE,
    NO_GROUP,
    NO_TOPIC,
    READ,
    Guest,
    of_group,
    of_topics,
)
from kohort.sim.ruled import BY_EXPRESSION, BY_NAME, EXPRESSION, TOPICS, USERS, principal_of
from kohort.terms import uuid_text
from kohort.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)

LEAVES = -1
REBALANCE_MS = 10_000
WAITS = frozenset({NO_GROUP, NO_TOPIC, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, *COORDINATOR_MOVED})
"""Errors after which a member goes on; after any other it is another one."""


class PrincipalMember(Guest):
    """Acknowledges at once what it is assigned. Most of its heartbeats repeat nothing."""

    kind: ClassVar[str] = "principal member"

    def __init__(self, stage: ActorContext, number: int) -> None:
        super().__init__(stage, number)
        self.group = BY_EXPRESSION if number % 3 else BY_NAME
        self.names: list[str] = []
        self.member_id = ""
        self.epoch = 0
        self.owned: list[TopicPartitions] = []
        self.says_all = False  # what it has is new, or its coordinator may not know it

    async def live(self) -> None:
        random = self.random
        await self.pause(random.randrange(8000))
        self._begin()
        while not self.over:
            if random.random() < 0.02:
                await self._heartbeat(leaves=True)
                self._begin()
            elif not await self._heartbeat():
                await self.pause(random.randrange(3000))
                self._begin()
            await self.pause(random.randrange(200, 2000))
        await self._heartbeat(leaves=True)
        self.caller.hang_up()

    def _begin(self) -> None:
        """Be a new member, of any user."""
        random = self.random
        self.caller.hang_up()
        self.user = random.choice(USERS)
        self.member_id = uuid_text(random.randbytes(16))
        self.epoch, self.owned, self.says_all = 0, [], True
        self.names = random.sample(TOPICS, random.randint(1, 2))

    async def _heartbeat(self, *, leaves: bool = False) -> bool:
        """Whether it is still a member, as far as anybody says."""
        says_all = not leaves and (self.says_all or self.random.random() < 0.1)
        by_name = says_all and self.group == BY_NAME
        by_expression = says_all and not by_name
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group,
            member_id=self.member_id,
            member_epoch=LEAVES if leaves else self.epoch,
            rebalance_timeout_ms=REBALANCE_MS if says_all else -1,
            subscribed_topic_names=self.names if by_name else [] if says_all else None,
            subscribed_topic_regex=EXPRESSION if by_expression else None,
            topic_partitions=self.owned if says_all else None,
        )
        answer = await self.ask_coordinator(self.group, request, 1)
        if answer is None:
            self.says_all = True
            return True
        self.coordinator_moved(self.group, answer.error_code)
        code = answer.error_code
        named = of_topics(DESCRIBE, self.names if by_name else ())
        if code == NO_GROUP:
            self.tell_refused(of_group(READ, self.group), "a heartbeat")
        elif code == NO_TOPIC:
            self.tell_refused(named, "a heartbeat with names")
        elif not code:
            self.judge(code, NO_GROUP, of_group(READ, self.group) + named, "a heartbeat")
            self.says_all = False
            self.epoch = answer.member_epoch
            if answer.assignment is not None:
                self._take(answer.assignment.topic_partitions)
            return True
        return code in WAITS and self.epoch != 0

    def _take(self, topics: list[TopicPartitions]) -> None:
        """Have what is assigned, and tell of topics that are new."""
        had = {place.topic_id for place in self.owned}
        self.says_all = topics != self.owned  # an answer to a whole heartbeat tells it all again
        self.owned = topics
        for place in topics:
            if self.group == BY_EXPRESSION and place.topic_id not in had:
                self.tell(
                    PatternAssigned(
                        principal_of(self.user), place.topic_id, self.sent, self.stage.loop.now
                    )
                )
