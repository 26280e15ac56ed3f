# SPDX-License-Identifier: Apache-2.0
"""A member of a classic group by the machine of the client: eager in one group, cooperative in the
other.
"""

from random import Random
from typing import Any, ClassVar

from kohort.client.members.classic_membership import (
    VERSIONS,
    ClassicMemberConfig,
    ClassicMembership,
)
from kohort.client.members.retry_backoff import RetryBackoff
from kohort.errors import ErrorCode
from kohort.sim.actor_context import ActorContext
from kohort.sim.actors.member import REBALANCE_MS, Member
from kohort.sim.actors.topics import topics_of
from kohort.sim.facts import PartitionId
from kohort.terms import GroupId
from kohort.wire.messages.heartbeat import HeartbeatRequest

TOPIC = "home"
PROTOCOLS = (("range",), ("cooperative-sticky",))  # of each group
GROUPS = 2
EAGER = 0  # the first of them
SESSION_MS = 8000


class ClassicMember(Member):
    """Tells the checkers what it owns with each heartbeat."""

    kind: ClassVar[str] = "classic member"
    patience_ms = REBALANCE_MS + 5000  # joins and syncs are parked
    machine: ClassicMembership
    session_us = SESSION_MS * 1000

    def __init__(self, stage: ActorContext, number: int) -> None:
        super().__init__(stage, number)
        self.group = f"classic-members-{number % GROUPS}"
        self.protocols = PROTOCOLS[number % GROUPS]
        self.instance_id = self.instance_of("classic member")
        self.known: dict[str, bytes] = {}  # ids of topics
        self.last_id = ""

    def new_machine(self) -> ClassicMembership:
        random = self.random
        self.last_id = ""
        config = ClassicMemberConfig(
            (TOPIC,),
            self.protocols,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS,
            heartbeat_interval_ms=random.choice([500, 1000, 2000]),
        )
        backoff = RetryBackoff(jitter_permille=random.randrange(-200, 201))
        return ClassicMembership(GroupId(self.group), config, backoff, instance_id=self.instance_id)

    def believes(self) -> bool:
        """Another process takes the place of a static member at once (KIP-345)."""
        return super().believes() and self.instance_id is None

    def member_id(self) -> str:
        """The last one that it had: it is told of when the coordinator has forgotten it."""
        self.last_id = self.machine.member_id or self.last_id
        return self.last_id or self.name

    def epoch(self) -> int:
        return self.machine.generation

    def topics(self) -> tuple[str, ...]:
        return self.machine.config.topics

    def version_of(self, request: Any) -> int:
        return VERSIONS[type(request)]

    def counts(self, request: Any, answer: Any, sent: int) -> bool:
        return (
            isinstance(request, HeartbeatRequest)
            and answer.error_code in (ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS)
            and not self.stage.was_loading_since(sent)
        )

    def expels(self, request: Any, answer: Any) -> bool:
        """Nothing is said of sessions: who waits for a join does not beat."""
        del request, answer
        return False

    def place(self, partition: Any) -> PartitionId:
        return self.known[partition.topic], partition.partition

    async def prepare(self) -> None:
        while TOPIC not in self.known and not self.over:
            topics = await topics_of(self)
            if topics is None or TOPIC not in topics:
                await self.pause(self.random.randrange(100, 1000))
            else:
                self.known[TOPIC] = topics[TOPIC].topic_id

    def got_in(self, random: Random) -> None:
        """A cooperative one that dies between the two rebalances of KIP-429 is replaced in a group
        at rest: the second never comes, and what it was to give up has no owner until another. So
        the next one asks for it.
        """
        if self.instance_id is not None and self.number % GROUPS != EAGER:
            self.stage.loop.call_later(random.random() * 3, self._join_again, self.machine)

    def _join_again(self, machine: ClassicMembership) -> None:
        if machine is self.machine:
            self.take(machine.join_again(self.now()))

    async def look_at(self, names: tuple[str, ...]) -> None:
        """A leader without an answer looks again."""
        machine = self.machine
        while self.machine is machine and machine.stage == "assigning" and not self.over:
            topics = await topics_of(self)
            if topics is None:
                await self.pause(self.random.randrange(100, 1000))
                continue
            sizes = {name: len(topics[name].leaders) for name in names if name in topics}
            self.take(machine.topics_known(sizes))

    def released(self, partitions: frozenset[Any]) -> list[Any]:
        return self.machine.released(partitions, self.now())
