# SPDX-License-Identifier: Apache-2.0
"""The pure parts: what is made alike, and that what differs is told."""

import asyncio

import pytest
from tests.prove.differential.comparing import Difference, alike, differences
from tests.prove.differential.known_differences import EXPLANATIONS, Occasion, explanation_of
from tests.prove.differential.shrinking import shortest
from tests.prove.differential.steps import (
    NO_ID,
    UNKNOWN_ID,
    EpochOf,
    GenerationOf,
    IdOf,
    MemberOf,
    Memory,
    Name,
    OwnedBy,
    Step,
    learn,
    learn_topics,
    on,
)

from kohort.wire.batch import build

UUID = "0123456789abcdef0123456789abcdef"[:8] + "-0123-4567-89ab-0123456789ab"
HEARTBEAT = Step("a", "ConsumerGroupHeartbeat", 1, {})


def memory(topic_id: bytes = b"1" * 16) -> Memory:
    made = Memory("s1-", started_ms=1000)
    learn_topics(made, {"t1": topic_id})
    return made


def joined(made: Memory, member_id: str, **more) -> dict:
    answer = {
        "error_code": 0,
        "member_id": member_id,
        "generation_id": 3,
        "protocol_name": "range",
        "leader": member_id,
        "members": [{"member_id": member_id, "metadata": b""}],
        **more,
    }
    learn(made, Step("a", "JoinGroup", 9, {}), {"member_id": ""}, answer)
    return answer


def test_ids_that_brokers_make_are_alike():
    """A member id, a topic id: each broker has its own, and both are called the same."""
    sides = [memory(b"1" * 16), memory(b"2" * 16)]
    step = Step("a", "JoinGroup", 9, {})
    answers = [
        alike(step, joined(made, f"c-a-{text}"), made)
        for made, text in zip(sides, (UUID, UUID[::-1]), strict=True)
    ]
    assert answers[0]["leader"] == answers[0]["member_id"] == "a.1"
    assert not list(differences(*answers))
    described = [
        alike(Step("a", "Metadata", 12, {}), {"topics": [{"name": "s1-t1", "topic_id": one}]}, made)
        for made, one in zip(sides, (b"1" * 16, b"2" * 16), strict=True)
    ]
    assert described[0]["topics"][0]["topic_id"] == "t1"
    assert not list(differences(*described))


def test_an_id_that_nobody_was_told_yet_is_called_by_its_client():
    answer = {"groups": [{"members": [{"member_id": f"c-b-{UUID}"}]}]}
    shown = alike(Step("a", "DescribeGroups", 5, {}), answer, memory())
    assert shown["groups"][0]["members"][0]["member_id"] == "c-b-unheard"


def test_texts_addresses_and_the_order_of_lists_do_not_count():
    step = Step("a", "DescribeCluster", 1, {})
    one = {
        "error_message": "no",
        "host": "a",
        "port": 9,
        "brokers": [{"node_id": 2}, {"node_id": 1}],
    }
    other = {
        "error_message": None,
        "host": "b",
        "port": 7,
        "brokers": [{"node_id": 1}, {"node_id": 2}],
    }
    assert not list(differences(alike(step, one, memory()), alike(step, other, memory())))


@pytest.mark.parametrize(
    ("kafka", "kohort", "path"),
    [
        ({"error_code": 0}, {"error_code": 25}, "error_code"),
        ({"groups": [{"state": "Empty"}]}, {"groups": [{"state": "Dead"}]}, "groups[].state"),
        ({"topics": [{"name": "a"}]}, {"topics": []}, "topics[]"),
        ({"assignment": None}, {"assignment": {"topic_partitions": []}}, "assignment"),
        ({"member_id": ""}, {"member_id": None}, "member_id"),
        ({"a": 1}, {"a": 1, "b": 2}, "b"),
        ({"flag": True}, {"flag": 1}, "flag"),
    ],
)
def test_a_planted_difference_is_told(kafka, kohort, path):
    sides = [alike(HEARTBEAT, one, memory()) for one in (kafka, kohort)]
    (found,) = differences(*sides)
    assert found.path == path
    assert str(found).startswith(f"{path}: Kafka ")


def test_assignments_count_by_their_size_where_order_is_chance():
    def answer(*partitions):
        assigned = [{"topic_id": b"1" * 16, "partitions": list(partitions)}]
        return {"assignment": {"topic_partitions": assigned}}

    def compared(*, strict):
        sides = [alike(HEARTBEAT, one, memory(), strict=strict) for one in (answer(0), answer(1))]
        return list(differences(*sides))

    assert len(compared(strict=True)) == 1
    assert not compared(strict=False)
    sides = [alike(HEARTBEAT, one, memory(), strict=False) for one in (answer(0), answer(0, 1))]
    assert [one.path for one in differences(*sides)] == ["assignment.partitions"]


def test_records_are_compared_but_for_what_was_cut():
    def answer(data):
        return {"responses": [{"topic": "s1-t1", "partitions": [{"records": data}]}]}

    step = Step("a", "Fetch", 12, {})
    whole = build([(b"k", b"v")], 1000)
    cut = alike(step, answer(whole + whole[:40]), memory())
    assert not list(differences(cut, alike(step, answer(whole), memory())))
    other = alike(step, answer(build([(b"k", b"w")], 1000)), memory())
    assert [one.path for one in differences(cut, other)] == [
        "responses[].partitions[].records[].records"
    ]


def test_lists_over_everything_show_what_is_of_this_run():
    groups = [{"group_id": "s1-g1"}, {"group_id": "s12-g1"}, {"group_id": "barrier-3"}]
    shown = alike(Step("a", "ListGroups", 4, {}), {"groups": groups}, memory())
    assert shown["groups"] == [{"group_id": "s1-g1"}]


def test_references_are_looked_up_in_what_was_said():
    made = memory()
    joined(made, f"c-a-{UUID}")
    answer = {
        "error_code": 0,
        "member_id": "m-b",
        "member_epoch": 4,
        "assignment": {"topic_partitions": [{"topic_id": b"1" * 16, "partitions": [2, 0]}]},
    }
    learn(
        made,
        Step("b", "ConsumerGroupHeartbeat", 1, {}),
        {"member_id": "m-b", "member_epoch": 0},
        answer,
    )
    fields = {
        "group_id": Name("g1"),
        "member_id": MemberOf("a"),
        "generation": GenerationOf("a", -1),
        "epochs": [EpochOf("b", 1), EpochOf("nobody")],
        "owned": OwnedBy("b"),
        "less": OwnedBy("b", "less"),
        "ids": [IdOf("t1"), IdOf("t9"), IdOf("")],
    }
    assert on(fields, made) == {
        "group_id": "s1-g1",
        "member_id": f"c-a-{UUID}",
        "generation": 2,
        "epochs": [5, 0],
        "owned": [{"topic_id": b"1" * 16, "partitions": [0, 2]}],
        "less": [{"topic_id": b"1" * 16, "partitions": [0]}],
        "ids": [b"1" * 16, UNKNOWN_ID, NO_ID],
    }


def test_a_planted_difference_is_made_short():
    """Two of thirty steps are needed, and the others go."""
    tried = []

    async def shows(steps):
        tried.append(steps)
        return {7, 21} <= set(steps)

    assert asyncio.run(shortest(list(range(30)), shows, 60)) == [7, 21]
    assert len(tried) <= 60
    tried.clear()
    assert {7, 21} <= set(asyncio.run(shortest(list(range(30)), shows, 3)))
    assert len(tried) == 3


def occasion(api, path, kafka, kohort, **more):
    answers = [{"error_code": one, "member_epoch": 0} for one in (kafka, kohort)]
    request = {"member_id": "m", "server_assignor": None, **more}
    fields = {"topic_data": []}
    return Occasion(Step("a", api, 1, fields), request, *answers, Difference(path, kafka, kohort))


def test_explanations_are_narrow():
    """Each has a name of its own and a reason; none covers another API, path or pair of values."""
    assert len({one.name for one in EXPLANATIONS}) == len(EXPLANATIONS)
    assert all(len(one.reason) > 30 for one in EXPLANATIONS)
    path = "responses[].partition_responses[].error_code"
    known = explanation_of(occasion("Produce", path, -1, 87))
    assert known is not None
    assert known.name == "code of unreadable records"
    assert explanation_of(occasion("Produce", path, -1, 3)) is None
    assert explanation_of(occasion("Produce", path, 87, -1)) is None
    assert explanation_of(occasion("Fetch", path, -1, 87)) is None
    assert explanation_of(occasion("Produce", "responses[].error_code", -1, 87)) is None
    assert explanation_of(occasion("ConsumerGroupHeartbeat", "member_epoch", 3, 4)) is None
