# SPDX-License-Identifier: Apache-2.0
"""Produces batches that are no honest ones: counts that lie, another checksum, times far ahead,
producer ids that nobody has given out, control batches, what unfolds beyond all bounds.

Its topic is its own. What must be refused is, and the end of its log tells of no more records than
were in what may count.
"""

from collections.abc import Callable
from random import Random
from struct import pack_into
from typing import Any, ClassVar, NamedTuple

import google_crc32c

from kohort.sim.actor_context import ActorContext
from kohort.sim.actors.actor import Actor
from kohort.sim.actors.topics import topics_of
from kohort.sim.facts import (
    PartitionId,
)
from kohort.sim.lasting_facts import (
    EndSeen,
    ForgedAnswered,
)
from kohort.wire import batch as batches
from kohort.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kohort.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kohort.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

LATEST = -1
DAY_MS = 86_400_000
CRC_AT, COVERED_AT, DELTA_AT, MAX_TIME_AT, COUNT_AT = 17, 21, 23, 35, 57
MOST = (1 << 31) - 1
BOMB_BYTES = 17 << 20
FOREIGN_IDS = ((1 << 62) - 2, (1 << 62) - 1, 1 << 62, (1 << 63) - 1)


class Forgery(NamedTuple):
    """A batch, and how many records of it may count; none where it must be refused."""

    batch: bytes
    records: int


def _sealed(batch: bytearray) -> bytes:
    crc = google_crc32c.value(bytes(batch[COVERED_AT:]))
    pack_into(">I", batch, CRC_AT, crc)
    return bytes(batch)


def _counts(batch: bytes, count: int) -> bytes:
    """The same, as if it had so many records."""
    lying = bytearray(batch)
    pack_into(">i", lying, DELTA_AT, count - 1)
    pack_into(">i", lying, COUNT_AT, count)
    return _sealed(lying)


def _honest(random: Random, now: int) -> Forgery:
    count = random.randint(1, 5)
    return Forgery(_batch(count, now, random.choice([0, 1, 4])), count)


def _batch(count: int, now: int, codec: int = 0, **more: Any) -> bytes:
    return batches.build([(b"k", b"v")] * count, now, compression=codec, **more)


def _lying_count(random: Random, now: int) -> Forgery:
    codec = random.choice([0, 1, 2, 3, 4])
    count = random.choice([0, 2, 4, 1000, MOST, -1])
    return Forgery(_counts(_batch(3, now, codec), count), 0)


def _wrong_crc(random: Random, now: int) -> Forgery:
    damaged = bytearray(_batch(2, now))
    damaged[random.randrange(CRC_AT, len(damaged))] ^= 1 << random.randrange(8)
    return Forgery(bytes(damaged), 0)


def _control(random: Random, now: int) -> Forgery:
    """With a producer, as a marker has one, or without."""
    if random.random() < 0.5:
        return Forgery(_batch(1, now, control=True), 0)
    marker = batches.build_marker(
        commit=True, timestamp=now, producer_id=3, producer_epoch=0, coordinator_epoch=0
    )
    return Forgery(marker, 0)


def _far_ahead(random: Random, now: int) -> Forgery:
    return Forgery(_batch(random.choice([1, 300]), now + 10 * DAY_MS, random.choice([0, 4])), 0)


def _lying_time(_random: Random, now: int) -> Forgery:
    """Its header says that a record is of a time far ahead."""
    lying = bytearray(_batch(2, now))
    pack_into(">q", lying, MAX_TIME_AT, now + 10 * DAY_MS)
    return Forgery(_sealed(lying), 0)


def _elsewhere(random: Random, now: int) -> Forgery:
    return Forgery(_batch(1, now, base_offset=random.choice([1, 1 << 40])), 0)


def _foreign_id(random: Random, now: int) -> Forgery:
    """A client may have any id; others are given other ones."""
    producer_id = random.choice(FOREIGN_IDS)
    return Forgery(_batch(1, now, producer_id=producer_id, producer_epoch=0), 1)


def _no_transaction(_random: Random, now: int) -> Forgery:
    return Forgery(_batch(1, now, transactional=True), 0)


def _bomb(random: Random, now: int) -> Forgery:
    """A small batch of one large record, and any number in its header."""
    batch = batches.build([(b"k", bytes(BOMB_BYTES))], now, compression=4)
    return Forgery(_counts(batch, random.choice([2, 5, MOST])), 0)


KINDS: dict[str, Callable[[Random, int], Forgery]] = {
    "honest": _honest,
    "lying count": _lying_count,
    "wrong crc": _wrong_crc,
    "control batch": _control,
    "far ahead": _far_ahead,
    "lying time": _lying_time,
    "elsewhere": _elsewhere,
    "foreign id": _foreign_id,
    "no transaction": _no_transaction,
    "bomb": _bomb,
}


class Forger(Actor):
    """`may_count` is how many records its log may have at most."""

    kind: ClassVar[str] = "forger"

    def __init__(self, stage: ActorContext, number: int) -> None:
        super().__init__(stage, number)
        self.topic = f"forged-{number}"
        self.may_count = 0

    async def live(self) -> None:
        random = self.random
        place: PartitionId | None = None
        leader = 0
        kinds = list(KINDS)
        while not self.over:
            await self.pause(random.randrange(50, 4000))
            if place is None:
                place, leader = await self._make()
            elif random.random() < 0.25:
                await self._look(place, leader)
            elif not self.calm:
                await self._forge(place, leader, random.choice(kinds))
        self.caller.hang_up()

    async def _make(self) -> tuple[PartitionId | None, int]:
        wanted = CreatableTopic(
            name=self.topic, num_partitions=1, replication_factor=1, assignments=[], configs=[]
        )
        await self.ask(CreateTopicsRequest(topics=[wanted]), 7, patience_ms=20_000)
        found = (await topics_of(self) or {}).get(self.topic)
        if found is None or not found.leaders:
            return None, 0
        return (found.topic_id, 0), found.leaders[0]

    async def _forge(self, place: PartitionId, leader: int, kind: str) -> None:
        now = self.stage.wall_ms
        forgery = KINDS[kind](self.random, now)
        self.may_count += forgery.records
        data = TopicProduceData(
            topic_id=place[0],
            partition_data=[PartitionProduceData(index=0, records=forgery.batch)],
        )
        request = ProduceRequest(acks=-1, timeout_ms=5000, topic_data=[data])
        answer = await self.ask(request, 13, node=leader)
        if answer is not None:
            code = answer.responses[0].partition_responses[0].error_code
            self.tell(ForgedAnswered(kind, code, forgery.records))

    async def _look(self, place: PartitionId, leader: int) -> None:
        part = ListOffsetsPartition(partition_index=0, timestamp=LATEST)
        request = ListOffsetsRequest(
            replica_id=-1, topics=[ListOffsetsTopic(name=self.topic, partitions=[part])]
        )
        answer = await self.ask(request, 7, node=leader)
        if answer is not None and not answer.topics[0].partitions[0].error_code:
            end = answer.topics[0].partitions[0].offset
            self.tell(EndSeen(place, end, self.may_count))
