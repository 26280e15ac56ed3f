# SPDX-License-Identifier: Apache-2.0
"""A request of each API that reads by names, which may name a thing again and again; and a broker
that has all of it.
"""

from tests.server.desk import Desk
from tests.server.transactional import Producing

from kohort.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from kohort.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kohort.wire.messages.delete_groups import DeleteGroupsRequest
from kohort.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from kohort.wire.messages.describe_groups import DescribeGroupsRequest
from kohort.wire.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from kohort.wire.messages.describe_producers import DescribeProducersRequest, TopicRequest
from kohort.wire.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
)
from kohort.wire.messages.describe_topic_partitions import TopicRequest as PageRequest
from kohort.wire.messages.describe_transactions import DescribeTransactionsRequest
from kohort.wire.messages.find_coordinator import FindCoordinatorRequest
from kohort.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kohort.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from kohort.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kohort.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)


def fetched(groups=1, topics=1, partitions=1):
    def topic():
        return OffsetFetchRequestTopics(name="orders", partition_indexes=[0] * partitions)

    return OffsetFetchRequest(
        groups=[
            OffsetFetchRequestGroup(group_id="g", topics=[topic() for _ in range(topics)])
            for _ in range(groups)
        ]
    )


def fetched_by_one(topics=1, partitions=1):
    one = [
        OffsetFetchRequestTopic(name="orders", partition_indexes=[0] * partitions)
        for _ in range(topics)
    ]
    return OffsetFetchRequest(group_id="g", topics=one)


def offsets(times):
    places = [ListOffsetsPartition(partition_index=0, timestamp=-1) for _ in range(times)]
    return ListOffsetsRequest(topics=[ListOffsetsTopic(name="orders", partitions=places)])


READS = {
    "DescribeGroups": (5, lambda n: DescribeGroupsRequest(groups=["g"] * n)),
    "ConsumerGroupDescribe": (1, lambda n: ConsumerGroupDescribeRequest(group_ids=["m"] * n)),
    "DeleteGroups": (2, lambda n: DeleteGroupsRequest(groups_names=["none"] * n)),
    "OffsetFetch, groups": (9, lambda n: fetched(groups=n)),
    "OffsetFetch, all of groups": (
        9,
        lambda n: OffsetFetchRequest(
            groups=[OffsetFetchRequestGroup(group_id="g", topics=None)] * n
        ),
    ),
    "OffsetFetch, topics": (9, lambda n: fetched(topics=n)),
    "OffsetFetch, partitions": (9, lambda n: fetched(partitions=n)),
    "OffsetFetch, topics of one group": (7, lambda n: fetched_by_one(topics=n)),
    "OffsetFetch, partitions of one group": (7, lambda n: fetched_by_one(partitions=n)),
    "FindCoordinator": (6, lambda n: FindCoordinatorRequest(coordinator_keys=["g"] * n)),
    "DescribeTransactions": (0, lambda n: DescribeTransactionsRequest(transactional_ids=["x"] * n)),
    "DescribeProducers, topics": (
        0,
        lambda n: DescribeProducersRequest(
            topics=[TopicRequest(name="orders", partition_indexes=[0])] * n
        ),
    ),
    "DescribeProducers, partitions": (
        0,
        lambda n: DescribeProducersRequest(
            topics=[TopicRequest(name="orders", partition_indexes=[0] * n)]
        ),
    ),
    "DescribeConfigs": (
        4,
        lambda n: DescribeConfigsRequest(
            resources=[DescribeConfigsResource(resource_type=2, resource_name="orders")] * n
        ),
    ),
    "DescribeTopicPartitions": (
        0,
        lambda n: DescribeTopicPartitionsRequest(topics=[PageRequest(name="orders")] * n),
    ),
    "DescribeLogDirs, topics": (
        4,
        lambda n: DescribeLogDirsRequest(
            topics=[DescribableLogDirTopic(topic="orders", partitions=[0])] * n
        ),
    ),
    "DescribeLogDirs, partitions": (
        4,
        lambda n: DescribeLogDirsRequest(
            topics=[DescribableLogDirTopic(topic="orders", partitions=[0] * n)]
        ),
    ),
    "Metadata": (9, lambda n: MetadataRequest(topics=[MetadataRequestTopic(name="orders")] * n)),
    "ListOffsets": (7, offsets),
}


def asked_desk() -> Desk:
    desk = Desk()
    desk.create("orders")
    place = OffsetCommitRequestPartition(
        partition_index=0, committed_offset=1, committed_metadata="m" * 4000
    )
    topic = OffsetCommitRequestTopic(name="orders", partitions=[place])
    desk.ask(OffsetCommitRequest(group_id="g", topics=[topic]), 8)
    join = ConsumerGroupHeartbeatRequest(
        group_id="m",
        member_id="one",
        member_epoch=0,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=["orders"],
        topic_partitions=[],
    )
    assert desk.ask(join, 1).error_code == 0
    Producing(desk, "x").write(b"v")
    return desk
