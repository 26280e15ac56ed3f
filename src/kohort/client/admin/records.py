# SPDX-License-Identifier: Apache-2.0
"""Records: the start of a partition moves forward, and what is before it is deleted (KIP-107)."""

from collections.abc import Mapping, Sequence

from kohort.client.admin.answers import Arrived
from kohort.client.admin.request_rounds import settle
from kohort.client.admin.topics import leaders, left_ms
from kohort.client.admin.views import Outcomes
from kohort.client.network.cluster import Cluster, Node
from kohort.errors import ApiError, api_error
from kohort.terms import TopicPartition, by_topic
from kohort.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)

HIGH_WATERMARK = -1  # in place of an offset


async def delete_records(
    cluster: Cluster,
    before: Mapping[TopicPartition, int],
    *,
    deadline: float,
    arrived: Arrived[TopicPartition, int] | None = None,
) -> Outcomes[TopicPartition, int]:
    """See `AdminClient.delete_records`."""

    async def ask(
        node: Node, keys: Sequence[TopicPartition], deadline: float
    ) -> dict[TopicPartition, int | ApiError]:
        request = DeleteRecordsRequest(
            topics=[
                DeleteRecordsTopic(
                    name=topic,
                    partitions=[
                        DeleteRecordsPartition(
                            partition_index=index, offset=before[TopicPartition(topic, index)]
                        )
                        for index in indexes
                    ],
                )
                for topic, indexes in by_topic(keys).items()
            ],
            timeout_ms=left_ms(deadline),
        )
        answer: DeleteRecordsResponse = await cluster.ask(node, request, deadline=deadline)
        return {
            TopicPartition(topic.name, partition.partition_index): (
                api_error(partition.error_code) if partition.error_code else partition.low_watermark
            )
            for topic in answer.topics
            for partition in topic.partitions
        }

    return Outcomes(
        await settle(
            cluster,
            before,
            leaders(cluster),
            ask,
            deadline=deadline,
            repeatable=False,
            arrived=arrived,
        )
    )
