# SPDX-License-Identifier: Apache-2.0
"""A transactional producer in a test of the server, and what readers see of its records."""

from typing import Any

from tests.server.desk import Desk

from kohort.wire import batch as batches
from kohort.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from kohort.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from kohort.wire.messages.describe_transactions import DescribeTransactionsRequest
from kohort.wire.messages.end_txn import EndTxnRequest
from kohort.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kohort.wire.messages.find_coordinator import FindCoordinatorRequest
from kohort.wire.messages.init_producer_id import InitProducerIdRequest
from kohort.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kohort.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from kohort.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kohort.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

FIRST, SECOND = 1, 2  # the version of transactions that a producer uses
PRODUCE = {FIRST: 9, SECOND: 12}
COMMIT = {FIRST: 3, SECOND: 5}
END = {FIRST: 4, SECOND: 5}


class Producing:
    """A producer of one transactional id. `second` ones enrol partitions by writing to them."""

    def __init__(self, desk: Desk, name: str = "t", *, kind: int = SECOND, node: int = 0) -> None:
        self.desk, self.name, self.kind = desk, name, kind
        asked = FindCoordinatorRequest(key_type=1, coordinator_keys=[name])
        (found,) = desk.ask(asked, 4, node=node).coordinators
        assert found.error_code == 0, found.error_message
        self.node = found.node_id - desk.config.node_id
        self.sequences: dict[tuple[str, int], int] = {}
        self.id = self.epoch = -1
        self.init()

    def init(self, timeout: int = 60_000, **more: Any) -> int:
        """Take the id; the code."""
        request = InitProducerIdRequest(
            transactional_id=self.name, transaction_timeout_ms=timeout, **more
        )
        answer = self.desk.ask(request, 4, node=self.node)
        if not answer.error_code:
            self.went_on(answer.producer_id, answer.producer_epoch)
        code: int = answer.error_code
        return code

    def went_on(self, producer_id: int, epoch: int) -> None:
        if (producer_id, epoch) != (self.id, self.epoch):
            self.sequences.clear()
        self.id, self.epoch = producer_id, epoch

    def add(self, *places: tuple[str, int], version: int = 3) -> list[int]:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.name,
            v3_and_below_producer_id=self.id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[
                AddPartitionsToTxnTopic(name=topic, partitions=[index]) for topic, index in places
            ],
        )
        answer = self.desk.ask(request, version, node=self.node)
        return [
            topic.results_by_partition[0].partition_error_code
            for topic in answer.results_by_topic_v3_and_below
        ]

    def batch(self, topic: str, partition: int, *values: bytes) -> bytes:
        sequence = self.sequences.get((topic, partition), 0)
        return batches.build(
            [(b"k", value) for value in values],
            self.desk.now,
            producer_id=self.id,
            producer_epoch=self.epoch,
            base_sequence=sequence,
            transactional=True,
        )

    def send(
        self, *values: bytes, topic: str = "orders", partition: int = 0, version: int | None = None
    ) -> Any:
        """Write; the partition's answer."""
        data = PartitionProduceData(index=partition, records=self.batch(topic, partition, *values))
        request = ProduceRequest(
            transactional_id=self.name,
            acks=-1,
            timeout_ms=1000,
            topic_data=[TopicProduceData(name=topic, partition_data=[data])],
        )
        answer = self.desk.ask(request, version or PRODUCE[self.kind])
        one = answer.responses[0].partition_responses[0]
        if not one.error_code:
            place = topic, partition
            self.sequences[place] = self.sequences.get(place, 0) + len(values)
        return one

    def write(self, *values: bytes, topic: str = "orders", partition: int = 0) -> None:
        """Write, as a producer does: the first version enrols the partition before."""
        if self.kind == FIRST:
            assert self.add((topic, partition)) == [0]
        answer = self.send(*values, topic=topic, partition=partition)
        assert answer.error_code == 0, answer

    def add_offsets(self, group: str = "g") -> int:
        request = AddOffsetsToTxnRequest(
            transactional_id=self.name,
            producer_id=self.id,
            producer_epoch=self.epoch,
            group_id=group,
        )
        code: int = self.desk.ask(request, 3, node=self.node).error_code
        return code

    def commit_offsets(
        self,
        offset: int,
        *,
        group: str = "g",
        topic: str = "orders",
        version: int | None = None,
        partition: int = 0,
        node: int = 0,
        **more: Any,
    ) -> int:
        """Commit an offset of a group with the transaction; the partition's code."""
        if self.kind == FIRST and version is None:
            assert self.add_offsets(group) == 0
        one = TxnOffsetCommitRequestPartition(
            partition_index=partition, committed_offset=offset, committed_metadata=""
        )
        request = TxnOffsetCommitRequest(
            transactional_id=self.name,
            group_id=group,
            producer_id=self.id,
            producer_epoch=self.epoch,
            topics=[TxnOffsetCommitRequestTopic(name=topic, partitions=[one])],
            **more,
        )
        answer = self.desk.ask(
            request, COMMIT[self.kind] if version is None else version, node=node
        )
        code: int = answer.topics[0].partitions[0].error_code
        return code

    def end(self, *, commit: bool = True, version: int | None = None) -> int:
        request = EndTxnRequest(
            transactional_id=self.name,
            producer_id=self.id,
            producer_epoch=self.epoch,
            committed=commit,
        )
        answer = self.desk.ask(request, version or END[self.kind], node=self.node)
        if not answer.error_code and answer.producer_id >= 0:
            self.went_on(answer.producer_id, answer.producer_epoch)
        code: int = answer.error_code
        return code

    def state(self) -> str:
        request = DescribeTransactionsRequest(transactional_ids=[self.name])
        (one,) = self.desk.ask(request, 0, node=self.node).transaction_states
        found: str = one.transaction_state
        return found


def fetched(
    desk: Desk,
    topic: str = "orders",
    partition: int = 0,
    *,
    offset: int = 0,
    committed: bool = True,
    most: int = 1 << 20,
) -> Any:
    wanted = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=most)
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        isolation_level=int(committed),
        session_epoch=-1,
        topics=[FetchTopic(topic=topic, partitions=[wanted])],
    )
    return desk.ask(request, 12).responses[0].partitions[0]


def seen(desk: Desk, topic: str = "orders", partition: int = 0) -> list[bytes]:
    """The values that a reader of committed records delivers: as clients filter them."""
    values = []
    offset = 0
    while True:
        answer = fetched(desk, topic, partition, offset=offset)
        assert answer.error_code == 0
        if not answer.records:
            return values
        aborted = sorted(answer.aborted_transactions, key=lambda one: one.first_offset)
        open_aborted: set[int] = set()
        for position, header in batches.walk(answer.records):
            while aborted and aborted[0].first_offset <= header.last_offset:
                open_aborted.add(aborted.pop(0).producer_id)
            data = answer.records[position : position + header.length]
            if header.is_control:
                for _, _, key, _ in batches.entries(data):
                    if not batches.marker_commits(key):
                        open_aborted.discard(header.producer_id)
            elif not (header.is_transactional and header.producer_id in open_aborted):
                values += [value for _, _, _, value in batches.entries(data)]
            offset = header.last_offset + 1


def end_of(desk: Desk, *, committed: bool, topic: str = "orders") -> int:
    request = ListOffsetsRequest(
        replica_id=-1,
        isolation_level=int(committed),
        topics=[
            ListOffsetsTopic(
                name=topic, partitions=[ListOffsetsPartition(partition_index=0, timestamp=-1)]
            )
        ],
    )
    offset: int = desk.ask(request, 7).topics[0].partitions[0].offset
    return offset


def committed(
    desk: Desk, group: str = "g", topic: str = "orders", *, stable: bool = True, node: int = 0
) -> Any:
    """The committed offset of a group, or the code of the refusal as its negative."""
    wanted = OffsetFetchRequestGroup(
        group_id=group, topics=[OffsetFetchRequestTopics(name=topic, partition_indexes=[0])]
    )
    request = OffsetFetchRequest(groups=[wanted], require_stable=stable)
    one = desk.ask(request, 9, node=node).groups[0].topics[0].partitions[0]
    return -one.error_code or one.committed_offset
