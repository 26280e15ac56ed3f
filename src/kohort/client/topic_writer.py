# SPDX-License-Identifier: Apache-2.0
"""Produce: append records to the partitions of a topic, each partition's in one batch.

Requests carry no producer id, so a broker cannot recognise a second copy. A request that may have
arrived is therefore not sent again: nothing is written twice, and a lost answer stays unknown.
"""

import asyncio
from collections.abc import Mapping, Sequence

from kohort.client.accumulator.errors import produce_error
from kohort.client.admin.request_rounds import settle
from kohort.client.admin.topics import leaders
from kohort.client.admin.views import Outcomes
from kohort.client.network.cluster import Cluster, Node
from kohort.client.network.connection_errors import ConnectionFailedError
from kohort.errors import ApiError
from kohort.terms import TopicPartition
from kohort.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)

BY_NAME = 12  # the last version that names topics
_OF_ALL = -1  # acks: when all in-sync replicas have it


async def append(
    cluster: Cluster, batches: Mapping[TopicPartition, bytes], deadline: float
) -> Outcomes[TopicPartition, int]:
    """Append a batch to each partition, one request per leader."""

    async def ask(
        node: Node, keys: Sequence[TopicPartition], deadline: float
    ) -> dict[TopicPartition, int | ApiError]:
        left_ms = int((deadline - asyncio.get_running_loop().time()) * 1000)
        topics: dict[str, list[PartitionProduceData]] = {}
        for key in keys:
            data = PartitionProduceData(index=key.partition, records=batches[key])
            topics.setdefault(key.topic, []).append(data)
        request = ProduceRequest(
            acks=_OF_ALL,
            timeout_ms=max(1, left_ms),
            topic_data=[
                TopicProduceData(name=name, partition_data=data) for name, data in topics.items()
            ],
        )
        answer: ProduceResponse = await cluster.ask(
            node, request, deadline=deadline, at_most=BY_NAME
        )
        return {
            TopicPartition(topic.name, result.index): _error_of(result)
            if result.error_code
            else result.base_offset
            for topic in answer.responses
            for result in topic.partition_responses
        }

    return Outcomes(
        await settle(cluster, batches, leaders(cluster), ask, deadline=deadline, repeatable=False)
    )


def _error_of(response: PartitionProduceResponse) -> ApiError:
    """A leader that went away after it had appended says where: its batch is not sent again."""
    error = produce_error(response)
    if response.base_offset < 0:
        return error
    why = f"{error}; it was appended at offset {response.base_offset}, and may be there"
    return ConnectionFailedError(why, sent=True)
