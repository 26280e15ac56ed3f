# SPDX-License-Identifier: Apache-2.0
"""Produces records, some of it idempotently: what is not answered is then sent again. Who does not
send anything again does not wait for an answer before the next batch, either.
"""

from typing import Any, ClassVar

from kohort.errors import ErrorCode
from kohort.sim.actor_context import ActorContext
from kohort.sim.actors.actor import Actor
from kohort.sim.actors.topics import TopicInfo, topics_of
from kohort.sim.facts import PartitionId, ProducerIdGiven, RecordKept, RecordSent
from kohort.wire import batch as batches
from kohort.wire.messages.init_producer_id import InitProducerIdRequest
from kohort.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

FINAL = frozenset(
    {
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_ID,
    }
)
TRIES = 30


class Producer(Actor):
    """Names topics by id, so that it never writes to another one of the same name."""

    kind: ClassVar[str] = "producer"

    def __init__(self, stage: ActorContext, number: int) -> None:
        super().__init__(stage, number)
        self.idempotent = number % 2 == 0
        self.id = -1
        self.epoch = -1
        self.sequences: dict[PartitionId, int] = {}
        self.made = 0

    async def live(self) -> None:
        random = self.random
        known: dict[str, TopicInfo] = {}
        while not self.over:
            await self.pause(random.randrange(10, 1500))
            if not known or random.random() < 0.1:
                known = await topics_of(self) or {}
            ours = [topic for topic in known.values() if topic.ours and topic.leaders]
            if self.idempotent and (self.id < 0 or random.random() < 0.01):
                await self.begin_anew()
            elif ours:
                topic = random.choice(ours)
                place = topic.topic_id, random.randrange(len(topic.leaders))
                produced = self.produce(place, topic.leaders[place[1]])
                if self.idempotent:
                    await produced
                else:
                    self.stage.loop.begin(produced)
        self.caller.hang_up()

    async def begin_anew(self) -> None:
        """Take an id, as a producer that starts; or another epoch of the one it has."""
        same = self.id >= 0 and self.random.random() < 0.5
        request = InitProducerIdRequest(
            transactional_id=None,
            transaction_timeout_ms=60_000,
            producer_id=self.id if same else -1,
            producer_epoch=self.epoch if same else -1,
        )
        answer = await self.ask(request, 4)
        if answer is not None and not answer.error_code:
            asked_for = same and answer.producer_id == self.id
            producer = answer.producer_id, answer.producer_epoch
            self.tell(ProducerIdGiven(*producer, asked_for, self.name))
            self.id, self.epoch = answer.producer_id, answer.producer_epoch
            self.sequences.clear()

    async def produce(self, place: PartitionId, node: int) -> None:
        """One batch. An idempotent one is sent until there is an answer that is final."""
        self.made += 1
        count = self.random.choice([1, 1, 3, 20])
        values = [
            b"%s:%d:%d;" % (self.name.encode(), self.made, number) * self.random.choice([1, 1, 9])
            for number in range(count)
        ]
        for value in values:
            self.tell(RecordSent(place, value, once=self.idempotent))
        batch = self._batch(place, values)
        for _ in range(TRIES if self.idempotent else 1):
            sent = self.stage.loop.now
            answer = await self.ask(_request(place, batch), 13, node=node)
            if answer is not None:
                part = answer.responses[0].partition_responses[0]
                if not part.error_code:
                    for delta, value in enumerate(values):
                        self.tell(RecordKept(place, part.base_offset + delta, value, sent))
                    if self.idempotent:
                        self.sequences[place] = self.sequences.get(place, 0) + count
                    return
                if part.error_code in FINAL:
                    break
            if self.over:
                break
            await self.pause(self.random.randrange(100, 4000))
        if self.idempotent:
            self.id = -1  # whether it was written is not known: only another id is safe

    def _batch(self, place: PartitionId, values: list[bytes]) -> bytes:
        more: dict[str, Any] = {}
        if self.idempotent:
            more = {
                "producer_id": self.id,
                "producer_epoch": self.epoch,
                "base_sequence": self.sequences.get(place, 0),
            }
        codec = self.random.choice([0, 0, 0, 1, 2, 3, 4])
        now = self.stage.wall_ms
        keys = [b"%d" % self.random.randrange(5) for _ in values]
        entries = list(zip(keys, values, strict=True))
        return batches.build(entries, now, compression=codec, **more)


def _request(place: PartitionId, batch: bytes) -> ProduceRequest:
    part = PartitionProduceData(index=place[1], records=batch)
    return ProduceRequest(
        acks=-1,
        timeout_ms=5000,
        topic_data=[TopicProduceData(topic_id=place[0], partition_data=[part])],
    )
