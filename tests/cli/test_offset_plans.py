# SPDX-License-Identifier: Apache-2.0
"""Plans of offsets: what became of each partition, and how topics are named."""

from argparse import ArgumentTypeError

import pytest

from kohort.cli.offset_plans import AppliedPlan, topic_partitions
from kohort.client.admin import CommittedOffset, OffsetResetPlan, PlannedOffset
from kohort.errors import ApiError, ErrorCode
from kohort.terms import GroupState, TopicPartition

PLACE = TopicPartition("orders", 0)
GOOD = PlannedOffset(None, CommittedOffset(5))
BAD = PlannedOffset(None, None, error=ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))


@pytest.mark.parametrize(
    ("state", "planned", "outcomes", "result", "code"),
    [
        (GroupState.EMPTY, GOOD, None, "would be set", None),
        (GroupState.EMPTY, BAD, None, "would fail", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (GroupState.STABLE, GOOD, None, "would fail", ErrorCode.NON_EMPTY_GROUP),
        (GroupState.EMPTY, GOOD, {PLACE: None}, "set", None),
        (GroupState.EMPTY, BAD, {}, "failed", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (GroupState.STABLE, GOOD, {}, "failed", ErrorCode.NON_EMPTY_GROUP),
        (
            *(GroupState.EMPTY, GOOD, {PLACE: ApiError(ErrorCode.UNKNOWN_MEMBER_ID)}),
            *("failed", ErrorCode.UNKNOWN_MEMBER_ID),
        ),
        (
            *(GroupState.EMPTY, GOOD, {PLACE: ApiError(ErrorCode.NETWORK_EXCEPTION)}),
            *("unknown", ErrorCode.NETWORK_EXCEPTION),
        ),
    ],
)
def test_what_became_of_a_partition(state, planned, outcomes, result, code):
    plan = OffsetResetPlan("billing", state, {PLACE: planned})
    found, error = AppliedPlan(plan, outcomes).result(PLACE)
    assert (found, error and error.code) == (result, code)


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("orders", ["orders"]),
        ("orders:3", [("orders", 3)]),
        ("orders:0-2,5,1", [("orders", 0), ("orders", 1), ("orders", 2), ("orders", 5)]),
    ],
)
def test_topics_and_partitions_in_short(text, places):
    assert topic_partitions(text) == places


@pytest.mark.parametrize(
    "text", [":1", "a:", "a:-1", "a:1-", "a:2-1", "a:0-100000", "a:9999999999"]
)
def test_what_names_no_partitions(text):
    with pytest.raises(ArgumentTypeError, match=r"expected such as|no range"):
        topic_partitions(text)
