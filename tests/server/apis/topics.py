# SPDX-License-Identifier: Apache-2.0
"""Topics made, grown and deleted by requests, as several tests ask for it."""

from kohort.wire.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from kohort.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kohort.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState


def topic(name="orders", partitions=1, replicas=1, assignments=(), **configs):
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replicas,
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=list(nodes))
            for index, nodes in assignments
        ],
        configs=[
            CreatableTopicConfig(name=key.replace("_", "."), value=value)
            for key, value in configs.items()
        ],
    )


def named(name):
    return DeleteTopicState(name=name)


def create(desk, *topics, **more):
    answers = desk.ask(CreateTopicsRequest(topics=list(topics), **more), 7).topics
    return [one.error_code for one in answers]


def delete(desk, *topics, version=6):
    answers = desk.ask(DeleteTopicsRequest(topics=list(topics), timeout_ms=1), version).responses
    return [one.error_code for one in answers]


def grow(desk, name, count, assignments=None, **more):
    wanted = CreatePartitionsTopic(
        name=name,
        count=count,
        assignments=None
        if assignments is None
        else [CreatePartitionsAssignment(broker_ids=one) for one in assignments],
    )
    request = CreatePartitionsRequest(
        topics=[wanted], **{"timeout_ms": 1, "validate_only": False, **more}
    )
    return desk.ask(request, 3).results[0].error_code
