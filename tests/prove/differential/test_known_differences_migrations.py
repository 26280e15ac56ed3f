# SPDX-License-Identifier: Apache-2.0
"""What is known of classic members in consumer groups is explained in the case that is meant."""

import pytest
from tests.prove.differential.comparing import Difference
from tests.prove.differential.known_differences import explanation_of
from tests.prove.differential.occasions import Occasion
from tests.prove.differential.player import StepOutcome
from tests.prove.differential.steps import Step

from kohort.records.consumer_protocol import (
    ConsumerProtocolSubscription,
    TopicPartition,
    encode,
)

UNKNOWN = 25


def told(api, member="m"):
    return StepOutcome(Step("a", api, 4, {}), [{"group_id": "g", "member_id": member}] * 2)


def name_of(path, answers, *before, member="m", said=b""):
    """Of what explains the answers to a JoinGroup."""
    request = {
        "group_id": "g",
        "member_id": member,
        "protocols": [{"name": "range", "metadata": said}],
    }
    kafka, kohort = (
        {"error_code": code, "generation_id": generation, "leader": ""}
        for code, generation in answers
    )
    difference = Difference(path, kafka[path], kohort[path])
    step = Step("a", "JoinGroup", 4, {})
    known = explanation_of(Occasion(step, request, kafka, kohort, difference, before))
    return None if known is None else known.name


@pytest.mark.parametrize(
    ("before", "generations", "known"),
    [
        (["DeleteTopics", "Heartbeat"], (6, 7), True),
        (["CreatePartitions", "Heartbeat", "Heartbeat"], (6, 7), True),
        (["Heartbeat", "DeleteTopics"], (6, 7), False),
        (["Heartbeat"], (6, 7), False),
        (["DeleteTopics", "Heartbeat"], (6, 8), False),
        (["DeleteTopics", "Heartbeat"], (7, 6), False),
    ],
)
def test_a_heartbeat_that_notices_topics_is_an_epoch(before, generations, known):
    answers = [(0, generation) for generation in generations]
    expected = "epoch of topics that a classic member's heartbeat has noticed" if known else None
    steps = [told(api) for api in before]
    assert name_of("generation_id", answers, *steps) == expected
    others = [told(api, "n") for api in before]
    assert name_of("generation_id", answers, *others) is None


def test_a_member_that_is_unknown_has_no_partitions():
    owned = encode(
        ConsumerProtocolSubscription(
            topics=["t"], owned_partitions=[TopicPartition(topic="t", partitions=[0])]
        )
    )
    none = encode(ConsumerProtocolSubscription(topics=["t"], owned_partitions=[]))
    known = "classic member that is unknown and has partitions"
    answers = [(0, 3), (UNKNOWN, -1)]
    assert name_of("error_code", answers, said=owned) == known
    assert name_of("error_code", answers, said=none) is None
    assert name_of("error_code", answers, said=b"\0") is None
    assert name_of("error_code", answers, said=owned, member="") is None
    assert name_of("error_code", answers[::-1], said=owned) is None
