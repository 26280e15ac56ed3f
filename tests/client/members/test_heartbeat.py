# SPDX-License-Identifier: Apache-2.0
"""What a heartbeat says: everything to a coordinator that knows nothing, else what is new."""

from typing import Any

import pytest

from kohort.client.members.events import TopicIdPartition
from kohort.client.members.heartbeat import (
    HeartbeatFields,
    MemberConfig,
    MemberIds,
    Offer,
    assignment_in,
    farewell,
    request_of,
)
from kohort.terms import GroupId, MemberId, PartitionIndex, TopicId
from kohort.wire.messages.consumer_group_heartbeat import (
    Assignment,
    ClientAssignor,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

TOPIC, OTHER = TopicId(b"t" * 16), TopicId(b"u" * 16)
PROFILE = MemberConfig(names=("t",), regex="u.*", server_assignor="range", rack="r1")
OWNED = tuple(
    TopicIdPartition(topic, PartitionIndex(index))
    for topic, index in [(TOPIC, 0), (TOPIC, 1), (OTHER, 0)]
)
HEARTBEAT_FIELDS = HeartbeatFields(PROFILE, OWNED)
NAME = MemberIds(GroupId("g"), MemberId("m"), None)
QUIET: dict[str, Any] = {
    "instance_id": None,
    "rack_id": None,
    "rebalance_timeout_ms": -1,
    "subscribed_topic_names": None,
    "subscribed_topic_regex": None,
    "server_assignor": None,
    "topic_partitions": None,
}
FULL = {
    **QUIET,
    "rack_id": "r1",
    "rebalance_timeout_ms": 300_000,
    "subscribed_topic_names": ["t"],
    "subscribed_topic_regex": "u.*",
    "server_assignor": "range",
    "topic_partitions": [
        TopicPartitions(topic_id=TOPIC, partitions=[0, 1]),
        TopicPartitions(topic_id=OTHER, partitions=[0]),
    ],
}


def said(
    tell: HeartbeatFields, known: HeartbeatFields | None, epoch: int = 4
) -> ConsumerGroupHeartbeatRequest:
    return request_of(NAME, epoch, tell, known)


def expected(**fields: Any) -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", **fields)


@pytest.mark.parametrize(
    ("known", "fields"),
    [
        (None, FULL),
        (HEARTBEAT_FIELDS, QUIET),
        (
            HeartbeatFields(PROFILE._replace(names=()), OWNED),
            {**QUIET, "subscribed_topic_names": ["t"]},
        ),
        (
            HeartbeatFields(PROFILE._replace(regex=""), OWNED),
            {**QUIET, "subscribed_topic_regex": "u.*"},
        ),
        (
            HeartbeatFields(PROFILE._replace(rebalance_timeout_ms=1), OWNED),
            {**QUIET, "rebalance_timeout_ms": 300_000},
        ),
        (
            HeartbeatFields(PROFILE._replace(server_assignor=None), OWNED),
            {**QUIET, "server_assignor": "range"},
        ),
        (HeartbeatFields(PROFILE._replace(rack="r2"), OWNED), {**QUIET, "rack_id": "r1"}),
        (
            HeartbeatFields(PROFILE, OWNED[:1]),
            {**QUIET, "topic_partitions": FULL["topic_partitions"]},
        ),
    ],
    ids=["nothing", "all", "names", "regex", "timeout", "vote", "rack", "owned"],
)
def test_only_what_is_not_known_is_said(
    known: HeartbeatFields | None, fields: dict[str, Any]
) -> None:
    """K848-093, K848-097."""
    assert said(HEARTBEAT_FIELDS, known) == expected(member_epoch=4, **fields)


def test_who_owns_nothing_says_so() -> None:
    """An empty list is a statement and null is none (K848-098)."""
    request = said(HeartbeatFields(MemberConfig(), ()), None, epoch=0)
    assert request.topic_partitions == []
    assert request.subscribed_topic_names == []
    assert request.subscribed_topic_regex == ""
    assert (
        said(
            HeartbeatFields(MemberConfig(), ()), HeartbeatFields(MemberConfig(), OWNED)
        ).topic_partitions
        == []
    )


def test_an_expression_is_taken_back_by_an_empty_one() -> None:
    assert (
        said(
            HeartbeatFields(PROFILE._replace(regex=""), OWNED), HEARTBEAT_FIELDS
        ).subscribed_topic_regex
        == ""
    )


def test_a_farewell_says_nothing_else() -> None:
    """K848-092."""
    assert farewell(NAME, for_good=True) == expected(member_epoch=-1, **QUIET)


@pytest.mark.parametrize(("for_good", "epoch"), [(True, -1), (False, -2)])
def test_every_heartbeat_of_a_static_member_names_its_instance(
    for_good: bool,  # noqa: FBT001
    epoch: int,
) -> None:
    """Without it, it would be taken for a dynamic one (K848-106, K848-107)."""
    name = NAME._replace(instance_id="i")
    static = QUIET | {"instance_id": "i"}
    assert request_of(name, 4, HEARTBEAT_FIELDS, HEARTBEAT_FIELDS) == expected(
        member_epoch=4, **static
    )
    assert request_of(name, 0, HEARTBEAT_FIELDS, None).instance_id == "i"
    assert farewell(name, for_good=for_good) == expected(member_epoch=epoch, **static)


@pytest.mark.parametrize(
    ("partitions", "expects"),
    [([0, 1], {0, 1}), ([], set()), ([1, 1, 0], {0, 1}), ([-1, 2], {2})],
)
def test_an_assignment_is_read(partitions: list[int], expects: set[int]) -> None:
    answer = ConsumerGroupHeartbeatResponse(
        assignment=Assignment(
            topic_partitions=[TopicPartitions(topic_id=TOPIC, partitions=partitions)]
        )
    )
    assert assignment_in(answer) == {
        TopicIdPartition(TOPIC, PartitionIndex(index)) for index in expects
    }


def test_no_assignment_is_not_an_empty_one() -> None:
    assert assignment_in(ConsumerGroupHeartbeatResponse()) is None
    assert assignment_in(ConsumerGroupHeartbeatResponse(assignment=Assignment())) == frozenset()


OFFERS = (Offer("by-weight", 0, 3, reason=1, metadata_version=3, metadata=b"8"),)
ON_THE_WIRE = [
    ClientAssignor(
        name="by-weight",
        minimum_version=0,
        maximum_version=3,
        reason=1,
        metadata_version=3,
        metadata_bytes=b"8",
    )
]


@pytest.mark.parametrize(
    ("offers", "known", "told"),
    [
        (None, None, None),  # who never has any says nothing: not a byte more for other brokers
        ((), None, []),
        (OFFERS, None, ON_THE_WIRE),
        (OFFERS, OFFERS, None),
        (OFFERS, (), ON_THE_WIRE),
        ((), OFFERS, []),
        ((OFFERS[0]._replace(reason=0),), OFFERS, [ON_THE_WIRE[0]]),
    ],
)
def test_assignors_of_its_own_are_told_when_they_are_news(
    offers: Any, known: Any, told: Any
) -> None:
    knew = None if known is None else HeartbeatFields(PROFILE._replace(offers=known), OWNED)
    request = said(HeartbeatFields(PROFILE._replace(offers=offers), OWNED), knew)
    if told and offers[0].reason == 0:
        assert request.client_assignors is not None
        assert request.client_assignors[0].reason == 0
    else:
        assert request.client_assignors == told
