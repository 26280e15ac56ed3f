# SPDX-License-Identifier: Apache-2.0
"""Offsets set and taken away from outside: what is asked again, and what never is."""

import pytest
from tests.client.scripted import CLOSE, ScriptedCluster, asynchronous, in_turn

from kohort.client.admin import CommittedOffset, TopicPartition
from kohort.errors import ErrorCode
from kohort.wire.messages import offset_commit, offset_delete, offset_fetch
from kohort.wire.messages.offset_commit import OffsetCommitRequest
from kohort.wire.messages.offset_delete import OffsetDeleteRequest
from kohort.wire.messages.offset_fetch import OffsetFetchRequest

ZERO, ONE = TopicPartition("t", 0), TopicPartition("t", 1)


def committed(codes=None):
    """A coordinator that commits, or answers these codes by the index of a partition."""

    def answer(asked):
        assert (asked.request.generation_id_or_member_epoch, asked.request.member_id) == (-1, "")
        topics = [
            offset_commit.OffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    offset_commit.OffsetCommitResponsePartition(
                        partition_index=one.partition_index,
                        error_code=(codes or {}).get(one.partition_index, 0),
                    )
                    for one in topic.partitions
                ],
            )
            for topic in asked.request.topics
        ]
        return offset_commit.OffsetCommitResponse(topics=topics)

    return answer


def asked_for(asked):
    return [one.partition_index for topic in asked.request.topics for one in topic.partitions]


@asynchronous
async def test_what_the_coordinator_has_not_done_yet_is_asked_again_and_nothing_else():
    answers = {OffsetCommitRequest: in_turn(committed({1: 14}), committed({1: 16}), committed())}
    async with ScriptedCluster(2, answers) as scripted, scripted.admin() as admin:
        scripted.coordinators = {"g": 1}
        result = await admin.alter_group_offsets("g", {ZERO: 5, ONE: 6})
    assert result.all() == {ZERO: None, ONE: None}
    assert [asked_for(one) for one in scripted.sent("OffsetCommit")] == [[0, 1], [1], [1]]
    assert {one.node for one in scripted.sent("OffsetCommit")} == {1}
    assert len(scripted.sent("FindCoordinator")) == 2  # the second time it had moved


@asynchronous
async def test_a_request_that_may_have_arrived_is_not_sent_again():
    answers = {OffsetCommitRequest: lambda _: CLOSE, OffsetDeleteRequest: lambda _: CLOSE}
    async with ScriptedCluster(1, answers) as scripted, scripted.admin() as admin:
        altered = await admin.alter_group_offsets("g", {ZERO: 5})
        deleted = await admin.delete_group_offsets("g", [ZERO])
    assert altered.failed[ZERO].code is ErrorCode.NETWORK_EXCEPTION
    assert deleted.failed[ZERO].code is ErrorCode.NETWORK_EXCEPTION
    assert scripted.names().count("OffsetCommit") == scripted.names().count("OffsetDelete") == 1


@asynchronous
async def test_offsets_go_out_as_they_are_given():
    async with (
        ScriptedCluster(1, {OffsetCommitRequest: committed()}) as scripted,
        scripted.admin() as admin,
    ):
        await admin.alter_group_offsets(
            "g", {ZERO: 5, ("u", 3): CommittedOffset(2**63 - 1, 4, "m")}
        )
    (asked,) = scripted.sent("OffsetCommit")
    assert asked.version == 9  # later ones name topics by id
    (first,), (second,) = (topic.partitions for topic in asked.request.topics)
    assert (first.committed_offset, first.committed_leader_epoch) == (5, -1)
    assert first.committed_metadata == ""
    assert (second.committed_offset, second.committed_leader_epoch) == (2**63 - 1, 4)
    assert second.committed_metadata == "m"


@asynchronous
async def test_a_leader_epoch_is_never_dropped_in_silence():
    answers = {OffsetCommitRequest: committed()}
    async with ScriptedCluster(1, answers) as scripted, scripted.admin() as admin:
        scripted.offer("OffsetCommit", "2-5")
        refused = await admin.alter_group_offsets("g", {ZERO: CommittedOffset(5, 4)})
        assert scripted.sent("OffsetCommit") == []
        assert (await admin.alter_group_offsets("g", {ZERO: 5})).all() == {ZERO: None}
    assert "offers OffsetCommit v2-5; a leader epoch of an offset needs v6 (KIP-320" in str(
        refused.failed[ZERO]
    )


@pytest.mark.parametrize(
    ("code", "told"),
    [
        (29, "User:ANONYMOUS is not authorized for topic t"),
        (30, "User:ANONYMOUS is not authorized for group g"),
        (25, "group g has members, expected none: stop its consumers first"),
        (3, "partition t:0 does not exist"),
        (69, "no group g that has committed offsets"),
        (12, ""),
    ],
)
@asynchronous
async def test_a_refusal_names_what_was_refused(code, told):
    answers = {OffsetCommitRequest: committed({0: code})}
    async with ScriptedCluster(1, answers) as scripted, scripted.admin() as admin:
        result = await admin.alter_group_offsets("g", {ZERO: 5, ONE: 6})
    assert result.succeeded == {ONE: None}
    assert (result.failed[ZERO].code, result.failed[ZERO].message) == (ErrorCode(code), told)


@asynchronous
async def test_the_refusal_of_a_group_is_that_of_each_partition():
    answers = {
        OffsetDeleteRequest: lambda _: offset_delete.OffsetDeleteResponse(error_code=68),
    }
    async with ScriptedCluster(1, answers) as scripted, scripted.admin() as admin:
        result = await admin.delete_group_offsets("g", [ZERO, ONE])
    assert [error.message for error in result.failed.values()] == [
        "group g has members, expected none: stop its consumers first"
    ] * 2


@asynchronous
async def test_a_topic_stands_for_its_partitions_with_an_offset():
    """Those of other topics are not touched."""

    def fetched(asked):
        (group,) = asked.request.groups
        assert group.topics is None
        topics = [
            offset_fetch.OffsetFetchResponseTopics(
                name=name,
                partitions=[
                    offset_fetch.OffsetFetchResponsePartitions(
                        partition_index=index, committed_offset=1, metadata=""
                    )
                    for index in indexes
                ],
            )
            for name, indexes in {"t": [1, 0], "u": [0]}.items()
        ]
        return offset_fetch.OffsetFetchResponse(
            groups=[offset_fetch.OffsetFetchResponseGroup(group_id="g", topics=topics)]
        )

    def deleted(asked):
        topics = [
            offset_delete.OffsetDeleteResponseTopic(
                name=topic.name,
                partitions=[
                    offset_delete.OffsetDeleteResponsePartition(partition_index=index)
                    for index in [one.partition_index for one in topic.partitions]
                ],
            )
            for topic in asked.request.topics
        ]
        return offset_delete.OffsetDeleteResponse(topics=topics)

    answers = {OffsetFetchRequest: fetched, OffsetDeleteRequest: deleted}
    async with ScriptedCluster(1, answers) as scripted, scripted.admin() as admin:
        result = await admin.delete_group_offsets("g", "t")
    assert result.all() == {ZERO: None, ONE: None}
    (asked,) = scripted.sent("OffsetDelete")
    assert [topic.name for topic in asked.request.topics] == ["t"]
