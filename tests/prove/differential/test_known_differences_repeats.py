# SPDX-License-Identifier: Apache-2.0
"""What is answered once is explained; what is left out, or told differently, is not."""

import pytest
from tests.prove.differential.comparing import Difference, alike
from tests.prove.differential.known_differences import explanation_of
from tests.prove.differential.occasions import Occasion
from tests.prove.differential.player import StepOutcome
from tests.prove.differential.steps import Memory, Step

GONE = 25


def topic(name, *partitions):
    return {
        "name": name,
        "partitions": [
            {"partition_index": index, "committed_offset": offset} for index, offset in partitions
        ],
    }


def group(name, *topics, code=0):
    return {"group_id": name, "topics": list(topics), "error_code": code}


def name_of(api, path, kafka, kohort, request=None, before=()):
    """Of what explains that these lists differ."""
    step = Step("a", api, 8, {})
    memory = Memory("s1-", started_ms=0)
    sides = [alike(step, {"it": one}, memory)["it"] for one in (kafka, kohort)]
    occasion = Occasion(step, request or {}, None, None, Difference(path, *sides), before)
    known = explanation_of(occasion)
    return None if known is None else known.name


AGAIN, SEVERAL = "what is named again", "group named as several members"
T0, T1 = topic("t", (0, 5)), topic("t", (1, 6))
BOTH = topic("t", (0, 5), (1, 6))


@pytest.mark.parametrize(
    ("path", "kafka", "kohort", "name"),
    [
        ("topics[]", [T0, T0], [T0], AGAIN),
        ("topics[]", [T0, T1], [BOTH], AGAIN),
        ("topics[]", [T1, BOTH, topic("u", (0, 1))], [BOTH, topic("u", (0, 1))], AGAIN),
        ("topics[]", [T0, T1], [T0], None),
        ("topics[]", [T0, T1], [topic("t", (0, 5), (1, 7))], None),
        ("topics[]", [T0, T0, topic("u", (0, 1))], [T0], None),
        ("topics[]", [T0], [T0, topic("u", (0, 1))], None),
        ("topics[].partitions[]", [*BOTH["partitions"]] * 2, BOTH["partitions"], AGAIN),
        ("groups[].topics[]", [T0, T1], [BOTH], AGAIN),
        ("groups[]", [group("g", T0), group("g", T1)], [group("g", BOTH)], AGAIN),
        ("groups[]", [group("g", T0), group("g", T1)], [group("g", T0)], None),
    ],
)
def test_entries_of_one_name_are_one(path, kafka, kohort, name):
    request = {"groups": [{"group_id": "g"}] * 2}
    assert name_of("OffsetFetch", path, kafka, kohort, request) == name


REFUSED = group("g", code=GONE)


@pytest.mark.parametrize(
    ("kafka", "kohort", "name"),
    [
        ([group("g", T0), REFUSED], [group("g", BOTH)], SEVERAL),
        ([group("g", T0), REFUSED], [REFUSED], SEVERAL),
        ([group("g", T0), REFUSED, group("h", T1)], [REFUSED, group("h", T1)], SEVERAL),
        ([group("g", T0), REFUSED, group("h", T1)], [REFUSED, group("h", T0)], None),
        ([group("g", T0), REFUSED, group("h", T1)], [REFUSED], None),
        ([group("g", T0), REFUSED], [group("g", T1)], None),
        ([group("g", T0), REFUSED], [group("g", code=16)], None),
        ([REFUSED, REFUSED], [group("g", T0)], None),
        ([group("g", T0), REFUSED], [], None),
    ],
)
def test_the_first_of_several_members_asks(kafka, kohort, name):
    request = {"groups": [{"group_id": "g"}, {"group_id": "g"}, {"group_id": "h"}]}
    request["groups"] = request["groups"][: 2 + (len(kafka) == 3)]
    assert name_of("OffsetFetch", "groups[]", kafka, kohort, request) == name


def test_repetition_is_no_sign_of_anything_else():
    """A group that a refused join has hidden explains much, and ends a sequence."""
    request = {"group_id": "g", "member_id": "m", "member_epoch": 0}
    answers = [{"error_code": GONE}] * 2
    before = [
        StepOutcome(Step("a", api, 5, {}), [request] * 2, [], answers)
        for api in ("ConsumerGroupHeartbeat", "JoinGroup")
    ]
    one, other = ({"group_id": name} for name in ("g", "h"))
    kafka, kohort = [one, other, one], [one, other]
    assert name_of("DescribeGroups", "groups[]", kafka, kohort, before=before) == AGAIN
    assert name_of("DescribeGroups", "groups[]", kafka, [one], before=before) not in (AGAIN, None)
