# SPDX-License-Identifier: Apache-2.0
"""Holds transactions open for long, while segments are closed and cleaned around them.

It writes to a compacted topic of its own: in a transaction, and beside it. The cleaner may take
away what a later record replaces, and nothing of a transaction that is open.
"""

from typing import ClassVar

from kohort.errors import ErrorCode
from kohort.sim.actor_context import ActorContext
from kohort.sim.actors.reading import fetch
from kohort.sim.actors.topics import topics_of
from kohort.sim.actors.worker import Worker
from kohort.sim.codes import CREATED
from kohort.sim.facts import (
    Fact,
    PartitionId,
    RecordKept,
    TransactionEnded,
)
from kohort.sim.lasting_facts import (
    CompactedRead,
    HeldRead,
)
from kohort.wire import batch as batches
from kohort.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kohort.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

CONFIGS = {"cleanup.policy": "compact", "segment.ms": "1000", "min.cleanable.dirty.ratio": "0"}
LEAST_S, MOST_S = 20, 45
LONGEST_US = 55_000_000  # its timeout is longer: nobody else may have ended it by then
UNHEARD_US = 10_000_000  # within this a broker looks at the clock
SHORT_US = 3_600_000_000
TURN_MS = 3000
KEYS = 3


class Holder(Worker):
    """`open` has what is acknowledged in the transaction that is open, `last` of each key the
    offset behind which it must not end: that of its last record that counts for certain.
    """

    kind: ClassVar[str] = "holder"
    timeouts_ms = (60_000, 120_000)

    def __init__(self, stage: ActorContext, number: int) -> None:
        super().__init__(stage, number)
        self.transactional_id = f"work-held-{number}"
        self.group = f"works-held-{number}"
        self.topic = f"held-{number}"
        self.is_double = False
        self.plain = 0  # records beside transactions
        self.open: dict[int, bytes] = {}
        self.last: dict[bytes, int] = {}
        self.reads: list[HeldRead] = []
        self.begun_at = 0  # when the first record of the open transaction was acknowledged

    async def live(self) -> None:
        configs = [CreatableTopicConfig(name=name, value=value) for name, value in CONFIGS.items()]
        wanted = CreatableTopic(
            name=self.topic, num_partitions=1, replication_factor=1, assignments=[], configs=configs
        )
        while not self.over:
            answer = await self.ask(CreateTopicsRequest(topics=[wanted]), 7, patience_ms=20_000)
            if answer is not None and answer.topics[0].error_code in CREATED:
                break
            await self.pause(self.random.randrange(100, 3000))
        await super().live()

    def tell(self, fact: Fact) -> None:
        """Keep in mind what a checker of cleaning must know."""
        super().tell(fact)
        if isinstance(fact, RecordKept):
            if not self.open:
                self.begun_at = self.stage.loop.now
            self.open[fact.offset] = fact.value
        elif isinstance(fact, TransactionEnded):
            if fact.commit:  # it was open all the time: a coordinator that has aborted it, as after
                for read in self.reads:  # a jump of the clock, accepts an abort, and no commit
                    super().tell(read)
                for offset, value in self.open.items():
                    self._counts(offset, value)
            self._not_open()

    def _counts(self, offset: int, value: bytes) -> None:
        self.last[key_of(value)] = max(offset, self.last.get(key_of(value), -1))

    def _not_open(self) -> None:
        self.open, self.reads = {}, []

    def _forget(self) -> None:
        super()._forget()
        self._not_open()

    def key(self, value: bytes) -> bytes:
        return key_of(value)

    async def _look(self, *, at_rest: bool) -> bool:
        """Where offsets expire soon its group has none: nothing could be said of them."""
        if self.stage.offsets_retention_us < SHORT_US:
            return True
        return await super()._look(at_rest=at_rest)

    async def _write(self, transaction: str, _: dict[int, int]) -> bool:
        if self.topic not in self.known:
            self.known = await topics_of(self) or {}
        topic = self.known.get(self.topic)
        if topic is None:
            return False
        if self.version == 1 and await self.add_partitions((self.topic, 0)) != 0:
            return False
        values = [b"%s:%d;" % (transaction.encode(), key) for key in range(KEYS)]
        values = values[: self.random.randint(1, KEYS)]
        return await self.produce(transaction, topic, 0, values) == 0

    async def _end(self, transaction: str, taken: dict[int, int], *, commit: bool) -> None:
        """Wait before that, and meanwhile write and read beside it."""
        if not self.calm and self.random.random() < 0.6:
            until = self.stage.loop.now + self.random.uniform(LEAST_S, MOST_S) * 1e6
            while self.stage.loop.now < until and not self.over:
                await self._write_beside()
                await self._read()
                await self.pause(self.random.randrange(TURN_MS))
        await super()._end(transaction, taken, commit=commit)

    async def end(self, *, commit: bool) -> int | None:
        """The transactional id of an open transaction is in use, however long that is. A broker
        that starts behind a jump of the clock counts it as time.
        """
        asked_at = self.stage.loop.now
        code = await super().end(commit=commit)
        open_us = asked_at - self.begun_at
        if (
            code == ErrorCode.INVALID_PRODUCER_ID_MAPPING
            and self.open
            and open_us < LONGEST_US
            and self.stage.clock_set_at < self.begun_at - UNHEARD_US
        ):
            self.alarm(f"has lost its transactional id within a transaction of {open_us / 1e6} s")
        return code

    async def _write_beside(self) -> None:
        topic = self.known.get(self.topic)
        if topic is None:
            return
        self.plain += 1
        value = b"%s:beside:%d:%d;" % (
            self.name.encode(),
            self.plain,
            self.random.randrange(KEYS),
        )
        batch = batches.build([(key_of(value), value)], self.stage.wall_ms)
        data = TopicProduceData(
            topic_id=topic.topic_id, partition_data=[PartitionProduceData(index=0, records=batch)]
        )
        request = ProduceRequest(acks=-1, timeout_ms=5000, topic_data=[data])
        answer = await self.ask(request, 13, node=topic.leaders[0])
        if answer is not None:
            part = answer.responses[0].partition_responses[0]
            if not part.error_code:
                self._counts(part.base_offset, value)

    async def _read(self) -> None:
        """Everything, as readers of all records and as readers of committed ones get it."""
        topic = self.known.get(self.topic)
        if topic is None:
            return
        place = topic.topic_id, 0
        last, opened = dict(self.last), dict(self.open)
        everything = await self._read_all(place, topic.leaders[0], committed=False)
        committed = await self._read_all(place, topic.leaders[0], committed=True)
        if everything is None or committed is None:
            return
        if opened:
            self.reads.append(HeldRead(place, opened, everything[0], committed[1]))
        self.tell(CompactedRead(place, last, everything[0]))

    async def _read_all(
        self, place: PartitionId, leader: int, *, committed: bool
    ) -> tuple[dict[int, bytes], int] | None:
        """The values by offset, and where the reader has come to."""
        values: dict[int, bytes] = {}
        offset = 0
        while True:
            piece = await fetch(self, place, leader, offset, committed=committed)
            if piece is None or piece.code:
                return None
            values.update(piece.values)
            if piece.next_offset >= piece.end or piece.next_offset <= offset:
                return values, piece.next_offset
            offset = piece.next_offset


def key_of(value: bytes) -> bytes:
    """Each value ends with its key."""
    return value.rpartition(b":")[2].rstrip(b";")
