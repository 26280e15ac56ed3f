# SPDX-License-Identifier: Apache-2.0
"""What members of both protocols have: a pure machine that decides, and an application that takes
its time to let go of a partition.

The machine says what to send and when. The actor carries that to the coordinator, keeps the time,
and tells the checkers what the member owns and what it was answered.
"""

import asyncio
from random import Random
from typing import Any

from kohort.client.members.events import (
    CoordinatorWanted,
    HangUp,
    MembershipFailed,
    PartitionsAssigned,
    PartitionsLost,
    PartitionsRevoked,
    TopicsWanted,
)
from kohort.errors import ErrorCode
from kohort.sim.actor_context import ActorContext
from kohort.sim.actors.actor import Actor
from kohort.sim.facts import (
    HeartbeatAccepted,
    InstanceConfirmed,
    MemberAtEnd,
    MemberExpelled,
    MemberJoined,
    MemberLeft,
    OwnershipBelief,
    PartitionId,
)
from kohort.terms import Millis

PATIENCE_MS = 4000
LONGEST_SLEEP_MS = 1000
REBALANCE_MS = 60_000
STATIC = 0.5  # of the members
FOR_GOOD = 0.3  # of the leaves of static members
SLOW_MS = 20_000  # an application that takes so long is still in time, whatever answers got lost
FORGETFUL_MS = 70_000

_OF_ANOTHER = (ErrorCode.FENCED_INSTANCE_ID, ErrorCode.UNRELEASED_INSTANCE_ID)


class Member(Actor):
    """A subclass makes the machine and knows its messages.

    `owned` is what the application has, with the instant from which on it does.
    """

    patience_ms: int = PATIENCE_MS
    group: str

    def __init__(self, stage: ActorContext, number: int) -> None:
        super().__init__(stage, number)
        self.lives = 0
        self.owned: dict[PartitionId, int] = {}
        self.inside = False  # it was told that it is a member
        self.overdue = False  # it keeps something for longer than it may
        self.failed = False
        self.leaving = False  # it was told to leave while it waited for an answer
        self.instance_id: str | None = None
        self.kept: set[PartitionId] = set()  # of what it owns, what it need not give up
        self.heard_at = 0  # when it asked for the last answer that counted it as a member
        self.machine: Any = None
        self._wants_coordinator = False
        self._poked: asyncio.Future[None] | None = None

    def instance_of(self, kind: str) -> str | None:
        """The instance id of the member of that kind with the number of this one, if it is static
        in this run (KIP-345).
        """
        name = f"{kind}-{self.number}"
        static = self.stage.stream(f"instance of {name}").random() < STATIC
        return f"i-{name}" if static else None

    # What a subclass knows

    session_us = 0  # of its group; 0 for the shortest of the run

    def believes(self) -> bool:
        """Whether nobody may take its partitions before it is told, or its session has ended."""
        return not self.overdue

    def new_machine(self) -> Any:
        """A machine that has not joined yet."""
        raise NotImplementedError

    def member_id(self) -> str:
        """By which the coordinator knows it, or would know it."""
        raise NotImplementedError

    def epoch(self) -> int:
        """The epoch or generation that it is at."""
        raise NotImplementedError

    def topics(self) -> tuple[str, ...]:
        """The names that it reads."""
        raise NotImplementedError

    def version_of(self, request: Any) -> int:
        """The version that the machine's requests are written for."""
        raise NotImplementedError

    def counts(self, request: Any, answer: Any, sent: int) -> bool:
        """Whether the answer to what was sent then shows that the coordinator counts the sender as
        a member.
        """
        raise NotImplementedError

    def expels(self, request: Any, answer: Any) -> bool:
        """Whether an answer says that the coordinator does not know the member."""
        raise NotImplementedError

    def place(self, partition: Any) -> PartitionId:
        """A partition of the machine as checkers name it."""
        raise NotImplementedError

    def change(self, random: Random) -> None:
        """Want something else, if this kind of member can."""

    async def prepare(self) -> None:
        """What it has to know before it joins."""

    def got_in(self, random: Random) -> None:
        """It is a member, as one that has just begun."""

    async def look_at(self, names: tuple[str, ...]) -> None:
        """Find out about topics for a leader, and tell the machine."""

    # Its life

    async def live(self) -> None:
        random = self.random
        await self.pause(random.randrange(20_000))
        await self.prepare()
        self._begin()
        while not self.over:
            await self._turn()
            chance = 1.0 if self.calm else random.random()
            if self.failed:  # the next one has another id
                await self._die(1000)
            elif chance < 0.006:
                await self._die(20_000)
            elif self.leaving or chance < 0.012:
                await self._leave()
            elif chance < 0.02:
                self.change(random)
        self.tell(
            MemberAtEnd(
                self.group, self.member_id(), self.epoch(), frozenset(self.owned), self.topics()
            )
        )

    def now(self) -> Millis:
        return Millis(self.stage.loop.now // 1000)

    def _begin(self) -> None:
        self.lives += 1
        self._wants_coordinator = False
        self.owned, self.kept = {}, set()
        self.inside = self.overdue = self.failed = self.leaving = False
        self.machine = self.new_machine()
        self.take(self.machine.join())

    async def _die(self, longest_ms: int) -> None:
        """Without a word, to come back as somebody else."""
        self._is_out()
        self.caller.hang_up()
        await self.pause(self.random.randrange(longest_ms))
        self._begin()

    async def _leave(self) -> None:
        """Leave in good order, for as long as anybody listens, and come back. A static member
        leaves for a while, as a rule.
        """
        machine = self.machine
        for_good = self.instance_id is not None and self.random.random() < FOR_GOOD
        self._say_farewell(machine.leave(self.now(), for_good=for_good))
        until = self.now() + FORGETFUL_MS
        while machine.stage != "outside" and self.now() < until and not self.over:
            await self._turn()
        await self._die(20_000)

    async def _turn(self) -> None:
        """The next request and its answer, or a while without one."""
        if self._wants_coordinator:
            if await self.coordinator(self.group) is None:
                await self.pause(self.random.randrange(100, 500))
                return
            self._wants_coordinator = False
            self.machine.coordinator_found()
        lost = self.machine.expire(self.now())
        if lost:
            self._is_out()
            self.take(lost)
            return
        asked = self.machine.next(self.now())
        if asked is None:
            await self._sleep()
            return
        machine, sent, owned = self.machine, self.stage.loop.now, dict(self.owned)
        if not self.calm and self.random.random() < 0.1:
            ms = self.random.randrange(1000)
            self.stage.loop.call_later(ms / 1000, self._leave_meanwhile, machine)
        answer = await self.ask_coordinator(
            self.group,
            asked.request,
            self.version_of(asked.request),
            patience_ms=self.patience_ms,
        )
        if answer is None:
            if machine.waits_for_answer:  # it has not told this actor itself to hang up
                self.take(machine.connection_lost(self.now()))
            return
        self.coordinator_moved(self.group, answer.error_code)
        if not machine.waits_for_answer:  # a static member has left meanwhile, without a word
            return
        if self.expels(asked.request, answer) and self.inside and not self.overdue:
            self.tell(MemberExpelled(self.group, self.member_id(), self.stage.loop.now))
        was_at = self.epoch()
        events = machine.received(asked.number, answer, self.now())
        if self.counts(asked.request, answer, sent):
            self._note_membership(sent, owned)
        elif was_at > self.epoch():
            self._is_out()
        self.take(events)
        if self.inside:
            self._tell_belief()
        for event in events:
            if isinstance(event, TopicsWanted):
                await self.look_at(event.topics)

    def _leave_meanwhile(self, machine: Any) -> None:
        """Leave without waiting for an answer, which may be that to a parked join."""
        if machine is self.machine and machine.waits_for_answer and not (self.calm or self.leaving):
            self.leaving = True
            self._say_farewell(machine.leave(self.now()))

    def _say_farewell(self, events: Any) -> None:
        """From now on it has nothing, whenever the answer comes."""
        self.take(events)
        if self.inside:
            self._tell_belief()

    def _note_membership(self, sent: int, owned: dict[PartitionId, int]) -> None:
        at, anew = self.stage.loop.now, False
        if not self.inside:
            self.inside = True
            self.tell(MemberJoined(self.group, self.member_id(), sent))
            anew = True
            self.got_in(self.random)
        self.overdue = self.overdue and bool(self.machine.release_by)
        if self.instance_id is not None:
            self.tell(
                InstanceConfirmed(self.group, self.instance_id, self.member_id(), anew, sent, at)
            )
        self.tell(HeartbeatAccepted(self.group, self.member_id(), self.epoch(), owned, sent, at))
        self.heard_at = sent

    def _tell_belief(self) -> None:
        kept = frozenset(self.kept) if self.believes() else frozenset()
        self.tell(
            OwnershipBelief(
                self.group, self.member_id(), kept, self.session_us, self.heard_at,
                self.stage.loop.now,
            )
        )  # fmt: skip

    def _is_out(self) -> None:
        if self.inside:
            self.tell(MemberLeft(self.group, self.member_id()))
        self.inside = self.overdue = False

    async def _sleep(self) -> None:
        """Until the machine has something to say, or something happens to it."""
        wake = self.machine.wake_at()
        longest = self.now() + LONGEST_SLEEP_MS
        until = longest if wake is None else max(self.now() + 1, min(wake, longest))
        self._poked = self.stage.loop.create_future()
        timer = self.stage.loop.call_later((until - self.now()) / 1000, self._poke)
        await self._poked
        timer.cancel()

    def _poke(self) -> None:
        if self._poked is not None and not self._poked.done():
            self._poked.set_result(None)

    # What the application does

    def take(self, events: list[Any]) -> None:
        """Do what the machine says."""
        for event in events:
            match event:
                case PartitionsAssigned(partitions):
                    for partition in partitions:
                        self.owned[self.place(partition)] = self.stage.loop.now
                        self.kept.add(self.place(partition))
                case PartitionsRevoked(partitions) | PartitionsLost(partitions):
                    self.kept.difference_update(map(self.place, partitions))
                    self._release_later(frozenset(partitions))
                case CoordinatorWanted():
                    self._wants_coordinator = True
                case HangUp():
                    self.caller.hang_up()
                case MembershipFailed(error):
                    self.failed = True
                    if self.instance_id is None or error.code not in _OF_ANOTHER:
                        self.alarm(f"is refused for good: {error}")
                case _:
                    pass

    def _release_later(self, partitions: frozenset[Any]) -> None:
        """Most applications are quick, some are slow, and a few forget it for too long."""
        chance = self.random.random()
        if chance < 0.7 or self.calm:
            ms = self.random.randrange(300)
        elif chance < 0.97:
            ms = self.random.randrange(SLOW_MS)
        else:
            ms = self.random.randrange(SLOW_MS, FORGETFUL_MS)
            self.overdue = True
        self.stage.loop.call_later(ms / 1000, self._release, self.machine, partitions)

    def _release(self, machine: Any, partitions: frozenset[Any]) -> None:
        if machine is not self.machine:
            return  # of a life that is over
        for partition in partitions:
            del self.owned[self.place(partition)]
        self.take(self.released(partitions))
        self._poke()

    def released(self, partitions: frozenset[Any]) -> list[Any]:
        """Tell the machine that the application has let go."""
        raise NotImplementedError
