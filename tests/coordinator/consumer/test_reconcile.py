# SPDX-License-Identifier: Apache-2.0
"""One member, one step: revoke, wait for others, receive (KIP-848)."""

from dataclasses import replace
from typing import Any

import pytest

from kohort.coordinator.consumer.member import Member, MemberState
from kohort.coordinator.consumer.reconcile import Goal, step
from kohort.errors import ApiError, ErrorCode

A, B = b"A" * 16, b"B" * 16
STABLE, UNREVOKED, UNRELEASED = (
    MemberState.STABLE,
    MemberState.UNREVOKED_PARTITIONS,
    MemberState.UNRELEASED_PARTITIONS,
)


def has(
    epoch: int, state: MemberState = STABLE, *, a: Any = (), b: Any = (), **rest: Any
) -> Member:
    """A member at an epoch with partitions of topics A and B, and of A those it has to give up."""
    topics = ((A, a), (B, b))
    return Member(
        id="m",
        epoch=epoch,
        previous_epoch=rest.get("previous", epoch - 1),
        state=state,
        assigned={t: dict.fromkeys(ps, rest.get("since", epoch)) for t, ps in topics if ps},
        revoking={A: dict.fromkeys(rest["leaving"], epoch)} if "leaving" in rest else {},
    )


def to(epoch: int, *, a: Any = (), b: Any = (), subscribed: Any = (A, B)) -> Goal:
    target = {topic: tuple(ps) for topic, ps in ((A, a), (B, b)) if ps}
    return Goal(epoch, target, subscribed)


def shape(member: Member) -> tuple[Any, ...]:
    def indices(held: Any) -> dict[bytes, list[int]]:
        return {topic: list(partitions) for topic, partitions in held.items()}

    return member.epoch, member.state, indices(member.assigned), indices(member.revoking)


@pytest.mark.parametrize(
    ("member", "goal", "owned", "held", "expected"),
    [
        pytest.param(
            has(5, a=[0, 1]), to(5, a=[0, 1]), None, {}, (5, STABLE, {A: [0, 1]}, {}),
            id="nothing to do",
        ),
        pytest.param(
            has(5, a=[0, 1]), to(6, a=[0, 1]), None, {}, (6, STABLE, {A: [0, 1]}, {}),
            id="a new epoch that changes nothing",
        ),
        pytest.param(
            has(5, a=[0, 1]), to(6, a=[0]), None, {}, (5, UNREVOKED, {A: [0]}, {A: [1]}),
            id="told to give up",
        ),
        pytest.param(
            has(5, a=[0, 1]), to(6, a=[0]), {A: [0, 1]}, {}, (5, UNREVOKED, {A: [0]}, {A: [1]}),
            id="told to give up what it says it has",
        ),
        pytest.param(
            has(5, a=[0, 1]), to(6, a=[0]), {A: [0]}, {}, (6, STABLE, {A: [0]}, {}),
            id="never had it, so there is nothing to wait for",
        ),
        pytest.param(
            has(5, UNREVOKED, a=[0], leaving=[1]), to(6, a=[0]), None, {},
            (5, UNREVOKED, {A: [0]}, {A: [1]}),
            id="says nothing, so it may still have it",
        ),
        pytest.param(
            has(5, UNREVOKED, a=[0], leaving=[1]), to(6, a=[0]), {A: [0, 1]}, {},
            (5, UNREVOKED, {A: [0]}, {A: [1]}),
            id="still has it",
        ),
        pytest.param(
            has(5, UNREVOKED, a=[0], leaving=[1]), to(9), {A: [0, 1]}, {},
            (5, UNREVOKED, {A: [0]}, {A: [1]}),
            id="newer targets wait until it has let go",
        ),
        pytest.param(
            has(5, UNREVOKED, a=[0], leaving=[1]), to(6, a=[0]), {A: [0]}, {A: {1: "m"}},
            (6, STABLE, {A: [0]}, {}),
            id="has let go",
        ),
        pytest.param(
            has(5, UNREVOKED, a=[0, 2], leaving=[1]), to(7, a=[0]), {A: [0, 2]}, {},
            (5, UNREVOKED, {A: [0]}, {A: [2]}),
            id="has let go, and the target has moved on: the next revocation, at the same epoch",
        ),
        pytest.param(
            has(5, UNREVOKED, a=[0], leaving=[1]), to(7, a=[0, 1]), {A: [0]}, {A: {0: "m", 1: "m"}},
            (7, STABLE, {A: [0, 1]}, {}),
            id="has let go of what it is to have again: it gets it back at once",
        ),
        pytest.param(
            has(5, UNREVOKED, a=[0], leaving=[1, 2]), to(7, a=[0, 1, 3]), {A: [0]},
            {A: {0: "m", 1: "m", 2: "m", 3: "x"}},
            (7, UNRELEASED, {A: [0, 1]}, {}),
            id="gets back what it has let go, and waits for what somebody else holds",
        ),
        pytest.param(
            has(0), to(6, a=[0, 1]), {}, {}, (6, STABLE, {A: [0, 1]}, {}), id="joins",
        ),
        pytest.param(
            has(0), to(6, a=[2, 5]), {}, {A: {2: "x", 5: "y"}}, (6, UNRELEASED, {}, {}),
            id="joins and has to wait for others",
        ),
        pytest.param(
            has(6, UNRELEASED), to(6, a=[2, 5]), None, {A: {5: "y"}}, (6, UNRELEASED, {A: [2]}, {}),
            id="receives one of two",
        ),
        pytest.param(
            has(6, UNRELEASED, a=[2]), to(6, a=[2, 5]), None, {A: {2: "m"}},
            (6, STABLE, {A: [2, 5]}, {}),
            id="receives the last",
        ),
        pytest.param(
            has(6, UNRELEASED, a=[2]), to(7, a=[5]), None, {A: {2: "m"}},
            (6, UNREVOKED, {}, {A: [2]}),
            id="was waiting and has to give up first",
        ),
        pytest.param(
            has(5, a=[0], b=[0]), to(6, b=[0, 1]), None, {}, (5, UNREVOKED, {B: [0]}, {A: [0]}),
            id="gives up before it receives",
        ),
        pytest.param(
            has(5, a=[0], b=[0]), to(6, a=[0], b=[0], subscribed=(B,)), None, {},
            (5, UNREVOKED, {B: [0]}, {A: [0]}),
            id="a target older than its subscription counts as far as it is subscribed",
        ),
    ],
)  # fmt: skip
def test_step(member: Member, goal: Goal, owned: Any, held: Any, expected: Any) -> None:
    """K848-040, K848-081, K848-084."""
    assert shape(step(member, goal, owned=owned, held=held)) == expected


def test_a_member_that_moves_remembers_the_epoch_it_comes_from() -> None:
    assert step(has(5, a=[0]), to(7, a=[0]), owned=None, held={}).previous_epoch == 5
    assert step(has(5, a=[0]), to(7), owned=None, held={}).previous_epoch == 5


def test_who_comes_again_at_its_epoch_has_had_the_answer() -> None:
    """The epoch before counts no more then, as upstream has it; after that nothing is new."""
    waiting = replace(has(6, UNRELEASED, a=[2]), previous_epoch=5)
    again = step(waiting, to(6, a=[2, 5]), owned={A: [2]}, held={A: {5: "y"}})
    assert again == replace(waiting, previous_epoch=6)
    assert step(again, to(6, a=[2, 5]), owned={A: [2]}, held={A: {5: "y"}}) is again


def test_a_partition_keeps_the_epoch_at_which_it_was_given() -> None:
    moved = step(has(5, a=[0, 1], since=3), to(6, a=[0, 2]), owned={A: [0]}, held={})
    assert moved.assigned == {A: {0: 3, 2: 6}}
    revoking = step(has(5, a=[0, 1], since=3), to(6, a=[0, 2]), owned=None, held={})
    assert revoking.revoking == {A: {1: 3}}


@pytest.mark.parametrize(
    ("member", "owned", "expected"),
    [
        (has(5, a=[0], b=[1]), None, (5, UNREVOKED, {B: [1]}, {A: [0]})),
        (has(5, a=[0], b=[1]), {A: [0], B: [1]}, (5, UNREVOKED, {B: [1]}, {A: [0]})),
        (has(5, a=[0], b=[1]), {B: [1]}, (5, STABLE, {B: [1]}, {})),
        (
            has(5, UNREVOKED, a=[0], b=[1], leaving=[2]),
            None,
            (5, UNREVOKED, {B: [1]}, {A: [0, 2]}),
        ),
        (has(5, b=[1]), None, (5, STABLE, {B: [1]}, {})),
    ],
)
def test_what_is_no_longer_read_goes_at_once(member: Member, owned: Any, expected: Any) -> None:
    """KAFKA-19431: without waiting for the next target, which is still the old one here."""
    goal = to(5, a=[0], b=[1], subscribed=(B,))
    moved = step(member, goal, owned=owned, held={}, resubscribed=True)
    assert shape(moved) == expected


@pytest.mark.parametrize("owned", [None, {A: [0]}])
def test_a_state_of_a_newer_broker_is_fenced(owned: Any) -> None:
    with pytest.raises(ApiError) as refused:
        step(has(6, MemberState.UNKNOWN, a=[0]), to(7, a=[0]), owned=owned, held={})
    assert refused.value.code is ErrorCode.FENCED_MEMBER_EPOCH


def test_a_state_of_a_newer_broker_ends_when_the_member_has_nothing() -> None:
    moved = step(has(6, MemberState.UNKNOWN), to(7, a=[0]), owned={}, held={})
    assert shape(moved) == (7, STABLE, {A: [0]}, {})


def test_an_unknown_number_is_a_state_of_a_newer_broker() -> None:
    assert MemberState(3) is MemberState.UNKNOWN
