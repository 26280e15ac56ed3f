# SPDX-License-Identifier: Apache-2.0
"""Leaders that play a part, for a producer of short pauses."""

from collections.abc import Callable
from typing import Any

from tests.client.scripted import Answer, ReceivedRequest, ScriptedCluster

from kohort.client.producer import Producer
from kohort.errors import ErrorCode
from kohort.wire.batch import header_at, records
from kohort.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kohort.wire.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)

ID = 77


def identified(_asked: ReceivedRequest) -> InitProducerIdResponse:
    return InitProducerIdResponse(producer_id=ID, producer_epoch=0)


def taken(asked: ReceivedRequest, offset: int = 100, append_time: int = -1) -> ProduceResponse:
    return answered(asked, lambda _: (0, offset), append_time)


def refused(code: ErrorCode, message: str | None = None, **records: str) -> Answer:
    """The same error for every partition; `records` are messages by `r` and an index."""
    some = [
        BatchIndexAndErrorMessage(batch_index=int(name[1:]), batch_index_error_message=text)
        for name, text in records.items()
    ]

    def answer(asked: ReceivedRequest) -> ProduceResponse:
        response = answered(asked, lambda _: (code, -1))
        for topic in response.responses:
            for one in topic.partition_responses:
                one.error_message, one.record_errors = message, some
        return response

    return answer


def answered(
    asked: ReceivedRequest, judge: Callable[[bytes], tuple[int, int]], append_time: int = -1
) -> ProduceResponse:
    return ProduceResponse(
        responses=[
            TopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=[
                    _one(one.index, *judge(one.records), append_time)
                    for one in topic.partition_data
                ],
            )
            for topic in asked.request.topic_data
        ]
    )


def _one(index: int, code: int, offset: int, time: int) -> PartitionProduceResponse:
    return PartitionProduceResponse(
        index=index, error_code=code, base_offset=offset, log_append_time_ms=time
    )


def sequences(asked: list[ReceivedRequest]) -> list[tuple[int, int, list[bytes | None]]]:
    """Epoch, sequence and values of each batch that was sent."""
    found = []
    for one in asked:
        for topic in one.request.topic_data:
            for data in topic.partition_data:
                header = header_at(data.records)
                values = [record.value for record in records(data.records, 0)]
                found.append((header.producer_epoch, header.base_sequence, values))
    return found


def scripted(produce: Answer, nodes: int = 1, **topics: list[int]) -> ScriptedCluster:
    world = ScriptedCluster(nodes, {ProduceRequest: produce, InitProducerIdRequest: identified})
    world.topics = topics or {"t": [0]}
    return world


def producer(world: Any, **settings: Any) -> Producer:
    quick = {"retry_backoff_ms": 1, "retry_backoff_max_ms": 2, "linger_ms": 0}
    return Producer(bootstrap_servers=world.bootstrap, **{**quick, **settings})
