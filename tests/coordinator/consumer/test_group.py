# SPDX-License-Identifier: Apache-2.0
"""What a consumer group knows about itself, and who may touch its offsets."""

from dataclasses import replace
from typing import Any

import pytest
from tests.coordinator.consumers import beat, settled
from tests.coordinator.desk import Desk, topic_id

from kohort.config import BrokerConfig
from kohort.coordinator.consumer.group import ConsumerGroup
from kohort.coordinator.consumer.member import Member, MemberState
from kohort.coordinator.settings import ConsumerSettings
from kohort.errors import ApiError, Broken, ErrorCode
from kohort.machines.effects import Call, Client
from kohort.records.schemas import ClassicMemberMetadata
from kohort.terms import GroupState, GroupType
from kohort.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kohort.wire.messages.offset_fetch import OffsetFetchRequestGroup

ORDERS = topic_id("orders")
UNRELEASED = MemberState.UNRELEASED_PARTITIONS


SETTINGS = ConsumerSettings.of(BrokerConfig())


def commits(member_id: str, epoch: int, version: int, topics: list[Any]) -> Call[Any]:
    request = OffsetCommitRequest(
        group_id="g", member_id=member_id, generation_id_or_member_epoch=epoch, topics=topics
    )
    return Call(None, request, version, Client("app", "/127.0.0.1"))


def fetches(member_id: str | None, epoch: int) -> OffsetFetchRequestGroup:
    return OffsetFetchRequestGroup(group_id="g", member_id=member_id, member_epoch=epoch)


def group(*members: Member, epoch: int = 2, target: int = 2) -> ConsumerGroup:
    made = ConsumerGroup("g", SETTINGS)
    made.group_epoch, made.target_epoch = epoch, target
    for member in members:
        made.put(member)
    return made


def test_a_new_group_is_at_epoch_1_with_an_empty_target() -> None:
    """K848-023: KAFKA-20268."""
    new = ConsumerGroup("g", SETTINGS)
    assert (new.group_epoch, new.target_epoch, new.targets) == (1, 1, {})
    assert (new.type, new.protocol_type) == (GroupType.CONSUMER, "consumer")
    assert new.state is GroupState.EMPTY


@pytest.mark.parametrize(
    ("members", "epoch", "target", "state"),
    [
        ([], 3, 2, GroupState.EMPTY),
        ([Member("a", epoch=2)], 3, 2, GroupState.ASSIGNING),
        ([Member("a", epoch=2)], 2, 2, GroupState.STABLE),
        ([Member("a", epoch=1)], 2, 2, GroupState.RECONCILING),
        ([Member("a", epoch=2, state=UNRELEASED)], 2, 2, GroupState.RECONCILING),
        ([Member("a", epoch=2), Member("b", epoch=-2)], 2, 2, GroupState.RECONCILING),
        ([Member("a", epoch=2), Member("b", epoch=2)], 2, 2, GroupState.STABLE),
    ],
)
def test_state(members: list[Member], epoch: int, target: int, state: GroupState) -> None:
    """K848-021."""
    assert group(*members, epoch=epoch, target=target).state is state


def test_the_state_follows_members_that_move_and_go() -> None:
    one = group(Member("a", epoch=2), Member("b", epoch=1))
    one.put(Member("b", epoch=2))
    assert one.state is GroupState.STABLE
    one.put(Member("b", epoch=2, state=UNRELEASED))
    assert one.state is GroupState.RECONCILING
    one.drop("b")
    assert one.state is GroupState.STABLE
    one.drop("b")
    one.drop("a")
    assert one.state is GroupState.EMPTY


def votes(*names: str | None) -> list[Member]:
    return [Member(str(number), server_assignor=name) for number, name in enumerate(names)]


@pytest.mark.parametrize(
    ("names", "chosen"),
    [
        ([], "uniform"),
        ([None, None], "uniform"),
        ([None, "range"], "range"),
        (["range", "uniform"], "uniform"),
        (["range", "uniform", "range"], "range"),
        (["gone", "gone", "range"], "range"),
    ],
)
def test_most_votes_win(names: list[str | None], chosen: str) -> None:
    """K848-044, K848-046."""
    assert group(*votes(*names)).assignor == chosen


def test_votes_may_be_counted_with_members_replaced() -> None:
    one = group(*votes("range"))
    [member] = one.members.values()
    assert one.choice_with([member], [replace(member, server_assignor=None)]).name == "uniform"
    assert one.assignor == "range"


def test_topics_are_counted_by_their_readers() -> None:
    one = group(Member("a", subscribed_names=("x", "y")), Member("b", subscribed_names=("y",)))
    assert [name for name in ("x", "y", "z") if one.subscribes_to(name)] == ["x", "y"]
    leaving, joining = one.members["a"], Member("a", subscribed_names=("z",))
    assert sorted(one.topic_names([leaving], [joining])) == ["y", "z"]
    one.put(joining)
    assert [name for name in ("x", "y", "z") if one.subscribes_to(name)] == ["y", "z"]
    one.drop("b")
    assert [name for name in ("x", "y", "z") if one.subscribes_to(name)] == ["z"]


def test_an_instance_belongs_to_the_member_that_took_it_last() -> None:
    one = group(Member("a", instance_id="i"))
    one.put(Member("b", instance_id="i"))
    one.drop("a")
    assert one.instances == {"i": "b"}
    one.drop("b")
    assert one.instances == {}


def test_a_partition_has_one_holder() -> None:
    one = group(Member("a", assigned={ORDERS: {0: 2}}, revoking={ORDERS: {1: 2}}))
    assert one.held == {ORDERS: {0: "a", 1: "a"}}
    for partition in (0, 1):
        with pytest.raises(Broken, match="is held by a"):
            group(*one.members.values()).put(Member("b", assigned={ORDERS: {partition: 2}}))
    one.put(Member("a"))
    assert one.held == {}


def test_a_member_that_only_says_something_new_holds_what_it_held() -> None:
    one = group(Member("a", assigned={ORDERS: {0: 2}}))
    one.put(replace(one.members["a"], rack_id="r"))
    assert one.held == {ORDERS: {0: "a"}}


# -- offsets


def commit_of(**partitions: list[int]) -> list[OffsetCommitRequestTopic]:
    return [
        OffsetCommitRequestTopic(
            name=name,
            partitions=[OffsetCommitRequestPartition(partition_index=one) for one in indices],
        )
        for name, indices in partitions.items()
    ]


def code_of(check: Any, *arguments: Any) -> ErrorCode:
    try:
        check(*arguments)
    except ApiError as error:
        return error.code
    return ErrorCode.NONE


@pytest.fixture
def desk() -> Desk:
    """Member a is at epoch 3 and has had orders 0 and 1 since 2, b orders 2 and 3 since 3."""
    desk = Desk()
    settled(desk, "a", "b")
    return desk


@pytest.mark.parametrize(
    ("member_id", "epoch", "version", "topics", "code"),
    [
        ("a", 3, 9, commit_of(orders=[0]), ErrorCode.NONE),
        ("a", 3, 9, commit_of(orders=[2], payments=[0]), ErrorCode.NONE),
        ("a", 3, 8, commit_of(orders=[0]), ErrorCode.UNSUPPORTED_VERSION),
        ("a", 4, 9, commit_of(orders=[0]), ErrorCode.STALE_MEMBER_EPOCH),
        ("a", 2, 9, commit_of(orders=[0, 1]), ErrorCode.NONE),
        ("a", 1, 9, commit_of(orders=[0]), ErrorCode.STALE_MEMBER_EPOCH),
        ("a", 2, 9, commit_of(orders=[0, 2]), ErrorCode.STALE_MEMBER_EPOCH),
        ("a", 2, 9, commit_of(nowhere=[0]), ErrorCode.STALE_MEMBER_EPOCH),
        ("b", 2, 9, commit_of(orders=[2]), ErrorCode.STALE_MEMBER_EPOCH),
        ("", -1, 9, commit_of(orders=[0]), ErrorCode.UNKNOWN_MEMBER_ID),
        ("x", 3, 9, commit_of(orders=[0]), ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_who_may_commit(
    desk: Desk, member_id: str, epoch: int, version: int, topics: Any, code: ErrorCode
) -> None:
    """KIP-1251: an older epoch will do for partitions that a member has had since then.

    Holds K848-020, K848-099, K848-102.
    """
    one = desk.shard.groups.consumer("g")
    assert one is not None
    assert code_of(one.check_commit, commits(member_id, epoch, version, topics), desk.known) is code


def test_what_is_being_given_up_may_still_be_committed(desk: Desk) -> None:
    """K848-004."""
    beat(desk, "c", 0)
    beat(desk, "d", 0)
    beat(desk, "a", 3)
    one = desk.shard.groups.consumer("g")
    assert one is not None
    assert one.members["a"].revoking == {ORDERS: {1: 2}}
    assert code_of(one.check_commit, commits("a", 2, 9, commit_of(orders=[1])), desk.known) == 0


def test_anybody_may_commit_when_there_are_no_members(desk: Desk) -> None:
    """K848-105."""
    empty = ConsumerGroup("g", SETTINGS)
    assert code_of(empty.check_commit, commits("", -1, 2, commit_of(orders=[0])), desk.known) == 0
    assert (
        code_of(empty.check_commit, commits("a", 1, 9, []), desk.known)
        == ErrorCode.UNKNOWN_MEMBER_ID
    )


@pytest.mark.parametrize(
    ("member_id", "epoch", "code"),
    [
        ("a", 3, ErrorCode.NONE),
        ("a", 2, ErrorCode.STALE_MEMBER_EPOCH),
        ("a", 4, ErrorCode.STALE_MEMBER_EPOCH),
        ("x", 3, ErrorCode.UNKNOWN_MEMBER_ID),
        ("", -1, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_who_may_fetch(desk: Desk, member_id: str, epoch: int, code: ErrorCode) -> None:
    """K848-103."""
    one = desk.shard.groups.consumer("g")
    assert one is not None
    assert code_of(one.check_fetch, fetches(member_id, epoch)) is code


def test_a_classic_member_is_told_of_generations() -> None:
    classic = ClassicMemberMetadata(session_timeout_ms=1, supported_protocols=[])
    one = group(Member("a", epoch=2, classic=classic))
    assert code_of(one.check_fetch, fetches("a", 1)) is ErrorCode.ILLEGAL_GENERATION
    assert (
        code_of(one.check_commit, commits("a", 3, 2, []), Desk().known)
        is ErrorCode.ILLEGAL_GENERATION
    )
    assert code_of(one.check_commit, commits("a", 2, 2, []), Desk().known) is ErrorCode.NONE
