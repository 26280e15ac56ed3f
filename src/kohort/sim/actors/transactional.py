# SPDX-License-Identifier: Apache-2.0
"""A transactional producer, in both versions of its protocol (KIP-98, KIP-890), without decisions.

What gets no answer is asked again, and may be carried out twice, the second time much later. In the
first version only another epoch keeps that out of the next transaction: `in_doubt` says that it is
needed.
"""

from collections.abc import Awaitable, Callable
from typing import Any

from kohort.errors import ErrorCode
from kohort.sim.actor_context import ActorContext
from kohort.sim.actors.actor import GROUP, TRANSACTION, Actor
from kohort.sim.actors.topics import TopicInfo
from kohort.sim.facts import (
    PartitionEnrolled,
    PartitionId,
    ProducerIdGiven,
    ProducerServed,
    ProducerTaken,
    RecordKept,
    RecordSent,
    SentInTransaction,
)
from kohort.wire import batch as batches
from kohort.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from kohort.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from kohort.wire.messages.end_txn import EndTxnRequest
from kohort.wire.messages.init_producer_id import InitProducerIdRequest
from kohort.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kohort.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

FIRST, SECOND = 1, 2  # versions of transactions
TRIES = 12
TRIES_WHEN_OVER = 3
WAITS = frozenset({ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.UNSTABLE_OFFSET_COMMIT})
"""Nothing was done, and nothing is wrong."""
LATER = WAITS | {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.KAFKA_STORAGE_ERROR,
}


class TransactionalProducer(Actor):
    """Each method answers with the error code, or with None when there was none in time."""

    def __init__(self, stage: ActorContext, number: int, transactional_id: str) -> None:
        super().__init__(stage, number)
        self.transactional_id = transactional_id
        self.version = SECOND
        self.id = -1
        self.epoch = -1
        self.in_doubt = False
        self.sequences: dict[PartitionId, int] = {}

    async def init(self, timeout_ms: int, *, same: bool) -> int | None:
        """Take the transactional id; with `same`, as the producer that has it (KIP-360)."""
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id,
            transaction_timeout_ms=timeout_ms,
            producer_id=self.id if same else -1,
            producer_epoch=self.epoch if same else -1,
        )
        answer = await self._insist(lambda: self._ask_own(request, 5), _code)
        if answer is not None and not answer.error_code:
            self.in_doubt = False
            self._goes_on(answer.producer_id, answer.producer_epoch)
        return _code_or_none(answer)

    async def add_partitions(self, *places: tuple[str, int]) -> int | None:
        """Bring partitions into the transaction, by the names of their topics."""
        for name, index in places:
            self.tell(PartitionEnrolled(self.transactional_id, f"{name}-{index}"))
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[
                AddPartitionsToTxnTopic(name=name, partitions=[index]) for name, index in places
            ],
        )

        def code(answer: Any) -> int:
            codes = [
                result.partition_error_code
                for topic in answer.results_by_topic_v3_and_below
                for result in topic.results_by_partition
            ]
            return next((code for code in codes if code), 0)

        answer = await self._insist(lambda: self._ask_own(request, 3), code, "adding partitions")
        return None if answer is None else code(answer)

    async def produce(
        self, transaction: str, topic: TopicInfo, index: int, values: list[bytes]
    ) -> int | None:
        """One batch, sent until there is an answer. The first version names topics: only one that
        is never deleted is the one that was meant.
        """
        place = topic.topic_id, index
        for value in values:
            self.tell(RecordSent(place, value, once=True))
            self.tell(SentInTransaction(transaction, self.transactional_id, place, value))
        batch = batches.build(
            [(self.key(value), value) for value in values],
            self.stage.wall_ms,
            producer_id=self.id,
            producer_epoch=self.epoch,
            base_sequence=self.sequences.get(place, 0),
            transactional=True,
        )
        by_id = self.version == SECOND
        request = ProduceRequest(
            transactional_id=self.transactional_id,
            acks=-1,
            timeout_ms=5000,
            topic_data=[
                TopicProduceData(
                    name="" if by_id else topic.name,
                    topic_id=topic.topic_id if by_id else bytes(16),
                    partition_data=[PartitionProduceData(index=index, records=batch)],
                )
            ],
        )
        version = 13 if by_id else self.random.randint(9, 11)

        def part(answer: Any) -> Any:
            return answer.responses[0].partition_responses[0]

        sent = self.stage.loop.now
        answer = await self._insist(
            lambda: self.ask(request, version, node=topic.leaders[index]),
            lambda answer: _code(part(answer)),
            "produce",
        )
        if answer is None or part(answer).error_code:
            return None if answer is None else _code(part(answer))
        base = part(answer).base_offset
        for delta, value in enumerate(values):
            self.tell(RecordKept(place, base + delta, value, sent))
        self.sequences[place] = self.sequences.get(place, 0) + len(values)
        return 0

    def key(self, value: bytes) -> bytes:
        """The key of a record; its value does not matter to it."""
        del value
        return b"%d" % self.random.randrange(5)

    async def commit_offsets(
        self, group: str, topic: str, offsets: dict[int, int], metadata: str
    ) -> int | None:
        """Commit offsets of a group in the transaction, which must have the group in it already in
        the first version.
        """
        if self.version == FIRST:
            add = AddOffsetsToTxnRequest(
                transactional_id=self.transactional_id,
                producer_id=self.id,
                producer_epoch=self.epoch,
                group_id=group,
            )
            added = await self._insist(lambda: self._ask_own(add, 3), _code, "adding offsets")
            if added is None or added.error_code:
                return _code_or_none(added)
        request = TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            group_id=group,
            producer_id=self.id,
            producer_epoch=self.epoch,
            topics=[
                TxnOffsetCommitRequestTopic(
                    name=topic,
                    partitions=[
                        TxnOffsetCommitRequestPartition(
                            partition_index=index,
                            committed_offset=offset,
                            committed_metadata=metadata,
                        )
                        for index, offset in offsets.items()
                    ],
                )
            ],
        )
        version = 5 if self.version == SECOND else self.random.randint(3, 4)

        async def ask() -> Any:
            answer = await self.ask_coordinator(group, request, version)
            if answer is not None:
                self.coordinator_moved(group, code(answer), GROUP)
            return answer

        def code(answer: Any) -> int:
            return next(
                (
                    partition.error_code
                    for partition in answer.topics[0].partitions
                    if partition.error_code
                ),
                0,
            )

        answer = await self._insist(ask, code, "offsets")
        return None if answer is None else code(answer)

    async def end(self, *, commit: bool) -> int | None:
        """End the transaction. In the second version the producer gets another epoch."""
        request = EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.id,
            producer_epoch=self.epoch,
            committed=commit,
        )
        version = 5 if self.version == SECOND else 4
        answer = await self._insist(lambda: self._ask_own(request, version), _code, "end")
        if answer is not None and not answer.error_code and self.version == SECOND:
            self._goes_on(answer.producer_id, answer.producer_epoch)
        return _code_or_none(answer)

    def _goes_on(self, producer_id: int, epoch: int) -> None:
        self.id, self.epoch = producer_id, epoch
        self.sequences.clear()
        self.tell(ProducerIdGiven(producer_id, epoch, epoch > 0, self.transactional_id))
        self.tell(ProducerTaken(self.transactional_id, producer_id, epoch, self.stage.loop.now))

    async def _ask_own(self, request: Any, version: int) -> Any | None:
        """The answer of the coordinator of the transactional id."""
        answer = await self.ask_coordinator(self.transactional_id, request, version, of=TRANSACTION)
        if answer is not None and hasattr(answer, "error_code"):
            self.coordinator_moved(self.transactional_id, answer.error_code, TRANSACTION)
        return answer

    async def _insist(
        self,
        ask: Callable[[], Awaitable[Any | None]],
        code: Callable[[Any], int],
        what: str = "",
    ) -> Any | None:
        """Ask until the answer is final; None after so many tries. Tells that the producer was
        served, where `what` says with what.
        """
        for number in range(TRIES):
            sent, producer_id, epoch = self.stage.loop.now, self.id, self.epoch
            answer = await ask()
            if answer is None or code(answer) not in WAITS | {0}:
                self.in_doubt = True
            if answer is not None and code(answer) not in LATER:
                if what and not code(answer):
                    taken = self.transactional_id, producer_id, epoch
                    self.tell(ProducerServed(*taken, what, sent))
                return answer
            if self.over and number + 1 >= TRIES_WHEN_OVER:
                break
            await self.pause(self.random.randrange(50, 1500))
        return None


def _code(answer: Any) -> int:
    code: int = answer.error_code
    return code


def _code_or_none(answer: Any | None) -> int | None:
    return None if answer is None else _code(answer)
