# SPDX-License-Identifier: Apache-2.0
"""What a ConsumerGroupHeartbeat must look like, in the order in which 4.3.1 looks."""

from dataclasses import replace
from typing import Any

import pytest
from tests.coordinator.consumers import beat, named, request
from tests.coordinator.desk import Desk

from kohort.errors import ErrorCode

NO_ID = "MemberId can't be empty."
NO_GROUP = "GroupId can't be empty."
TIMEOUT = "RebalanceTimeoutMs must be provided in first request."
OWNED = "TopicPartitions must be empty when (re-)joining."
SUBSCRIPTION = (
    "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining."
)


@pytest.mark.parametrize(
    ("version", "member_id", "epoch", "fields", "text"),
    [
        (1, "", 0, {}, NO_ID),
        (1, " ", 0, {}, NO_ID),
        (1, "", -2, {"instance_id": "i"}, NO_ID),
        (0, "", 5, {}, NO_ID),
        (0, "", -1, {}, NO_ID),
        (0, "", -2, {}, "InstanceId can't be null."),
        (1, "", 0, {"group_id": ""}, NO_ID),
        (1, "m", 0, {"group_id": " "}, NO_GROUP),
        (1, "m", 0, {"group_id": "", "instance_id": ""}, NO_GROUP),
        (1, "m", 0, {"instance_id": " ", "rack_id": ""}, "InstanceId can't be empty."),
        (1, "m", 0, {"rack_id": "", "rebalance_timeout_ms": -1}, "RackId can't be empty."),
        (1, "m", 0, {"rebalance_timeout_ms": -1, "topic_partitions": None}, TIMEOUT),
        (1, "m", 0, {"owned": None, "names": None}, OWNED),
        (1, "m", 0, {"owned": {"orders": [1]}}, OWNED),
        (1, "m", 0, {"names": None}, SUBSCRIPTION),
        (0, "m", 0, {"names": None}, SUBSCRIPTION),
        (1, "m", -2, {}, "InstanceId can't be null."),
        (1, "m", -3, {}, "MemberEpoch is invalid."),
    ],
)
def test_what_is_invalid(
    version: int, member_id: str, epoch: int, fields: dict[str, Any], text: str
) -> None:
    """K848-089, K848-093, K848-136, K848-137."""
    answer = beat(Desk(), member_id, epoch, version=version, **fields)
    assert (answer.error_code, answer.error_message) == (ErrorCode.INVALID_REQUEST, text)
    assert (answer.member_id, answer.member_epoch, answer.assignment) == (None, 0, None)


@pytest.mark.parametrize("epoch", [0, 1, -1])
@pytest.mark.parametrize("name", ["sticky", "Range", ""])
def test_an_assignor_that_the_broker_does_not_have(epoch: int, name: str) -> None:
    """K848-050."""
    desk = Desk()
    answer = beat(desk, "m", epoch, server_assignor=name)
    assert answer.error_code == ErrorCode.UNSUPPORTED_ASSIGNOR
    assert (desk.log, len(desk.shard.groups)) == ([], 0)
    assert answer.error_message == (
        f"ServerAssignor {name} is not supported. Supported assignors: uniform, range."
    )


def test_an_assignor_that_is_not_configured_is_not_there() -> None:
    """K848-051."""
    desk = Desk(group_consumer_assignors="range")
    assert beat(desk, "m", 0, server_assignor="uniform").error_message == (
        "ServerAssignor uniform is not supported. Supported assignors: range."
    )
    assert beat(desk, "m", 0).error_code == 0
    assert desk.shard.groups.consumer("g").assignor == "range"


def test_no_pattern_is_as_before_and_an_empty_one_is_none() -> None:
    """K848-115: a member of a log may have one."""
    desk = Desk()
    assert beat(desk, "m", 0, names=None, subscribed_topic_regex="").error_code == 0
    group = desk.shard.groups.consumer("g")
    assert not group.subscribes_to("orders")
    group.put(replace(group.members["m"], subscribed_regex="o.*"))
    assert beat(desk, "m", 1, names=["payments"]).error_code == 0
    assert group.members["m"].subscribed_regex == "o.*"
    epoch = group.members["m"].epoch
    assert beat(desk, "m", epoch, subscribed_topic_regex="").error_code == 0
    assert (group.members["m"].subscribed_regex, group.members["m"].subscribed_names) == (
        "",
        ("payments",),
    )


@pytest.mark.parametrize("timeout_ms", [0, -2, 1])
def test_any_rebalance_timeout_but_minus_one_is_one(timeout_ms: int) -> None:
    assert beat(Desk(), "m", 0, rebalance_timeout_ms=timeout_ms).error_code == 0


def test_the_server_names_a_member_of_v0() -> None:
    """K848-089."""
    desk = Desk()
    answer = beat(desk, "", 0, version=0)
    assert answer.error_code == 0
    assert answer.member_id is not None
    assert len(answer.member_id) == 22
    assert list(desk.shard.groups.consumer("g").members) == [answer.member_id]


def test_a_blank_id_of_v0_is_taken_once_and_never_again() -> None:
    desk = Desk()
    assert beat(desk, " ", 0, version=0).member_id == " "
    assert beat(desk, " ", 2, version=0).error_message == NO_ID


def test_partitions_named_twice_are_owned_once() -> None:
    desk = Desk()
    beat(desk, "m", 0)
    twice = request("m", 2)
    twice.topic_partitions = named({"orders": [0]}) + named({"orders": [1, 0]})
    assert desk.told(twice, 1).error_code == 0
