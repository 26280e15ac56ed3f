# SPDX-License-Identifier: Apache-2.0
"""Transactional producers, two of which share an id, and what readers and tools see of them.

Records of a producer count up per partition and epoch, as far as it knows, so most of its batches
fit. Each end is waited for on both brokers (see `player`): Kafka writes its markers later.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.prove.differential.drawing import ADMIN, TOPICS, Draw
from tests.prove.differential.steps import BatchOf, IdOf, Memory, Name, Ref, Step

PRODUCERS = {"a": "x1", "b": "x1", "c": "x2"}
GROUP = "simple"
BY_ID_SINCE = 13
PRODUCE_SINCE = 3


@dataclass(frozen=True)
class HeldBy(Ref):
    """The producer id that a sender has, or its epoch."""

    actor: str
    epoch: bool = False
    plus: int = 0

    def on(self, memory: Memory) -> int:
        return memory.transaction_coordinators.get(self.actor, (-1, -1))[self.epoch] + self.plus


class DrawTransactions(Draw):
    """One request of a producer, a reader or a tool."""

    def producer(self) -> str:
        return self.one(*PRODUCERS)

    def id_of(self, actor: str) -> Any:
        return self.but(Name(PRODUCERS[actor]), Name("x2"), Name("x9"), odd=self.odd / 3)

    def held(self, actor: str) -> tuple[HeldBy, HeldBy]:
        """The id and epoch that a sender says it has."""
        other = self.one(*PRODUCERS)
        epoch = HeldBy(actor, epoch=True, plus=self.but(0, -1, 1, odd=self.odd / 2))
        return self.but(HeldBy(actor), HeldBy(other), odd=self.odd / 3), epoch

    def init(self) -> Step:
        return self.init_as(self.producer())

    def init_as(self, actor: str) -> Step:
        """Take the id that the actor uses."""
        version = self.version("InitProducerId")
        same = version >= 3 and self.chance(0.25)
        producer_id, epoch = self.held(actor)
        return self.step(
            actor,
            "InitProducerId",
            version,
            transactional_id=self.but(Name(PRODUCERS[actor]), "", odd=self.odd / 4),
            transaction_timeout_ms=self.but(600_000, 0, -1, 900_001, odd=self.odd / 3),
            producer_id=producer_id if same else -1,
            producer_epoch=epoch if same else -1,
        )

    def add_partitions(self) -> Step:
        actor = self.producer()
        producer_id, epoch = self.held(actor)
        version = self.random.randint(0, 3)
        topics = [
            {"name": Name(topic), "partitions": self.one([0], [0, 1], [self.but(1, 7)])}
            for topic in self.random.sample([*TOPICS, "t9"], self.but(1, 2))
            if topic != "t9" or self.chance(self.odd)
        ]
        return self.step(
            actor,
            "AddPartitionsToTxn",
            version,
            v3_and_below_transactional_id=self.id_of(actor),
            v3_and_below_producer_id=producer_id,
            v3_and_below_producer_epoch=epoch,
            v3_and_below_topics=topics,
        )

    def add_offsets(self) -> Step:
        actor = self.producer()
        producer_id, epoch = self.held(actor)
        return self.step(
            actor,
            "AddOffsetsToTxn",
            transactional_id=self.id_of(actor),
            producer_id=producer_id,
            producer_epoch=epoch,
            group_id=Name(GROUP),
        )

    def commit_offsets(self) -> Step:
        actor = self.producer()
        producer_id, epoch = self.held(actor)
        place = {
            "partition_index": self.but(0, 1, 7),
            "committed_offset": self.random.randrange(100),
            "committed_metadata": self.one("", "m", None),
        }
        topic = {"name": self.but(Name(self.one(*TOPICS)), Name("t9")), "partitions": [place]}
        return self.step(
            actor,
            "TxnOffsetCommit",
            transactional_id=self.id_of(actor),
            group_id=Name(GROUP),
            producer_id=producer_id,
            producer_epoch=epoch,
            topics=[topic],
        )

    def produce(self) -> Step:
        actor = self.producer()
        version = self.random.randint(PRODUCE_SINCE, self.one(11, 13))
        topic, index = self.one(*TOPICS), self.one(0, 1)
        count, ahead = self.one(1, 2, 3), self.but(0, 1, odd=self.odd / 2)
        data = [
            {
                "index": index,
                "records": BatchOf("transactional", (actor, topic, index, count, ahead)),
            }
        ]
        named = {"topic_id": IdOf(topic)} if version >= BY_ID_SINCE else {"name": Name(topic)}
        return self.step(
            actor,
            "Produce",
            version,
            transactional_id=self.id_of(actor),
            acks=-1,
            timeout_ms=30000,
            topic_data=[{**named, "partition_data": data}],
        )

    def end(self) -> Step:
        actor = self.producer()
        producer_id, epoch = self.held(actor)
        return self.step(
            actor,
            "EndTxn",
            transactional_id=self.id_of(actor),
            producer_id=producer_id,
            producer_epoch=epoch,
            committed=self.chance(0.6),
        )

    def markers(self) -> Step:
        """A tool ends what a producer has begun somewhere."""
        actor = self.producer()
        producer_id, epoch = self.held(actor)
        topic = {"name": Name(self.one(*TOPICS)), "partition_indexes": [self.but(0, 1, 7)]}
        marker = {
            "producer_id": producer_id,
            "producer_epoch": epoch,
            "transaction_result": self.chance(0.5),
            "topics": [topic],
            "coordinator_epoch": self.but(0, -1, 5, odd=0.2),
        }
        return self.step(ADMIN, "WriteTxnMarkers", markers=[marker])

    # --- what can be seen

    def fetch(self) -> Step:
        version = self.random.randint(4, 12)
        partitions = [
            {
                "partition": index,
                "fetch_offset": self.but(0, 1, 2),
                "partition_max_bytes": 1 << 20,
            }
            for index in (0, 1)
        ]
        return self.step(
            "r",
            "Fetch",
            version,
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=1 << 20,
            isolation_level=1,
            session_id=0,
            session_epoch=-1,
            topics=[{"topic": Name(self.one(*TOPICS)), "partitions": partitions}],
        )

    def list_offsets(self) -> Step:
        place = {"partition_index": self.one(0, 1), "timestamp": -1}
        topics = [{"name": Name(self.one(*TOPICS)), "partitions": [place]}]
        version = self.random.randint(2, 10)
        return self.step(
            "r", "ListOffsets", version, replica_id=-1, isolation_level=1, topics=topics
        )

    def offsets(self) -> Step:
        groups = [{"group_id": Name(GROUP), "topics": None}]
        version = self.random.randint(8, 9)
        return self.step(
            "r", "OffsetFetch", version, groups=groups, require_stable=self.chance(0.5)
        )

    def describe(self) -> Step:
        return self.step("r", "DescribeTransactions", transactional_ids=list(IDS))

    def list(self) -> Step:
        version = self.version("ListTransactions")
        states = self.one([], ["Ongoing"], ["Empty", "CompleteCommit"], ["Nap"])
        more = {"transactional_id_pattern": self.one(None, "", ".*x1", "(")} if version > 1 else {}
        return self.step(
            "r",
            "ListTransactions",
            version,
            state_filters=states,
            producer_id_filters=[],
            **more,
        )

    def producers(self) -> Step:
        topics = [
            {
                "name": self.but(Name(self.one(*TOPICS)), Name("t9")),
                "partition_indexes": [self.but(0, 1, 7)],
            }
        ]
        return self.step("r", "DescribeProducers", topics=topics)


IDS = (Name("x1"), Name("x2"), Name("x9"))
