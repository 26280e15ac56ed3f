# SPDX-License-Identifier: Apache-2.0
"""Elections of leaders, asked of the controller."""

import pytest
from tests.client.scripted import CLOSE, ScriptedCluster, asynchronous, in_turn

from kohort import ApiError, ErrorCode, UnsupportedVersionError
from kohort.wire.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)

A, B = ("t", 0), ("t", 1)


def elected(*codes):
    results = [
        PartitionResult(partition_id=index, error_code=code, error_message=None)
        for index, code in enumerate(codes)
    ]
    return ElectLeadersResponse(
        replica_election_results=[ReplicaElectionResult(topic="t", partition_result=results)]
    )


@asynchronous
async def test_partitions_are_elected_by_themselves():
    answers = {ElectLeadersRequest: lambda _: elected(0, ErrorCode.ELECTION_NOT_NEEDED)}
    async with ScriptedCluster(2, answers) as scripted, scripted.admin() as admin:
        outcomes = await admin.elect_leaders("unclean", [A, B, ("t", 2)])
        assert outcomes.succeeded == {A: None}
        assert outcomes.failed[B].code is ErrorCode.ELECTION_NOT_NEEDED
        assert "lacks an entry for t:2" in outcomes.failed["t", 2].message
        assert (await admin.elect_leaders("unclean", [])).all() == {}
    (sent,) = scripted.sent("ElectLeaders")
    assert (sent.node, sent.request.election_type) == (0, 1)
    assert [(each.topic, each.partitions) for each in sent.request.topic_partitions] == [
        ("t", [0, 1, 2])
    ]


@asynchronous
async def test_without_partitions_the_answer_says_which():
    denied = ElectLeadersResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    moved = ElectLeadersResponse(error_code=ErrorCode.NOT_CONTROLLER)
    answers = {ElectLeadersRequest: in_turn(moved, elected(0), denied, CLOSE)}
    async with ScriptedCluster(1, answers) as scripted, scripted.admin() as admin:
        assert (await admin.elect_leaders()).all() == {A: None}
        with pytest.raises(ApiError, match="not authorized for Alter on the cluster"):
            await admin.elect_leaders()
        with pytest.raises(ApiError, match="closed the connection"):
            await admin.elect_leaders()
    assert len(scripted.sent("ElectLeaders")) == 4
    assert scripted.sent("ElectLeaders")[0].request.topic_partitions is None


@asynchronous
async def test_an_old_broker_is_not_asked_for_what_it_would_take_for_another_election():
    answers = {ElectLeadersRequest: lambda _: elected(0)}
    async with ScriptedCluster(1, answers) as scripted, scripted.admin() as admin:
        scripted.offer("ElectLeaders", "0")
        with pytest.raises(UnsupportedVersionError, match=r"needs v1 \(KIP-460"):
            await admin.elect_leaders("unclean")
        assert (await admin.elect_leaders("preferred", [A])).all() == {A: None}
    assert len(scripted.sent("ElectLeaders")) == 1
