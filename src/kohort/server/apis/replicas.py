# SPDX-License-Identifier: Apache-2.0
"""ElectLeaders, AlterPartitionReassignments, ListPartitionReassignments: as a cluster answers that
keeps one copy of everything, so that no partition is ever led by the wrong node, or on its way.
"""

from collections import Counter

from kohort.errors import ApiError, ErrorCode
from kohort.machines.effects import Call
from kohort.server.access import ALTER, CLUSTER, CLUSTER_NAME, DESCRIBE, check
from kohort.server.catalog import Topic
from kohort.server.node import Node
from kohort.terms import Millis
from kohort.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from kohort.wire.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from kohort.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)

_PREFERRED, _UNCLEAN = 0, 1


def elect_leaders(
    node: Node, call: Call[ElectLeadersRequest], _now: Millis
) -> ElectLeadersResponse:
    """No election is needed. Without partitions all are meant, and upstream then names all topics,
    and of their partitions only those that had one.
    """
    request = call.request
    check(node.cluster.may, call.client, ALTER, CLUSTER, CLUSTER_NAME)
    if request.election_type not in (_PREFERRED, _UNCLEAN):
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            f"election type is {request.election_type}, expected 0 (preferred) or 1 (unclean)",
        )
    if request.topic_partitions is None:
        every = [ReplicaElectionResult(topic=name) for name in node.cluster.catalog.by_name]
        return ElectLeadersResponse(replica_election_results=every)
    results = []
    for asked in request.topic_partitions:
        name = asked.topic
        topic = node.cluster.catalog.by_name.get(name)
        elected = [_elected(name, topic, index) for index in asked.partitions]
        results.append(ReplicaElectionResult(topic=name, partition_result=elected))
    return ElectLeadersResponse(replica_election_results=results)


def _elected(name: str, topic: Topic | None, index: int) -> PartitionResult:
    if topic is None:
        code, text = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {name}"
    elif not 0 <= index < topic.partitions:
        code, text = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "No such partition"
    else:
        code = ErrorCode.ELECTION_NOT_NEEDED
        text = "Leader election not needed for topic partition."
    return PartitionResult(partition_id=index, error_code=code, error_message=text)


def alter_partition_reassignments(
    node: Node, call: Call[AlterPartitionReassignmentsRequest], _now: Millis
) -> AlterPartitionReassignmentsResponse:
    """A partition stays where it is: asking for just that succeeds, anything else is refused."""
    request = call.request
    check(node.cluster.may, call.client, ALTER, CLUSTER, CLUSTER_NAME)
    responses = []
    for asked in request.topics:
        topic = node.cluster.catalog.by_name.get(asked.name)
        partitions = []
        for partition in asked.partitions:
            answer = ReassignablePartitionResponse(
                partition_index=partition.partition_index, error_message=None
            )
            try:
                _check_reassignment(node, asked.name, topic, partition)
            except ApiError as error:
                answer.error_code, answer.error_message = error.code, error.message
            partitions.append(answer)
        responses.append(ReassignableTopicResponse(name=asked.name, partitions=partitions))
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change,
        error_message=None,
        responses=responses,
    )


def _check_reassignment(
    node: Node, name: str, topic: Topic | None, partition: ReassignablePartition
) -> None:
    """Raises ApiError."""
    index, wanted = partition.partition_index, partition.replicas
    if topic is None:
        raise ApiError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {name}."
        )
    if not 0 <= index < topic.partitions:
        raise ApiError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find partition {index} of the topic."
        )
    if wanted is None:
        raise ApiError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
    placement = node.cluster.placement
    if not wanted or max(Counter(wanted).values()) > 1:
        raise ApiError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"The replicas of partition {index} are {wanted}, expected each node once.",
        )
    unknown = [replica for replica in wanted if replica not in placement.node_ids]
    if unknown:
        raise ApiError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"The manual partition assignment includes broker {unknown[0]}, but no such broker is "
            "registered.",
        )
    now = placement.replicas(topic, index)
    if wanted != now:
        raise ApiError(
            ErrorCode.POLICY_VIOLATION,
            f"partition {index} of {topic.name} is on {now}, and cannot move to {wanted}: one copy "
            "is stored, which all nodes share",
        )


def list_partition_reassignments(
    node: Node, call: Call[ListPartitionReassignmentsRequest], _now: Millis
) -> ListPartitionReassignmentsResponse:
    """None is under way."""
    check(node.cluster.may, call.client, DESCRIBE, CLUSTER, CLUSTER_NAME)
    return ListPartitionReassignmentsResponse(error_message=None)
