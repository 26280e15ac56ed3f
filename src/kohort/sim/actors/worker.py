# SPDX-License-Identifier: Apache-2.0
"""Takes a group on and writes what comes of it, both in one transaction (KIP-447), or writes only.

The two workers of a transactional id are lives of one program, and the second is not always there:
a supervisor has started it, and the first one goes on, or wakes up later. Whoever takes the id last
has it.
"""

from collections.abc import Awaitable, Callable
from typing import ClassVar

from kohort.errors import ErrorCode
from kohort.sim.actor_context import ActorContext
from kohort.sim.actors.topics import TopicInfo, topics_of
from kohort.sim.actors.transactional import FIRST, SECOND, TransactionalProducer
from kohort.sim.facts import (
    OffsetOfTransaction,
    OffsetsInTransaction,
    TransactionEnded,
    TransactionEnding,
)
from kohort.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)

TOPIC = "home"  # what the groups read
LOOKS = 20
Step = Callable[[str, dict[int, int]], Awaitable[bool]]
TIMEOUTS_MS = (2000, 8000, 20_000)


class Worker(TransactionalProducer):
    """`behind` has by partition the transaction that has taken the group to where it is, and
    `offsets` how many have done so. Both are read again where the end of one is not known.
    """

    kind: ClassVar[str] = "worker"
    timeouts_ms: tuple[int, ...] = TIMEOUTS_MS

    def __init__(self, stage: ActorContext, number: int) -> None:
        super().__init__(stage, number, f"work-{number // 2}")
        self.group = f"works-{number // 2}"
        self.is_double = number % 2 == 1
        self.known: dict[str, TopicInfo] = {}
        self.behind: dict[int, str] = {}
        self.offsets: dict[int, int] = {}
        self.begun = 0  # transactions

    async def live(self) -> None:
        random = self.random
        while self.is_double and not self.calm:
            await self.pause(random.randrange(60_000))
            await self._work(self.stage.loop.now + random.randrange(30_000_000))
            self._forget()
        if not self.is_double:
            await self._work(None)
            await self._look_at_last()
        self.caller.hang_up()

    async def _work(self, until: int | None) -> None:
        """One transaction after the other: up to an instant, or until everybody ends."""
        random = self.random
        while not self.over and (until is None or (self.stage.loop.now < until and not self.calm)):
            await self.pause(random.randrange(50, 9000 if self.calm else 4000))
            if not self.known or random.random() < 0.1:
                self.known = await topics_of(self) or {}
            if self.id < 0:
                await self._begin()
            elif self.version == FIRST and self.in_doubt:
                await self._begin(same=random.random() < 0.5)
            elif TOPIC in self.known:
                await self._transaction()
            if not self.calm and random.random() < 0.01:  # dies
                self._forget()
                await self.pause(random.randrange(20_000))

    def _forget(self) -> None:
        """Without a word: the transaction, if there is one, is open."""
        self.id = -1

    async def _begin(self, *, same: bool = False) -> None:
        """Take the id, and look how far the group has come."""
        code = await self.init(self.random.choice(self.timeouts_ms), same=same)
        self.version = self.random.choice([FIRST, SECOND])
        if code != 0 or not await self._look(at_rest=False):
            self._forget()
            if not self.calm:
                await self.pause(self.random.randrange(3000))

    async def _look(self, *, at_rest: bool) -> bool:
        """Read what transactions have committed for the group; whether that was possible."""
        topic = OffsetFetchRequestTopics(
            name=TOPIC, partition_indexes=list(range(self.stage.topics[TOPIC]))
        )
        request = OffsetFetchRequest(
            groups=[OffsetFetchRequestGroup(group_id=self.group, topics=[topic])],
            require_stable=True,
        )
        for _ in range(LOOKS):
            answer = await self.ask_coordinator(self.group, request, 9)
            if answer is not None:
                (group,) = answer.groups
                self.coordinator_moved(self.group, group.error_code)
                places = [] if group.error_code else group.topics[0].partitions
                if places and not any(place.error_code for place in places):
                    for place in places:
                        self.offsets[place.partition_index] = max(place.committed_offset, 0)
                        self.behind[place.partition_index] = place.metadata or ""
                        self.tell(
                            OffsetOfTransaction(
                                self.group, place.partition_index, place.metadata or "", at_rest
                            )
                        )
                    return True
            if self.over and not at_rest:
                break
            await self.pause(self.random.randrange(100, 1000))
        return False

    async def _look_at_last(self) -> None:
        await self._look(at_rest=True)

    async def _transaction(self) -> None:
        """Write here and there, take the group on, and end it."""
        random = self.random
        self.begun += 1
        transaction = f"{self.name}:{self.begun}"
        steps: list[Step] = [self._write] * random.choice([0, 1, 1, 2, 3])
        taken = {
            partition: self.offsets[partition] + 1
            for partition in self.offsets
            if random.random() < 0.6
        }
        if taken and (not steps or random.random() < 0.7):
            steps.insert(random.randrange(len(steps) + 1), self._take_on)
        whole = bool(steps)
        for step in steps:
            if not self.calm and random.random() < 0.02:  # and wakes up as one that is forgotten
                await self.pause(random.randrange(30_000))
            whole = whole and await step(transaction, taken)
        if not steps:
            return
        if not self.calm and random.random() < 0.03:  # dies within it
            self._forget()
            return
        await self._end(transaction, taken if self._take_on in steps else {}, commit=whole)

    async def _write(self, transaction: str, _: dict[int, int]) -> bool:
        """Some records; whether they are written."""
        random = self.random
        topic = self.known[TOPIC]
        ours = [topic for topic in self.known.values() if topic.ours and topic.leaders]
        if self.version == SECOND:
            topic = random.choice(ours)
        index = random.randrange(len(topic.leaders))
        if self.version == FIRST:
            places = [(TOPIC, index)]
            if random.random() < 0.2:  # enrolled, and never written to
                other = random.choice(ours)
                places.append((other.name, random.randrange(len(other.leaders))))
            if await self.add_partitions(*dict.fromkeys(places)) != 0:
                return False
        values = [
            b"%s:%d:%d;" % (transaction.encode(), random.randrange(1 << 30), number)
            for number in range(random.choice([1, 1, 3]))
        ]
        return await self.produce(transaction, topic, index, values) == 0

    async def _take_on(self, transaction: str, taken: dict[int, int]) -> bool:
        """The offsets; whether they are in the transaction."""
        for index in taken:
            self.tell(
                OffsetsInTransaction(
                    transaction, self.transactional_id, self.group, index, self.behind[index]
                )
            )
        return await self.commit_offsets(self.group, TOPIC, taken, transaction) == 0

    async def _end(self, transaction: str, taken: dict[int, int], *, commit: bool) -> None:
        commit = commit and self.random.random() < 0.8
        self.tell(TransactionEnding(transaction, commit))
        code = await self.end(commit=commit)
        if code == 0:
            self.tell(TransactionEnded(transaction, commit))
            if commit:
                self.offsets.update(taken)
                self.behind.update(dict.fromkeys(taken, transaction))
            return
        self._forget()
        fenced = code in (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH)
        if fenced and not self.calm:
            await self.pause(self.random.randrange(15_000))
