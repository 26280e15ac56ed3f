# SPDX-License-Identifier: Apache-2.0
"""What explanations ask of a sequence: when its group has gone over, who is to send heartbeats."""

from __future__ import annotations

import zipfile

import pytest
from tests.peers.kafka import class_path, unavailable
from tests.prove.differential import impatience
from tests.prove.differential.calming import Beating, members
from tests.prove.differential.comparing import alike
from tests.prove.differential.conversions import DOWN, UP, conversions
from tests.prove.differential.drawing_migrations import Consumes, JoiningId, SharedOut
from tests.prove.differential.player import StepOutcome
from tests.prove.differential.steps import Memory, Step, learn, on

from kohort.records.consumer_protocol import decode_assignment, decode_subscription


def told(api: str, member: str, error: int = 0, **more) -> StepOutcome:
    """One request of a member of the group, and its answer, alike on both brokers."""
    request = {"group_id": "s1-g1", "member_id": member, **more}
    answer = {"error_code": error, "member_id": member}
    if api == "LeaveGroup":
        answer = {"error_code": 0, "members": [{"member_id": member, "error_code": error}]}
    step = Step(member[-1], api, 1, {})
    return StepOutcome(step, requests=[request] * 2, answers=[answer] * 2)


def beat(member: str, epoch: int, error: int = 0, **more) -> StepOutcome:
    return told("ConsumerGroupHeartbeat", member, error, member_epoch=epoch, **more)


@pytest.mark.parametrize(
    ("steps", "ways"),
    [
        ([told("JoinGroup", "m-a"), beat("m-b", 0)], [(UP, 1)]),
        ([told("JoinGroup", "m-a"), beat("m-a", 0)], [(UP, 1)]),
        ([beat("m-b", 0), told("JoinGroup", "m-a")], []),
        ([beat("m-b", 0), told("JoinGroup", "m-a"), beat("m-b", -1)], [(DOWN, 2)]),
        ([beat("m-b", 0), told("JoinGroup", "m-a"), told("LeaveGroup", "m-b")], [(DOWN, 2)]),
        ([beat("m-b", 0), told("JoinGroup", "m-a"), told("LeaveGroup", "m-b", 25)], []),
        ([beat("m-b", 0), beat("m-b", -1)], []),
        ([told("JoinGroup", "m-a"), beat("m-b", 0, 69)], []),
        (
            [
                beat("m-b", 0, instance_id="i"),
                told("JoinGroup", "m-a", group_instance_id="i"),
                beat("m-c", 0, instance_id="i"),
            ],
            [(DOWN, 1), (UP, 2)],
        ),
    ],
)
def test_a_group_goes_over_when_its_first_consumer_comes_or_its_last_one_goes(steps, ways):
    assert [(one.way, one.at) for one in conversions(steps)] == ways


def test_a_member_that_goes_over_under_its_own_id_is_known():
    steps = [beat("m-b", 0), told("JoinGroup", "m-a"), told("JoinGroup", "m-b")]
    assert [one.own_id for one in conversions(steps)] == [True]


def test_heartbeats_are_sent_by_who_has_joined_and_not_left():
    steps = [beat("m-a", 0), beat("m-b", 0, instance_id="i"), beat("m-c", 0, 25), beat("m-a", -1)]
    assert members(steps, 0) == [Beating("b", "s1-g1", "i")]


def test_a_classic_client_tells_what_it_was_given_and_asks_for_an_id_after_a_refusal():
    memory = Memory("s1-")
    step = Step("a", "SyncGroup", 5, {})
    assert on(JoiningId("a"), memory) == "m-a"
    learn(memory, Step("a", "JoinGroup", 9, {}), {"member_id": "m-a"}, {"error_code": 25})
    assert on(JoiningId("a"), memory) == ""
    assert on(JoiningId("a", asks=False), memory) == "m-a"
    memory.of("a").leads, memory.of("a").members = True, ["m-a", "m-b"]
    memory.of("a").says = [on(Consumes("a", ("t1", "t2"), 1), memory)] * 2
    mine, other = (one["assignment"] for one in on(SharedOut("a"), memory))
    learn(memory, step, {}, {"error_code": 0, "assignment": mine})
    said = decode_subscription(on(Consumes("a", ("t1",), 1), memory))
    given = decode_assignment(mine).assigned_partitions
    assert {one.topic: one.partitions for one in said.owned_partitions} == {
        one.topic: one.partitions for one in given
    }
    assert given != decode_assignment(other).assigned_partitions


def test_an_id_that_a_consumer_group_makes_up_is_not_kept_for_the_next_join():
    memory = Memory("s1-")
    answer = {"error_code": 79, "member_id": "A" * 22}
    learn(memory, Step("a", "JoinGroup", 9, {}), {"member_id": ""}, answer)
    assert on(JoiningId("a"), memory) == "m-a"
    assert memory.labels["A" * 22] == "anonymous.1"


def test_epochs_that_are_relative_count_from_that_of_the_group():
    step = Step("admin", "ConsumerGroupDescribe", 1, {})
    found = []
    for epoch in (3, 5):
        member = {"member_id": "m-a", "member_epoch": epoch}
        group = {"group_epoch": epoch, "assignment_epoch": epoch - 1, "members": [member]}
        found.append(alike(step, {"groups": [group]}, Memory("s1-"), relative=True))
    assert found[0] == found[1]
    assert found[0]["groups"][0]["assignment_epoch"] == -1


@pytest.mark.java
def test_one_constant_is_all_that_makes_kafka_impatient(tmp_path):
    if reason := unavailable():
        pytest.skip(reason)
    impatience.put_into(tmp_path)
    jar = next(one for one in class_path().split(":") if "kafka-group-coordinator-4" in one)
    with zipfile.ZipFile(jar) as content:
        before = content.read(impatience.CLASS)
    after = (tmp_path / impatience.CLASS).read_bytes()
    assert len(after) == len(before)
    changed = [
        at for at, (one, other) in enumerate(zip(before, after, strict=True)) if one != other
    ]
    assert changed
    assert changed[-1] - changed[0] < 8
