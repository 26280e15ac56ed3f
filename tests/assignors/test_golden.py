# SPDX-License-Identifier: Apache-2.0
"""What Apache Kafka 4.3.1's own assignors answer, case by case (tests/data/assignors.json)."""

import json
from pathlib import Path

import pytest

from kohort.assignors import ASSIGNORS, AssignorError, Subscription

DATA = json.loads((Path(__file__).parents[1] / "data" / "assignors.json").read_text())
CASES = DATA["cases"]


def topic_id(rank):
    """An id with the order that its rank says."""
    return rank.to_bytes(16, "big")


def read(case):
    """The case as an assignor is given it, and the names of its topics by id."""
    ids = {name: topic_id(topic["id"]) for name, topic in case["topics"].items()}
    partitions = {
        ids[name]: topic["partitions"]
        for name, topic in case["topics"].items()
        if not topic.get("unknown")
    }
    members = {
        name: Subscription(
            topics=tuple(ids[topic] for topic in member["topics"]),
            previous={
                ids[topic]: tuple(those) for topic, those in member.get("previous", {}).items()
            },
            instance_id=member.get("instance"),
            rack=member.get("rack"),
        )
        for name, member in case["members"].items()
    }
    return members, partitions, {value: name for name, value in ids.items()}


def named(plan, names):
    return {
        member: {names[topic]: list(those) for topic, those in sorted(mine.items())}
        for member, mine in plan.items()
    }


def kept(case, plan):
    return sum(
        len(set(those) & set(plan[member].get(topic, ())))
        for member, one in case["members"].items()
        for topic, those in one.get("previous", {}).items()
    )


def test_the_corpus_is_whole():
    assert len(CASES) == 85


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_golden(case):
    """K848-052, K848-053, K848-054."""
    members, partitions, names = read(case)
    assign = ASSIGNORS[case["assignor"]]
    if case.get("error"):
        with pytest.raises(AssignorError):
            assign(members, partitions)
        return

    plan = named(assign(members, partitions), names)

    if case["exact"]:
        assert plan == case["expected"]
    assert sorted(sum(map(len, mine.values())) for mine in plan.values()) in case["sizes"]
    if "kept" in case:
        assert case["kept"]["min"] <= kept(case, plan) <= case["kept"]["max"]
    dealt = sorted((topic, one) for mine in plan.values() for topic in mine for one in mine[topic])
    wanted = {names[topic] for one in members.values() for topic in one.topics}
    assert dealt == sorted(
        (topic, one) for topic in wanted for one in range(case["topics"][topic]["partitions"])
    )


# Its previous numbers were recorded as ascending sets, where a broker has hash sets (test_uniform).
ASCENDING = "uniform-29-7-to-8-members"


@pytest.mark.parametrize(
    "case",
    [
        case
        for case in CASES
        if case["name"].startswith("uniform-")
        and case["name"] != ASCENDING
        and not case.get("error")
    ],
    ids=lambda case: case["name"],
)
def test_uniform_over_one_subscription_picks_as_upstream_does(case):
    """With members and topics in the listed order even the picks that need not be equal are."""
    members, partitions, names = read(case)
    assert named(ASSIGNORS["uniform"](members, partitions), names) == case["expected"]
