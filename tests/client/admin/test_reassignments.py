# SPDX-License-Identifier: Apache-2.0
"""Reassignments as a cluster answers that moves something. Whole brokers move nothing in a test."""

import pytest
from tests.client.scripted import ScriptedCluster, asynchronous

from kohort import ApiError, ErrorCode, PartitionReassignment, TopicPartition
from kohort.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from kohort.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)

FIRST, SECOND = TopicPartition("a", 0), TopicPartition("b", 1)


def alteration(asked):
    return AlterPartitionReassignmentsResponse(
        error_message=None,
        responses=[
            ReassignableTopicResponse(
                name=topic.name,
                partitions=[
                    ReassignablePartitionResponse(
                        partition_index=each.partition_index,
                        error_code=0 if each.replicas else ErrorCode.NO_REASSIGNMENT_IN_PROGRESS,
                        error_message=None,
                    )
                    for each in topic.partitions
                ],
            )
            for topic in asked.request.topics
        ],
    )


@asynchronous
async def test_each_partition_has_its_own_outcome_and_the_rule_about_their_number_is_sent():
    async with (
        ScriptedCluster(1, {AlterPartitionReassignmentsRequest: alteration}) as scripted,
        scripted.admin() as admin,
    ):
        outcomes = await admin.alter_partition_reassignments(
            {SECOND: (2, 1), FIRST: None}, allow_replication_factor_change=False
        )
        await admin.alter_partition_reassignments({FIRST: [1]})
    assert list(outcomes) == [SECOND, FIRST]
    assert outcomes[SECOND] is None
    assert outcomes.failed[FIRST].code is ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    first, second = [each.request for each in scripted.sent("AlterPartitionReassignments")]
    assert [topic.partitions[0].replicas for topic in first.topics] == [[2, 1], None]
    assert not first.allow_replication_factor_change
    assert second.allow_replication_factor_change


@asynchronous
async def test_a_broker_that_cannot_keep_the_number_is_not_asked_to():
    """KIP-860."""
    async with (
        ScriptedCluster(1, {AlterPartitionReassignmentsRequest: alteration}) as scripted,
        scripted.admin() as admin,
    ):
        scripted.offer("AlterPartitionReassignments", "0")
        (await admin.alter_partition_reassignments({FIRST: [1]})).all()
        refused = await admin.alter_partition_reassignments(
            {FIRST: [2]}, allow_replication_factor_change=False
        )
    assert refused.failed[FIRST].code is ErrorCode.UNSUPPORTED_VERSION
    assert "allow_replication_factor_change=False" in refused.failed[FIRST].message
    assert len(scripted.sent("AlterPartitionReassignments")) == 1


@asynchronous
async def test_what_is_under_way_is_listed_by_partition():
    def answer(_asked):
        moving = OngoingPartitionReassignment(
            partition_index=1, replicas=[1, 2, 3], adding_replicas=[3], removing_replicas=[1]
        )
        still = OngoingPartitionReassignment(
            partition_index=0, replicas=[1], adding_replicas=[], removing_replicas=[]
        )
        return ListPartitionReassignmentsResponse(
            error_message=None,
            topics=[
                OngoingTopicReassignment(name="b", partitions=[moving]),
                OngoingTopicReassignment(name="a", partitions=[still]),
            ],
        )

    async with (
        ScriptedCluster(1, {ListPartitionReassignmentsRequest: answer}) as scripted,
        scripted.admin() as admin,
    ):
        found = await admin.list_partition_reassignments()
        await admin.list_partition_reassignments([SECOND])
    assert list(found.items()) == [
        (FIRST, PartitionReassignment((1,), (), ())),
        (SECOND, PartitionReassignment((1, 2, 3), (3,), (1,))),
    ]
    every, one = [each.request.topics for each in scripted.sent("ListPartitionReassignments")]
    assert every is None
    assert [(topic.name, topic.partition_indexes) for topic in one] == [("b", [1])]


@asynchronous
async def test_who_may_not_move_partitions_is_named():
    answers = {
        AlterPartitionReassignmentsRequest: lambda _: AlterPartitionReassignmentsResponse(
            error_code=31, error_message=None
        ),
        ListPartitionReassignmentsRequest: lambda _: ListPartitionReassignmentsResponse(
            error_code=31, error_message=None
        ),
    }
    async with ScriptedCluster(1, answers) as scripted, scripted.admin() as admin:
        moved = await admin.alter_partition_reassignments({FIRST: [1]})
        who = "User:ANONYMOUS is not authorized for"
        assert moved.failed[FIRST].message == f"{who} Alter on the cluster"
        with pytest.raises(ApiError, match=f"{who} Describe on the cluster"):
            await admin.list_partition_reassignments()


@asynchronous
async def test_what_is_no_list_of_brokers_is_refused_before_anything_is_asked():
    async with ScriptedCluster(1) as scripted, scripted.admin() as admin:
        with pytest.raises(TypeError, match="replicas of a:0 is '12', expected a list of ids"):
            await admin.alter_partition_reassignments({FIRST: "12"})
        with pytest.raises(ValueError, match="replicas of a:0 is -1, expected 0 to"):
            await admin.alter_partition_reassignments({FIRST: [-1]})
    assert scripted.asked == []
