# SPDX-License-Identifier: Apache-2.0
"""Questions that several tests ask of a broker."""

from kohort.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from kohort.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kohort.wire.messages.metadata import MetadataRequest, MetadataRequestTopic

TOPIC = 2  # the type of a resource


def list_offsets(desk, timestamp, *, version=11, partition=0, **more):
    wanted = ListOffsetsPartition(partition_index=partition, timestamp=timestamp, **more)
    topics = [ListOffsetsTopic(name="orders", partitions=[wanted])]
    (answer,) = desk.ask(ListOffsetsRequest(replica_id=-1, topics=topics), version).topics
    (one,) = answer.partitions
    return one


def describe(desk, kind, name, keys=None, *, node=0, **more):
    resource = DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=keys
    )
    request = DescribeConfigsRequest(resources=[resource], **more)
    (result,) = desk.ask(request, 4, node=node).results
    return result


def value(desk, key):
    (one,) = describe(desk, TOPIC, "orders", [key]).configs
    return one.value, one.config_source


def metadata(desk, *names, version=12, **more):
    topics = [MetadataRequestTopic(name=name) for name in names]
    return desk.ask(MetadataRequest(topics=topics, **more), version)
